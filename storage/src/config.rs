//! What a shard's storage and a log are configured with, and how both are named.
//! Does not own: parsing of configuration files or topic configurations; `broker` does that.

use std::fmt;
use std::path::PathBuf;

use protocol::Uuid;

use crate::error::StorageError;

/// A partition of a topic, by the topic's id: names are reused, ids are not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// Topic id (KIP-516).
    pub topic_id: Uuid,
    /// Partition number.
    pub partition: i32,
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic_id, self.partition)
    }
}

impl fmt::Debug for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Configuration of one shard's storage.
#[derive(Debug, Clone)]
pub struct StorageConfig {
    /// This shard's directory; made when missing.
    pub dir: PathBuf,
    /// This shard.
    pub shard: u16,
    /// Bytes of one journal file; also bounds the largest batch.
    pub journal_file_bytes: u64,
    /// Most journal files. A checkpoint runs when half of them are in use.
    pub journal_files_max: usize,
    /// Bytes that may wait for the next flush before appends are answered Busy.
    pub gather_bytes_max: usize,
    /// Bytes of batches kept in memory.
    pub cache_bytes: usize,
    /// Free space kept back on the file system: below it, appends are answered Full.
    pub reserve_bytes: u64,
    /// Longest time between two checkpoints while there is something to write.
    pub checkpoint_interval_ms: u64,
    /// Time between two runs of retention (Kafka's `log.retention.check.interval.ms`).
    pub retention_interval_ms: u64,
    /// A producer id unused for this long is forgotten (Kafka's `producer.id.expiration.ms`).
    pub producer_id_expiration_ms: i64,
    /// Segment files held open at most.
    pub open_files_max: usize,
    /// Keys that one pass of compaction keeps in memory, with the last offset of each: some 40 bytes a key.
    pub compaction_keys_max: usize,
    /// Give up damaged journal blocks instead of refusing to start. To be set by an operator, for one start.
    pub repair: bool,
}

impl StorageConfig {
    /// Defaults for a shard in `dir`.
    pub fn new(dir: impl Into<PathBuf>, shard: u16) -> Self {
        Self {
            dir: dir.into(),
            shard,
            journal_file_bytes: 64 << 20,
            journal_files_max: 16,
            gather_bytes_max: 16 << 20,
            cache_bytes: 64 << 20,
            reserve_bytes: 256 << 20,
            checkpoint_interval_ms: 60_000,
            retention_interval_ms: 300_000,
            producer_id_expiration_ms: 86_400_000,
            open_files_max: 256,
            compaction_keys_max: 500_000,
            repair: false,
        }
    }

    /// Refuses values with which the journal could not work.
    pub(crate) fn check(&self) -> Result<(), StorageError> {
        if self.journal_file_bytes < 64 << 10 || !self.journal_file_bytes.is_multiple_of(4096) {
            return Err(StorageError::InvalidConfig(
                "journal_file_bytes must be a multiple of 4096 and at least 64 KiB",
            ));
        }
        if !(2..=4096).contains(&self.journal_files_max) {
            return Err(StorageError::InvalidConfig("journal_files_max must be 2 to 4096"));
        }
        if self.open_files_max < 8 {
            return Err(StorageError::InvalidConfig("open_files_max must be at least 8"));
        }
        Ok(())
    }
}

/// Kafka's `cleanup.policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CleanupPolicy {
    /// Old segments are deleted by time and size.
    #[default]
    Delete,
    /// Only the last record of each key is kept.
    Compact,
    /// Both.
    CompactDelete,
}

impl CleanupPolicy {
    /// Whether retention by time and size applies.
    pub fn deletes(self) -> bool {
        matches!(self, Self::Delete | Self::CompactDelete)
    }

    /// Whether compaction applies.
    pub fn compacts(self) -> bool {
        matches!(self, Self::Compact | Self::CompactDelete)
    }
}

/// The topic configurations that concern the log. Names and meaning are Kafka's.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`.
    pub segment_bytes: u64,
    /// `segment.ms`.
    pub segment_ms: i64,
    /// `segment.index.bytes`: a full index rolls the segment.
    pub segment_index_bytes: u64,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u64,
    /// `retention.bytes`; negative keeps all.
    pub retention_bytes: i64,
    /// `retention.ms`; negative keeps all.
    pub retention_ms: i64,
    /// `cleanup.policy`.
    pub cleanup_policy: CleanupPolicy,
    /// `delete.retention.ms`: how long a tombstone is kept.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio`.
    pub min_cleanable_dirty_ratio: f64,
    /// Ours: appends may use the free space that is kept back. For the log of the metadata: deletions go through it, and give
    /// space back.
    pub uses_reserve: bool,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 604_800_000,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_bytes: -1,
            retention_ms: 604_800_000,
            cleanup_policy: CleanupPolicy::Delete,
            delete_retention_ms: 86_400_000,
            min_compaction_lag_ms: 0,
            min_cleanable_dirty_ratio: 0.5,
            uses_reserve: false,
        }
    }
}

/// A raft vote as saved in the journal: the term this replica is in and whom it voted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Vote {
    /// Raft term.
    pub term: u64,
    /// Whether a majority granted it, so that `node` leads this term.
    pub committed: bool,
    /// Node voted for, −1 for none.
    pub node: i64,
}
