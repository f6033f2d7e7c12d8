//! ListOffsets (2): the earliest and latest offsets, those of a time, and that of the largest timestamp (KIP-734).
//!
//! Without tiered storage the earliest local offset is the earliest one, and what tiered storage holds is answered with -1.

use super::call::{Api, Call};
use super::common::{ask_owners, locate};
use crate::partition::Partition;
use protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};
use protocol::{ErrorCode, Str};
use std::collections::BTreeSet;
use std::rc::Rc;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

pub(crate) struct ListOffsets;

/// What is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    offset: i64,
    timestamp: i64,
    leader_epoch: i32,
}

const NOTHING: Found = Found { offset: -1, timestamp: -1, leader_epoch: -1 };

impl Api for ListOffsets {
    type Request = ListOffsetsRequest;

    async fn handle(call: Call<ListOffsetsRequest>) -> ListOffsetsResponse {
        let version = call.version();
        let image = call.shard.image();
        let mut seen: BTreeSet<(&Str, i32)> = BTreeSet::new();
        let mut twice: BTreeSet<(&Str, i32)> = BTreeSet::new();
        let all = || {
            let topics = call.request.topics.iter();
            topics.flat_map(|topic| topic.partitions.iter().map(move |partition| (&topic.name, partition)))
        };
        for (topic, partition) in all() {
            if !seen.insert((topic, partition.partition_index)) {
                twice.insert((topic, partition.partition_index));
            }
        }
        let questions = all().map(|(topic, partition)| {
            if twice.contains(&(topic, partition.partition_index)) {
                return Err(ErrorCode::InvalidRequest);
            }
            if !is_supported(partition.timestamp, version) {
                return Err(ErrorCode::UnsupportedVersion);
            }
            let id = locate(&image, topic, partition.partition_index)?;
            Ok((id, (partition.timestamp, partition.current_leader_epoch)))
        });
        let questions = questions.collect();
        let mut answers = ask_owners(&call.shard, questions, |partition, (timestamp, believed)| async move {
            partition.check_leader_epoch(believed)?;
            find(&partition, timestamp).await
        })
        .await
        .into_iter();
        let topics = call.request.topics.iter().map(|topic| ListOffsetsTopicResponse {
            name: topic.name.clone(),
            partitions: topic
                .partitions
                .iter()
                .map(|partition| respond(partition.partition_index, answers.next(), version))
                .collect(),
        });
        ListOffsetsResponse { topics: topics.collect(), ..ListOffsetsResponse::default() }
    }
}

/// The first version that knows a special timestamp, as in Kafka.
fn is_supported(timestamp: i64, version: i16) -> bool {
    let since = match timestamp {
        LATEST | EARLIEST => 0,
        MAX_TIMESTAMP => 7,
        EARLIEST_LOCAL => 8,
        LATEST_TIERED => 9,
        EARLIEST_PENDING_UPLOAD => 11,
        other => return other >= 0,
    };
    version >= since
}

async fn find(partition: &Rc<Partition>, timestamp: i64) -> Result<Found, ErrorCode> {
    let log = partition.group().log();
    let high_watermark = partition.high_watermark();
    let at = |offset, leader_epoch| Found { offset, timestamp: -1, leader_epoch };
    let found = match timestamp {
        LATEST => at(high_watermark, partition.leader_epoch()),
        EARLIEST | EARLIEST_LOCAL => at(log.log_start_offset(), -1),
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => NOTHING,
        MAX_TIMESTAMP => visible(log.max_timestamp().await, high_watermark)?,
        timestamp => visible(log.find_by_timestamp(timestamp).await, high_watermark)?,
    };
    Ok(found)
}

/// A record that was found, if clients can see it yet.
fn visible(
    found: Result<Option<(i64, i64, i32)>, storage::ReadError>,
    high_watermark: i64,
) -> Result<Found, ErrorCode> {
    let found = found.map_err(|error| crate::partition::read_error(&error))?;
    let found = found.filter(|(offset, ..)| *offset < high_watermark);
    Ok(found.map_or(NOTHING, |(offset, timestamp, leader_epoch)| Found { offset, timestamp, leader_epoch }))
}

fn respond(
    partition_index: i32,
    answer: Option<Result<Found, ErrorCode>>,
    version: i16,
) -> ListOffsetsPartitionResponse {
    let (found, error) = match answer {
        Some(Ok(found)) => (found, ErrorCode::None),
        Some(Err(error)) => (NOTHING, error),
        None => (NOTHING, ErrorCode::NotLeaderOrFollower),
    };
    ListOffsetsPartitionResponse {
        partition_index,
        error_code: error.code(),
        timestamp: found.timestamp,
        offset: found.offset,
        leader_epoch: if version >= 4 { found.leader_epoch } else { -1 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_timestamps_come_with_versions() {
        for (timestamp, since) in
            [(LATEST, 1), (EARLIEST, 1), (MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9)]
        {
            assert!(is_supported(timestamp, since));
            assert!(since == 1 || !is_supported(timestamp, since - 1), "{timestamp}");
        }
        assert!(is_supported(0, 1) && is_supported(i64::MAX, 1));
        assert!(!is_supported(-7, 11) && !is_supported(i64::MIN, 11));
    }

    #[test]
    fn records_beyond_the_high_watermark_are_not_found() {
        assert_eq!(visible(Ok(Some((5, 1, 0))), 5), Ok(NOTHING));
        assert_eq!(visible(Ok(Some((4, 1, 0))), 5).map(|found| found.offset), Ok(4));
        assert_eq!(visible(Ok(None), 5), Ok(NOTHING));
    }
}
