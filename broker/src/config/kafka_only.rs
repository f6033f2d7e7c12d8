//! Names that Apache Kafka has and Millrace does not: ignored with a warning where nothing is lost by it,
//! refused where ignoring would promise what is not kept (security, other roles).

use super::entry::{Entry, Raw};

/// What becomes of a setting of Apache Kafka that Millrace does not have.
pub(super) enum Verdict {
    /// It has no effect, for this reason.
    Ignored(&'static str),
    /// The node does not start, for this reason.
    Refused(&'static str),
}

/// Exact names and prefixes (with a dot at the end) of settings without effect, and why.
const IGNORED: &[(&str, &str)] = &[
    ("num.network.threads", "each shard does its own network I/O"),
    ("num.io.threads", "each shard does its own disk I/O"),
    ("num.recovery.threads.per.data.dir", "each shard recovers its own data"),
    ("num.replica.fetchers", "replicas do not fetch"),
    ("background.threads", "each shard does its own background work"),
    ("queued.max.requests", "queues are bounded in bytes, by queued.max.request.bytes"),
    ("socket.send.buffer.bytes", "the kernel sizes socket buffers"),
    ("socket.receive.buffer.bytes", "the kernel sizes socket buffers"),
    ("socket.listen.backlog.size", "the kernel's limit is used"),
    ("log.segment.delete.delay.ms", "deleted segments go as soon as nobody reads them"),
    ("log.preallocate", "the journal is always preallocated"),
    ("log.flush.scheduler.interval.ms", "the journal flushes by itself"),
    ("log.flush.offset.checkpoint.interval.ms", "checkpoints follow the journal"),
    ("log.flush.start.offset.checkpoint.interval.ms", "checkpoints follow the journal"),
    ("log.cleaner.", "compaction sets its own pace"),
    ("offsets.topic.replication.factor", "this release runs one node"),
    ("offsets.topic.segment.bytes", "log.segment.bytes applies"),
    ("offsets.topic.compression.codec", "the topic is not compressed"),
    ("offsets.load.buffer.size", "loading uses the shard's memory budget"),
    ("transaction.state.log.", "this release has no transactions"),
    ("group.coordinator.", "coordinators run on the shards"),
    ("transactional.id.expiration.ms", "this release has no transactions"),
    ("group.consumer.", "this release has classic consumer groups"),
    ("share.coordinator.", "this release has no share groups"),
    ("group.share.", "this release has no share groups"),
    ("controller.listener.names", "the controller has no listener of its own"),
    ("controller.quorum.", "this release runs one node"),
    ("inter.broker.listener.name", "this release runs one node"),
    ("process.roles", "every node has both roles"),
    ("replica.", "this release runs one node"),
    ("leader.imbalance.", "this release runs one node"),
    ("auto.leader.rebalance.enable", "this release runs one node"),
    ("metadata.log.", "metadata lives in the data directory"),
    ("metric.reporters", "metrics are served over HTTP, see http.listener"),
    ("metrics.", "metrics are served over HTTP, see http.listener"),
    ("auto.include.jmx.reporter", "metrics are served over HTTP, see http.listener"),
    ("confluent.", "it belongs to another product"),
];

/// Prefixes of settings that a user would miss.
const REFUSED: &[(&str, &str)] = &[
    ("ssl.", "TLS is not available in this release"),
    ("sasl.", "SASL is not available in this release"),
    ("listener.name.", "settings per listener are not available in this release"),
    ("authorizer.", "ACLs are not available in this release"),
    ("super.users", "ACLs are not available in this release"),
    ("allow.everyone.if.no.acl.found", "ACLs are not available in this release"),
    ("security.", "TLS and SASL are not available in this release"),
    ("password.encoder.", "TLS and SASL are not available in this release"),
    ("delegation.token.", "SASL is not available in this release"),
    ("client.quota.callback.", "quotas are not available in this release"),
    ("create.topic.policy.", "policies in Java cannot be loaded"),
    ("alter.config.policy.", "policies in Java cannot be loaded"),
    ("zookeeper.", "ZooKeeper is not used, and its metadata cannot be read"),
    ("remote.log.", "tiered storage is not available in this release"),
];

/// What becomes of this name; none if Apache Kafka does not have it either, as far as is known here.
pub(super) fn verdict(key: &str) -> Option<Verdict> {
    let hit =
        |(name, _): &&(&str, &str)| if name.ends_with('.') { key.starts_with(name) } else { key == *name };
    if key == "listener.security.protocol.map" {
        return Some(Verdict::Ignored("listeners are named by their protocol"));
    }
    let refused = REFUSED.iter().find(hit).map(|(_, why)| Verdict::Refused(why));
    refused.or_else(|| IGNORED.iter().find(hit).map(|(_, why)| Verdict::Ignored(why)))
}

/// Drops the listeners that `controller.listener.names` names: in Kafka's files they stand among `listeners`.
pub(super) fn without_controller_listeners(mut entries: Vec<Entry>) -> Vec<Entry> {
    let text = |entry: &Entry| match &entry.raw {
        Raw::Text(text) => text.clone(),
        _ => String::new(),
    };
    let names = entries.iter().find(|e| e.key == "controller.listener.names").map(text).unwrap_or_default();
    let names: Vec<&str> = names.split(',').map(str::trim).filter(|n| !n.is_empty()).collect();
    for entry in entries.iter_mut().filter(|e| e.key.ends_with("listeners")) {
        let all = text(entry);
        let kept = all.split(',').filter(|l| !names.iter().any(|n| l.trim().starts_with(&format!("{n}://"))));
        entry.raw = Raw::Text(kept.collect::<Vec<_>>().join(","));
    }
    entries
}
