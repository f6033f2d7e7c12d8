//! The table of settings: every key that a configuration may hold, in one place.
//! Parsing, bounds, DescribeConfigs, `--help-config` and `docs/configuration.md` are all made of it.
//!
//! 1. No key is a dotted prefix of another, so that nested TOML tables work; Kafka's `max.connections` is the exception.
//! 2. A default lies within its own bounds, and its text form parses back to it.

use std::path::PathBuf;

use super::setting::{Setting, Spec, Unit, settings};
use super::types::{CleanupPolicy, CompressionType, HttpListener, Listener, TimestampType};
use super::value::Value;

const I32_MAX: i64 = i32::MAX as i64;
const HOUR_MS: i64 = 3_600_000;
const MIB: i64 = 1 << 20;

settings! {
    section "Node" {
        /// This node's number in its cluster, which never changes once data exists.
        node_id: i32 = 1, Spec::kafka("node.id").alias("broker.id").at_least(0).example("1");
        /// The cluster's id; when unset, the first start draws one and keeps it in the data directory.
        cluster_id: Option<String> = None, Spec::ours("cluster.id").example("\"4L6g3nShT-eMCtK--X86sw\"");
        /// The one directory that holds all data of this node (required).
        data_dir: PathBuf = PathBuf::new(),
            Spec::kafka("log.dirs").alias("log.dir").example("\"/var/lib/millrace\"");
        /// Number of shards, each one thread; 0 means one for every CPU that the process may use, pinned to it.
        shards: u16 = 0, Spec::ours("shards").between(0, 1024).example("4");
        /// The CPUs that shards are pinned to in turn, as numbers and ranges; unset with a number of shards leaves the choice to the kernel.
        cpus: Option<Vec<usize>> = None, Spec::ours("cpus").example("\"0-3,8\"");
        /// Memory of the whole node for caches, requests and buffers, of which each shard gets an equal part; 0 means 1 GiB, or 64 MiB for each shard where that is more.
        memory_bytes: u64 = 0, Spec::ours("memory.bytes").at_least(0).unit(Unit::Bytes).example("\"4GiB\"");
        /// The part of each shard's memory that caches recent batches, in percent; requests and buffers use the rest.
        cache_memory_percent: u16 = 50, Spec::ours("cache.memory.percent").between(10, 90).example("50");
        /// Address of the HTTP server for metrics and health, or "off".
        http_listener: HttpListener = HttpListener::local(9644),
            Spec::ours("http.listener").example("\"127.0.0.1:9644\"");
    }
    section "Connections and requests" {
        /// Where clients connect; only PLAINTEXT in this release.
        listeners: Vec<Listener> = vec![Listener::plaintext("", 9092)],
            Spec::kafka("listeners").example("[\"PLAINTEXT://0.0.0.0:9092\"]");
        /// The addresses that clients are told to connect to, one for each of `listeners`; unset means the same addresses.
        advertised_listeners: Vec<Listener> = Vec::new(),
            Spec::kafka("advertised.listeners").example("[\"PLAINTEXT://broker-1.example.com:9092\"]");
        /// The largest request that is read; a larger one closes its connection.
        socket_request_max_bytes: i32 = 104_857_600,
            Spec::kafka("socket.request.max.bytes").at_least(1).unit(Unit::Bytes).example("\"100MiB\"");
        /// The most connections of the node at once; more are closed as they arrive.
        max_connections: i32 = i32::MAX, Spec::kafka("max.connections").at_least(0).example("10000");
        /// The most connections from one client address at once.
        max_connections_per_ip: i32 = i32::MAX, Spec::kafka("max.connections.per.ip").at_least(0).example("1000");
        /// A connection without a request for this long is closed; -1 means never.
        connections_max_idle_ms: i64 = 600_000,
            Spec::kafka("connections.max.idle.ms").at_least(-1).unit(Unit::Milliseconds).example("\"10min\"");
        /// Bytes of requests in flight in the node before reading from sockets pauses; -1 means what the memory budget allows.
        queued_max_request_bytes: i64 = -1,
            Spec::kafka("queued.max.request.bytes").at_least(-1).unit(Unit::Bytes).example("\"256MiB\"");
        /// The most bytes that one fetch response holds, whatever the client asks for.
        fetch_max_bytes: i32 = 57_671_680,
            Spec::kafka("fetch.max.bytes").at_least(1024).unit(Unit::Bytes).example("\"55MiB\"");
        /// The most incremental fetch sessions that the node keeps (KIP-227).
        max_incremental_fetch_session_cache_slots: i32 = 1000,
            Spec::kafka("max.incremental.fetch.session.cache.slots").at_least(0).example("1000");
    }
    section "Topics" {
        /// Partitions of a topic that is created without a count.
        num_partitions: i32 = 1, Spec::kafka("num.partitions").between(1, 100_000).example("6");
        /// Replicas of a topic that is created without a count.
        default_replication_factor: i32 = 1,
            Spec::kafka("default.replication.factor").between(1, 32_767).example("1");
        /// Whether a topic that a client asks for is created when it does not exist.
        auto_create_topics_enable: bool = true, Spec::kafka("auto.create.topics.enable").example("true");
        /// Whether clients may delete topics.
        delete_topic_enable: bool = true, Spec::kafka("delete.topic.enable").example("true");
        /// The largest record batch that is accepted.
        message_max_bytes: i32 = 1_048_588,
            Spec::kafka("message.max.bytes").topic("max.message.bytes").at_least(0).unit(Unit::Bytes).example("\"1MiB\"");
        /// How many in-sync replicas must hold a batch before acks=all is answered.
        min_insync_replicas: i32 = 1,
            Spec::kafka("min.insync.replicas").topic("min.insync.replicas").at_least(1).example("1");
        /// How batches are compressed in the log; "producer" keeps them as they came.
        compression_type: CompressionType = CompressionType::Producer,
            Spec::kafka("compression.type").topic("compression.type").example("\"producer\"");
        /// Whose clock a record's timestamp shows.
        log_message_timestamp_type: TimestampType = TimestampType::CreateTime,
            Spec::kafka("log.message.timestamp.type").topic("message.timestamp.type").example("\"CreateTime\"");
        /// How far a record's timestamp may lie before the broker's clock.
        log_message_timestamp_before_max_ms: i64 = i64::MAX,
            Spec::kafka("log.message.timestamp.before.max.ms").topic("message.timestamp.before.max.ms")
                .at_least(0).unit(Unit::Milliseconds).example("\"365d\"");
        /// How far a record's timestamp may lie after the broker's clock.
        log_message_timestamp_after_max_ms: i64 = HOUR_MS,
            Spec::kafka("log.message.timestamp.after.max.ms").topic("message.timestamp.after.max.ms")
                .at_least(0).unit(Unit::Milliseconds).example("\"1h\"");
    }
    section "Log" {
        /// Size at which a partition starts a new segment file.
        log_segment_bytes: i32 = 1 << 30,
            Spec::kafka("log.segment.bytes").topic("segment.bytes").at_least(MIB).unit(Unit::Bytes).example("\"1GiB\"");
        /// Age at which a partition starts a new segment file; when set it overrules log.roll.hours.
        log_roll_ms: Option<i64> = None,
            Spec::kafka("log.roll.ms").topic("segment.ms").at_least(1).unit(Unit::Milliseconds).example("\"7d\"");
        /// Age in hours at which a partition starts a new segment file.
        log_roll_hours: i32 = 168, Spec::kafka("log.roll.hours").at_least(1).unit(Unit::Hours).example("168");
        /// Age at which old segments are deleted, -1 for never; when set it overrules log.retention.minutes and log.retention.hours.
        log_retention_ms: Option<i64> = None,
            Spec::kafka("log.retention.ms").topic("retention.ms").at_least(-1).unit(Unit::Milliseconds).example("\"7d\"");
        /// Age in minutes at which old segments are deleted, -1 for never; when set it overrules log.retention.hours.
        log_retention_minutes: Option<i32> = None,
            Spec::kafka("log.retention.minutes").at_least(-1).unit(Unit::Minutes).example("10080");
        /// Age in hours at which old segments are deleted, -1 for never.
        log_retention_hours: i32 = 168, Spec::kafka("log.retention.hours").at_least(-1).unit(Unit::Hours).example("168");
        /// Size of a partition beyond which its oldest segments are deleted; -1 means no limit.
        log_retention_bytes: i64 = -1,
            Spec::kafka("log.retention.bytes").topic("retention.bytes").at_least(-1).unit(Unit::Bytes).example("\"50GiB\"");
        /// How often the node looks for segments to delete.
        log_retention_check_interval_ms: i64 = 300_000,
            Spec::kafka("log.retention.check.interval.ms").at_least(1).unit(Unit::Milliseconds).example("\"5min\"");
        /// What happens to old records: delete, compact, or both.
        log_cleanup_policy: CleanupPolicy = CleanupPolicy::DELETE,
            Spec::kafka("log.cleanup.policy").topic("cleanup.policy").example("\"delete\"");
        /// How long a compacted partition keeps the marker that a key was deleted.
        log_cleaner_delete_retention_ms: i64 = 24 * HOUR_MS,
            Spec::kafka("log.cleaner.delete.retention.ms").topic("delete.retention.ms")
                .at_least(0).unit(Unit::Milliseconds).example("\"1d\"");
        /// Bytes of a segment between two entries of its indexes.
        log_index_interval_bytes: i32 = 4096,
            Spec::kafka("log.index.interval.bytes").topic("index.interval.bytes").at_least(0).unit(Unit::Bytes).example("4096");
        /// Size at which an index is full and its segment ends.
        log_index_size_max_bytes: i32 = 10_485_760,
            Spec::kafka("log.index.size.max.bytes").topic("segment.index.bytes").at_least(4096).unit(Unit::Bytes).example("\"10MiB\"");
    }
    section "Durability" {
        /// Records of a partition after which a flush is forced. The default 1 answers every acks=all and acks=1 after its flush; a larger value acknowledges from memory, as Apache Kafka does.
        log_flush_interval_messages: i64 = 1,
            Spec::kafka("log.flush.interval.messages").topic("flush.messages").at_least(1).example("1");
        /// Accepted for Apache Kafka's sake, without effect: a flush always follows at once, whether or not the acknowledgement waits for it.
        log_flush_interval_ms: Option<i64> = None,
            Spec::kafka("log.flush.interval.ms").topic("flush.ms").at_least(0).unit(Unit::Milliseconds).example("\"1s\"");
        /// Size of one journal file; each shard writes its files in turn.
        journal_file_bytes: u64 = 64 << 20,
            Spec::ours("journal.file.bytes").between(4 * MIB, 4096 * MIB).unit(Unit::Bytes).example("\"64MiB\"");
        /// The most journal files of a shard; when all are full, writes wait for segments to be flushed.
        journal_files_max: u32 = 8, Spec::ours("journal.files.max").between(2, 1024).example("8");
        /// Free space of the file system that writes leave alone: below it produce is refused with a retryable error.
        storage_min_free_bytes: u64 = 256 << 20,
            Spec::ours("storage.min.free.bytes").at_least(0).unit(Unit::Bytes).example("\"1GiB\"");
        /// Gives up journal blocks that are damaged instead of refusing to start; for one start, by an operator who has no other copy.
        storage_repair: bool = false, Spec::ours("storage.repair").example("false");
    }
    section "Consumer groups" {
        /// Partitions of the topic that keeps consumer groups and their offsets; fixed once it exists.
        offsets_topic_num_partitions: i32 = 50,
            Spec::kafka("offsets.topic.num.partitions").between(1, 10_000).example("50");
        /// How long the offsets of a consumer group without members are kept.
        offsets_retention_minutes: i32 = 10_080,
            Spec::kafka("offsets.retention.minutes").at_least(1).unit(Unit::Minutes).example("\"7d\"");
        /// How often the node looks for offsets past their retention.
        offsets_retention_check_interval_ms: i64 = 600_000,
            Spec::kafka("offsets.retention.check.interval.ms").at_least(1).unit(Unit::Milliseconds).example("\"10min\"");
        /// The longest text that a client may store beside an offset.
        offset_metadata_max_bytes: i32 = 4096,
            Spec::kafka("offset.metadata.max.bytes").at_least(0).unit(Unit::Bytes).example("4096");
        /// The shortest session timeout that a member may ask for.
        group_min_session_timeout_ms: i32 = 6000,
            Spec::kafka("group.min.session.timeout.ms").at_least(1).unit(Unit::Milliseconds).example("\"6s\"");
        /// The longest session timeout that a member may ask for.
        group_max_session_timeout_ms: i32 = 1_800_000,
            Spec::kafka("group.max.session.timeout.ms").at_least(1).unit(Unit::Milliseconds).example("\"30min\"");
        /// How long an empty consumer group waits for more members before its first rebalance.
        group_initial_rebalance_delay_ms: i32 = 3000,
            Spec::kafka("group.initial.rebalance.delay.ms").at_least(0).unit(Unit::Milliseconds).example("\"3s\"");
        /// The most members of a consumer group.
        group_max_size: i32 = i32::MAX, Spec::kafka("group.max.size").between(1, I32_MAX).example("1000");
    }
    section "Producers" {
        /// How long the state of an idle idempotent producer is kept.
        producer_id_expiration_ms: i32 = 86_400_000,
            Spec::kafka("producer.id.expiration.ms").at_least(1).unit(Unit::Milliseconds).example("\"1d\"");
    }
}

