//! What a topic's configuration means to the broker: the node's defaults with the topic's own values over them, parsed once.
//!
//! Owns: `TopicSettings`, and Kafka's topic configurations that no setting of the node stands for: most have no effect.
//! Does not own: names, types and bounds of those that have an effect (`config`).

use crate::config::{CleanupPolicy, CompressionType, Kind, NodeConfig, TimestampType};
use protocol::Str;
use protocol::record::Codec;
use std::collections::BTreeMap;

/// The settings of one topic that requests and partitions look at.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicSettings {
    /// The largest batch that is accepted, in bytes.
    pub max_message_bytes: usize,
    /// Whose clock records show.
    pub timestamp_type: TimestampType,
    /// How far a record's timestamp may lie before the broker's clock, in milliseconds.
    pub timestamp_before_max_ms: i64,
    /// How far a record's timestamp may lie after the broker's clock, in milliseconds.
    pub timestamp_after_max_ms: i64,
    /// How batches are compressed in the log.
    pub compression: CompressionType,
    /// What happens to old records.
    pub cleanup: CleanupPolicy,
    /// True where `flush.messages` asks for Kafka's way: acknowledge when the leader has the batch in memory.
    pub acknowledge_from_memory: bool,
    /// Replicas that must hold a batch before acks=all is answered.
    pub min_insync_replicas: i32,
    /// What the log itself needs to know.
    pub log: storage::LogConfig,
}

impl TopicSettings {
    /// The settings of a topic with these overrides. An override that no longer parses, which only an older release can
    /// have let in, leaves the default in place.
    #[must_use]
    pub fn resolve(defaults: &NodeConfig, overrides: &BTreeMap<Str, Str>) -> TopicSettings {
        let own = overrides.iter().filter(|(name, _)| passive(name).is_none());
        let mut settings = match defaults.for_topic(own.map(|(name, value)| (&**name, &**value))) {
            Ok(config) => TopicSettings::from_config(&config),
            Err(reason) => {
                tracing::warn!(reason, "a topic configuration is ignored");
                TopicSettings::from_config(defaults)
            }
        };
        let value = |name: &str| overrides.iter().find(|(known, _)| ***known == *name).map(|(_, v)| v.trim());
        if let Some(ratio) = value(MIN_CLEANABLE_DIRTY_RATIO).and_then(|value| value.parse().ok()) {
            settings.log.min_cleanable_dirty_ratio = ratio;
        }
        if let Some(lag) = value(MIN_COMPACTION_LAG_MS).and_then(|value| value.parse().ok()) {
            settings.log.min_compaction_lag_ms = lag;
        }
        settings
    }

    /// The codec that batches are kept in; none for that of the producer.
    #[must_use]
    pub fn codec(&self) -> Option<Codec> {
        match self.compression {
            CompressionType::Producer => None,
            CompressionType::Uncompressed => Some(Codec::None),
            CompressionType::Gzip => Some(Codec::Gzip),
            CompressionType::Snappy => Some(Codec::Snappy),
            CompressionType::Lz4 => Some(Codec::Lz4),
            CompressionType::Zstd => Some(Codec::Zstd),
        }
    }

    fn from_config(config: &NodeConfig) -> TopicSettings {
        TopicSettings {
            max_message_bytes: usize::try_from(config.message_max_bytes).unwrap_or(0),
            timestamp_type: config.log_message_timestamp_type,
            timestamp_before_max_ms: config.log_message_timestamp_before_max_ms,
            timestamp_after_max_ms: config.log_message_timestamp_after_max_ms,
            compression: config.compression_type,
            cleanup: config.log_cleanup_policy,
            acknowledge_from_memory: config.log_flush_interval_messages > 1,
            min_insync_replicas: config.min_insync_replicas,
            log: log_config(config),
        }
    }
}

fn log_config(config: &NodeConfig) -> storage::LogConfig {
    let size = |bytes: i32| u64::try_from(bytes).unwrap_or(0);
    storage::LogConfig {
        segment_bytes: size(config.log_segment_bytes),
        segment_ms: config.roll_ms(),
        segment_index_bytes: size(config.log_index_size_max_bytes),
        index_interval_bytes: size(config.log_index_interval_bytes),
        retention_bytes: config.log_retention_bytes,
        retention_ms: config.retention_ms().unwrap_or(-1),
        cleanup_policy: match config.log_cleanup_policy {
            CleanupPolicy { compact: false, .. } => storage::CleanupPolicy::Delete,
            CleanupPolicy { compact: true, delete: false } => storage::CleanupPolicy::Compact,
            CleanupPolicy { compact: true, delete: true } => storage::CleanupPolicy::CompactDelete,
        },
        delete_retention_ms: config.log_cleaner_delete_retention_ms,
        ..storage::LogConfig::default()
    }
}

