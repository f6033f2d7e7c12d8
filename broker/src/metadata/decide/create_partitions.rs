//! CreatePartitions: more partitions for topics that exist. Pure.

use super::placement::{check_assignment, check_replication_factor, partition_record, place};
use super::{Decision, PARTITIONS_PER_REQUEST_MAX, Refusal};
use crate::metadata::image::Image;
use crate::metadata::record::MetadataRecord;
use protocol::messages::create_partitions_request::CreatePartitionsTopic;
use protocol::{ErrorCode, Str};

/// Decides each topic apart; the reply has one result per topic, in order.
#[must_use]
pub fn create_partitions(
    image: &Image,
    brokers: &[i32],
    topics: &[CreatePartitionsTopic],
) -> Decision<Vec<(Str, Result<(), Refusal>)>> {
    let mut records = Vec::new();
    let mut reply = Vec::with_capacity(topics.len());
    for topic in topics {
        let result = if topics.iter().filter(|other| other.name == topic.name).count() > 1 {
            Err(Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name"))
        } else {
            grow(image, brokers, topic).map(|new| records.extend(new))
        };
        reply.push((topic.name.clone(), result));
    }
    Decision { records, reply }
}

fn grow(
    image: &Image,
    brokers: &[i32],
    wanted: &CreatePartitionsTopic,
) -> Result<Vec<MetadataRecord>, Refusal> {
    let Some(topic) = image.topic(&wanted.name) else {
        return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, "This topic does not exist"));
    };
    let refuse = |text: String| Err(Refusal::new(ErrorCode::InvalidPartitions, text));
    let present = topic.partitions.len();
    let count = usize::try_from(wanted.count).unwrap_or(0);
    if count == present {
        return refuse(format!("Topic already has {present} partition(s)"));
    }
    if count < present {
        return refuse(format!(
            "The topic {} currently has {present} partition(s); {} would not be an increase",
            wanted.name, wanted.count
        ));
    }
    if count - present > PARTITIONS_PER_REQUEST_MAX {
        return refuse(format!("A request can add {PARTITIONS_PER_REQUEST_MAX} partitions at most"));
    }
    let factor = topic.partitions.first().map_or(1, |p| p.replicas.len());
    let assignments = match &wanted.assignments {
        None => None,
        Some(given) if given.len() != count - present => {
            return Err(Refusal::new(
                ErrorCode::InvalidReplicaAssignment,
                format!("{} partition(s) to add, but {} assignment(s)", count - present, given.len()),
            ));
        }
        Some(given) => Some(given),
    };
    let factor_i16 = i16::try_from(factor).unwrap_or(i16::MAX);
    check_replication_factor(brokers, factor_i16)?;
    let mut records = Vec::with_capacity(count - present);
    for (added, partition) in (present..count).enumerate() {
        let partition = i32::try_from(partition).unwrap_or(i32::MAX);
        let replicas = match assignments.and_then(|given| given.get(added)) {
            Some(given) => {
                check_assignment(brokers, &given.broker_ids, Some(factor))?;
                given.broker_ids.clone()
            }
            None => place(brokers, partition, factor_i16),
        };
        records.push(partition_record(topic.id, partition, replicas));
    }
    Ok(records)
}
