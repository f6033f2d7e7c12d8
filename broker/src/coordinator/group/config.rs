//! [`GroupConfig`]: the limits that consumer groups obey, one field per Kafka setting.

/// Limits and delays of classic consumer groups. The first block carries Kafka's names and defaults; the second
/// holds bounds that Kafka leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.min.session.timeout.ms`: a shorter session is refused with INVALID_SESSION_TIMEOUT.
    pub session_timeout_min_ms: i32,
    /// `group.max.session.timeout.ms`: a longer session is refused with INVALID_SESSION_TIMEOUT.
    pub session_timeout_max_ms: i32,
    /// `group.initial.rebalance.delay.ms`: how long an empty consumer group waits for more members to join.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`: members of one consumer group.
    pub members_max: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`: time between two looks for expired offsets.
    pub offsets_retention_check_interval_ms: i64,
    /// `offset.metadata.max.bytes`: text that a client may store with one offset.
    pub offset_metadata_max_bytes: usize,

    /// Protocol names and metadata that one member may send with its join, in bytes.
    pub member_metadata_max_bytes: usize,
    /// Largest record value that a coordinator writes, in bytes: the metadata and assignments of one consumer group.
    pub record_max_bytes: usize,
    /// Consumer groups of one coordinator (one partition of `__consumer_offsets`).
    pub groups_max: usize,
    /// Member ids that one consumer group has handed out and that have not joined yet.
    pub pending_members_max: usize,
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self {
            session_timeout_min_ms: 6_000,
            session_timeout_max_ms: 1_800_000,
            initial_rebalance_delay_ms: 3_000,
            members_max: i32::MAX as usize,
            offsets_retention_ms: 7 * 24 * 60 * 60 * 1_000,
            offsets_retention_check_interval_ms: 600_000,
            offset_metadata_max_bytes: 4_096,
            member_metadata_max_bytes: 1 << 20,
            record_max_bytes: 8 << 20,
            groups_max: 200_000,
            pending_members_max: 10_000,
        }
    }
}