/// Checks one override that a client asks for; the error is a sentence for that client.
pub fn check(name: &str, value: &str) -> Result<(), String> {
    match passive(name) {
        Some(known) => known.check(value),
        None => NodeConfig::default().for_topic([(name, value)]).map(|_| ()),
    }
}

/// A topic configuration of Kafka that is accepted and shown, and of which the node has no default of its own.
#[derive(Debug)]
pub struct Passive {
    /// Kafka's name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Kafka's default.
    pub default: &'static str,
    /// Why it has no effect, or which.
    pub doc: &'static str,
}

const fn row(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Passive {
    Passive { name, kind, default, doc }
}

const MIN_CLEANABLE_DIRTY_RATIO: &str = "min.cleanable.dirty.ratio";
const MIN_COMPACTION_LAG_MS: &str = "min.compaction.lag.ms";

/// All of them, by name.
pub const PASSIVE: &[Passive] = &[
    row(
        "compression.gzip.level",
        Kind::Int,
        "-1",
        "Where the broker compresses, it does so at its own level.",
    ),
    row("compression.lz4.level", Kind::Int, "9", "Where the broker compresses, it does so at its own level."),
    row(
        "compression.zstd.level",
        Kind::Int,
        "3",
        "Where the broker compresses, it does so at its own level.",
    ),
    row("file.delete.delay.ms", Kind::Long, "60000", "Deleted segments go as soon as nobody reads them."),
    row("max.compaction.lag.ms", Kind::Long, "9223372036854775807", "Compaction sets its own pace."),
    row(
        MIN_CLEANABLE_DIRTY_RATIO,
        Kind::String,
        "0.5",
        "Share of a partition that must be new before it is compacted again.",
    ),
    row(MIN_COMPACTION_LAG_MS, Kind::Long, "0", "Records younger than this are not compacted."),
    row("preallocate", Kind::Boolean, "false", "The journal is always preallocated."),
    row(
        "segment.jitter.ms",
        Kind::Long,
        "0",
        "Segments are written lazily, so that rolling them costs no latency.",
    ),
    row(
        "unclean.leader.election.enable",
        Kind::Boolean,
        "false",
        "A partition is never led by a replica that lacks records.",
    ),
];

/// The row of this name.
#[must_use]
pub fn passive(name: &str) -> Option<&'static Passive> {
    PASSIVE.iter().find(|row| row.name == name)
}

impl Passive {
    fn check(&self, value: &str) -> Result<(), String> {
        let value = value.trim();
        let valid = match self.kind {
            Kind::Boolean => value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false"),
            Kind::Int => value.parse::<i32>().is_ok(),
            Kind::Long => value.parse::<i64>().is_ok_and(|n| n >= 0),
            // The one fraction among them.
            Kind::String => value.parse::<f64>().is_ok_and(|n| (0.0..=1.0).contains(&n)),
            Kind::List => true,
        };
        if valid { Ok(()) } else { Err(format!("Invalid value {value:?} for configuration {}", self.name)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_is_configured_by_the_topic() {
        let overrides = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| (Str::from(*name), Str::from(*value))).collect()
        };
        let resolve = |pairs| TopicSettings::resolve(&NodeConfig::default(), &overrides(pairs)).log;
        let own = resolve(&[
            ("cleanup.policy", "compact"),
            ("min.cleanable.dirty.ratio", "0.1"),
            ("min.compaction.lag.ms", "7"),
            ("delete.retention.ms", "9"),
        ]);
        assert_eq!(own.cleanup_policy, storage::CleanupPolicy::Compact);
        assert_eq!((own.min_cleanable_dirty_ratio, own.min_compaction_lag_ms), (0.1, 7));
        assert_eq!(own.delete_retention_ms, 9);
        let none = resolve(&[]);
        assert_eq!((none.min_cleanable_dirty_ratio, none.min_compaction_lag_ms), (0.5, 0));
    }
}
