//! DescribeTopicPartitions (75): partitions of topics in pages (KIP-966).

use super::call::{Api, Call, Reply};
use super::common::TOPIC_OPERATIONS;
use crate::metadata::{Image, PartitionImage, TopicImage, topic_name};
use protocol::messages::describe_topic_partitions_request::DescribeTopicPartitionsRequest;
use protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
};
use protocol::{ErrorCode, Str};

/// Partitions of one answer, Kafka's `max.request.partition.size.limit`.
const PARTITIONS_MAX: usize = 2000;

pub(crate) struct DescribeTopicPartitions;

impl Api for DescribeTopicPartitions {
    type Request = DescribeTopicPartitionsRequest;

    async fn handle(call: Call<DescribeTopicPartitionsRequest>) -> Reply<DescribeTopicPartitionsResponse> {
        page(&call.shard.image(), &call.request).map_or(Reply::Close, Reply::Response)
    }
}

/// One page; none for a cursor that makes no sense. Kafka has no field for that error.
fn page(image: &Image, request: &DescribeTopicPartitionsRequest) -> Option<DescribeTopicPartitionsResponse> {
    let (from, mut skip) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.clone(), usize::try_from(cursor.partition_index).ok()?),
        None => (Str::new(), 0),
    };
    let all = request.topics.is_empty();
    let names: Vec<Str> = if all {
        image.topics_from(&from).map(|topic| topic.name.clone()).collect()
    } else {
        let mut names: Vec<Str> = request.topics.iter().map(|topic| topic.name.clone()).collect();
        names.retain(|name| *name >= from);
        names.sort_unstable();
        names.dedup();
        names
    };
    if names.first() != Some(&from) {
        if request.cursor.is_some() && !all {
            return None;
        }
        skip = 0;
    }
    let wanted = usize::try_from(request.response_partition_limit).unwrap_or(0);
    let mut left = wanted.clamp(1, PARTITIONS_MAX);
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names {
        let Some(topic) = image.topic(&name) else {
            response.topics.push(missing(name));
            continue;
        };
        if left == 0 {
            response.next_cursor = Some(Cursor { topic_name: name, partition_index: 0 });
            break;
        }
        let end = topic.partitions.len().min(skip.saturating_add(left));
        response.topics.push(describe(topic, skip, end));
        left -= end.saturating_sub(skip);
        if end < topic.partitions.len() {
            let partition_index = i32::try_from(end).unwrap_or(i32::MAX);
            response.next_cursor = Some(Cursor { topic_name: name, partition_index });
            break;
        }
        skip = 0;
    }
    Some(response)
}

fn missing(name: Str) -> DescribeTopicPartitionsResponseTopic {
    let error = match topic_name::check(&name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(_) => ErrorCode::InvalidTopicException,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code: error.code(),
        is_internal: topic_name::is_internal(&name),
        name: Some(name),
        topic_authorized_operations: TOPIC_OPERATIONS,
        ..Default::default()
    }
}

fn describe(topic: &TopicImage, from: usize, to: usize) -> DescribeTopicPartitionsResponseTopic {
    let partitions = (0..).zip(&topic.partitions).skip(from).take(to.saturating_sub(from));
    DescribeTopicPartitionsResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic_name::is_internal(&topic.name),
        partitions: partitions.map(|(index, partition)| describe_partition(index, partition)).collect(),
        topic_authorized_operations: TOPIC_OPERATIONS,
        ..Default::default()
    }
}

fn describe_partition(
    partition_index: i32,
    partition: &PartitionImage,
) -> DescribeTopicPartitionsResponsePartition {
    DescribeTopicPartitionsResponsePartition {
        partition_index,
        leader_id: partition.leader,
        leader_epoch: partition.leader_epoch,
        replica_nodes: partition.replicas.clone(),
        isr_nodes: partition.isr.clone(),
        // Raft needs no eligible leader replicas.
        eligible_leader_replicas: Some(Vec::new()),
        last_known_elr: Some(Vec::new()),
        ..Default::default()
    }
}
