//! The table of APIs: what ApiVersions advertises, what requests are routed by, and what `docs/compatibility.md` lists.

use super::call::{self, Answer, Api, Frame};
use super::{
    api_versions, create_partitions, create_topics, delete_groups, delete_records, delete_topics,
    describe_cluster, describe_configs, describe_groups, describe_topic_partitions, fetch, find_coordinator,
    heartbeat, init_producer_id, join_group, leave_group, list_groups, list_offsets, metadata, offset_commit,
    offset_delete, offset_fetch, offset_for_leader_epoch, produce, sync_group,
};
use protocol::ApiKey;
use protocol::messages::Request;
use std::fmt::Write as _;

/// One row.
pub struct Entry {
    /// The API.
    pub key: ApiKey,
    /// Lowest version that is served.
    pub min: i16,
    /// Highest version that is served.
    pub max: i16,
    /// Lowest version that ApiVersions names; below `min` for Produce alone, for the sake of librdkafka (KAFKA-18659).
    pub advertised_min: i16,
    pub(crate) run: fn(Frame) -> Answer,
}

const fn entry<A: Api>(min: i16, max: i16) -> Entry {
    Entry { key: A::Request::KEY, min, max, advertised_min: min, run: call::run::<A> }
}

/// Every API that is served, by key.
pub const REGISTRY: &[Entry] = &[
    Entry { advertised_min: 0, ..entry::<produce::Produce>(3, 13) },
    entry::<fetch::Fetch>(4, 18),
    entry::<list_offsets::ListOffsets>(1, 11),
    entry::<metadata::Metadata>(0, 13),
    entry::<offset_commit::OffsetCommit>(2, 10),
    entry::<offset_fetch::OffsetFetch>(1, 10),
    entry::<find_coordinator::FindCoordinator>(0, 6),
    entry::<join_group::JoinGroup>(0, 9),
    entry::<heartbeat::Heartbeat>(0, 4),
    entry::<leave_group::LeaveGroup>(0, 5),
    entry::<sync_group::SyncGroup>(0, 5),
    entry::<describe_groups::DescribeGroups>(0, 6),
    entry::<list_groups::ListGroups>(0, 5),
    entry::<api_versions::ApiVersions>(0, 5),
    entry::<create_topics::CreateTopics>(2, 7),
    entry::<delete_topics::DeleteTopics>(1, 6),
    entry::<delete_records::DeleteRecords>(0, 2),
    entry::<init_producer_id::InitProducerId>(0, 5),
    entry::<offset_for_leader_epoch::OffsetForLeaderEpoch>(2, 4),
    entry::<describe_configs::DescribeConfigs>(1, 4),
    entry::<create_partitions::CreatePartitions>(0, 3),
    entry::<delete_groups::DeleteGroups>(0, 3),
    entry::<offset_delete::OffsetDelete>(0, 0),
    entry::<describe_cluster::DescribeCluster>(0, 2),
    entry::<describe_topic_partitions::DescribeTopicPartitions>(0, 0),
];

/// The row of an API.
#[must_use]
pub fn find(key: i16) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.key as i16 == key)
}

/// The table of `docs/compatibility.md`.
#[must_use]
pub fn markdown_table() -> String {
    let mut table = String::from("| Key | API | Versions served | Kafka 4.4 |\n|---|---|---|---|\n");
    for entry in REGISTRY {
        let (kafka_min, kafka_max) = entry.key.versions();
        let key = entry.key as i16;
        let mut served = range(entry.min, entry.max);
        if entry.advertised_min < entry.min {
            let _ = write!(served, " (advertised from {})", entry.advertised_min);
        }
        let _ =
            writeln!(table, "| {key} | {} | {served} | {} |", entry.key.name(), range(kafka_min, kafka_max));
    }
    table
}

fn range(min: i16, max: i16) -> String {
    if min == max { min.to_string() } else { format!("{min}–{max}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_rise_and_versions_exist() {
        assert!(REGISTRY.windows(2).all(|pair| (pair[0].key as i16) < pair[1].key as i16));
        for entry in REGISTRY {
            let (min, max) = entry.key.versions();
            assert!(min <= entry.min && entry.max <= max, "{}", entry.key.name());
        }
    }

    #[test]
    fn every_served_api_has_kafkas_versions() {
        for entry in REGISTRY {
            assert_eq!((entry.min, entry.max), entry.key.versions(), "{}", entry.key.name());
        }
    }

    #[test]
    fn the_documentation_lists_what_is_served() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/compatibility.md");
        let page = std::fs::read_to_string(path).expect("docs/compatibility.md is there");
        let table = markdown_table();
        assert!(page.contains(&table), "put this table into docs/compatibility.md:\n\n{table}");
    }
}
