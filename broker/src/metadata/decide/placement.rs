//! Which brokers hold a partition. Pure.

use super::Refusal;
use crate::metadata::record::MetadataRecord;
use protocol::messages::PartitionRecord;
use protocol::{ErrorCode, Uuid};

/// The brokers that partitions may be placed on, in ascending order. One, until replication comes.
pub(super) fn check_replication_factor(brokers: &[i32], factor: i16) -> Result<(), Refusal> {
    if usize::try_from(factor).is_ok_and(|f| (1..=brokers.len()).contains(&f)) {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::InvalidReplicationFactor,
        format!("Unable to replicate the partition {factor} time(s): there are {} brokers", brokers.len()),
    ))
}

/// Checks brokers that a client named for one partition.
pub(super) fn check_assignment(
    brokers: &[i32],
    replicas: &[i32],
    factor: Option<usize>,
) -> Result<(), Refusal> {
    let refuse = |text: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, text));
    if replicas.is_empty() {
        return refuse("The manual partition assignment includes an empty replica list".to_owned());
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    if let Some(unknown) = sorted.iter().find(|id| !brokers.contains(id)) {
        return refuse(format!(
            "The manual partition assignment includes broker {unknown}, which is not registered"
        ));
    }
    if sorted.windows(2).any(|pair| pair.first() == pair.last()) {
        return refuse("The manual partition assignment includes a broker more than once".to_owned());
    }
    match factor {
        Some(wanted) if wanted != replicas.len() => refuse(format!(
            "The manual partition assignment includes a partition with {} replica(s), but the others have {wanted}",
            replicas.len()
        )),
        _ => Ok(()),
    }
}

/// Brokers for partition number `partition`: going round from a different one for each.
pub(super) fn place(brokers: &[i32], partition: i32, factor: i16) -> Vec<i32> {
    let start = usize::try_from(partition).unwrap_or(0);
    let factor = usize::try_from(factor).unwrap_or(0);
    brokers
        .iter()
        .cycle()
        .skip(start % brokers.len().max(1))
        .take(factor.min(brokers.len()))
        .copied()
        .collect()
}

/// The record of a new partition, led by its first replica.
pub(super) fn partition_record(topic_id: Uuid, partition: i32, replicas: Vec<i32>) -> MetadataRecord {
    MetadataRecord::Partition(PartitionRecord {
        partition_id: partition,
        topic_id,
        leader: replicas.first().copied().unwrap_or(-1),
        isr: replicas.clone(),
        replicas,
        leader_epoch: 0,
        partition_epoch: 0,
        ..PartitionRecord::default()
    })
}