impl NodeConfig {
    /// Age at which old segments are deleted, by Kafka's order of precedence; none means never.
    #[must_use]
    pub fn retention_ms(&self) -> Option<i64> {
        let minutes = || self.log_retention_minutes.map(|m| if m < 0 { -1 } else { i64::from(m) * 60_000 });
        let hours = i64::from(self.log_retention_hours);
        let ms =
            self.log_retention_ms.or_else(minutes).unwrap_or(if hours < 0 { -1 } else { hours * HOUR_MS });
        (ms >= 0).then_some(ms)
    }

    /// Age at which a partition starts a new segment, by Kafka's order of precedence.
    #[must_use]
    pub fn roll_ms(&self) -> i64 {
        self.log_roll_ms.unwrap_or(i64::from(self.log_roll_hours) * HOUR_MS)
    }

    /// The memory of one of `shards` shards, in bytes.
    #[must_use]
    pub fn memory_per_shard_bytes(&self, shards: u16) -> u64 {
        let shards = u64::from(shards.max(1));
        match self.memory_bytes {
            0 => ((1 << 30) / shards).max(64 << 20),
            bytes => bytes / shards,
        }
    }

    /// The part of one shard's memory that caches batches, in bytes.
    #[must_use]
    pub fn cache_per_shard_bytes(&self, shards: u16) -> u64 {
        self.memory_per_shard_bytes(shards) / 100 * u64::from(self.cache_memory_percent)
    }

    /// What clients of the listener with this position in `listeners` are told to connect to.
    #[must_use]
    pub fn advertised(&self, listener: usize) -> Option<&Listener> {
        self.advertised_listeners.get(listener).or_else(|| self.listeners.get(listener))
    }
}
