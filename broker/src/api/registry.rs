//! The table of APIs: what ApiVersions advertises, what requests are routed by, and what `docs/compatibility.md` lists.

use super::call::{self, Answer, Api, Frame};
use super::{
    api_versions, create_partitions, create_topics, delete_records, delete_topics, describe_cluster, describe_configs,
    describe_topic_partitions, fetch, init_producer_id, list_offsets, metadata, offset_for_leader_epoch, produce,
};
use protocol::ApiKey;
use protocol::messages::Request;

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
    entry::<api_versions::ApiVersions>(0, 5),
    entry::<create_topics::CreateTopics>(2, 7),
    entry::<delete_topics::DeleteTopics>(1, 6),
    entry::<delete_records::DeleteRecords>(0, 2),
    entry::<init_producer_id::InitProducerId>(0, 5),
    entry::<offset_for_leader_epoch::OffsetForLeaderEpoch>(2, 4),
    entry::<describe_configs::DescribeConfigs>(1, 4),
    entry::<create_partitions::CreatePartitions>(0, 3),
    entry::<describe_cluster::DescribeCluster>(0, 2),
    entry::<describe_topic_partitions::DescribeTopicPartitions>(0, 0),
];

/// The row of an API.
#[must_use]
pub fn find(key: i16) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.key as i16 == key)
}
