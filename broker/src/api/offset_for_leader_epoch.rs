//! OffsetForLeaderEpoch (23): where a leader epoch ends, for clients that look for divergence (KIP-320).

use super::call::{Api, Call};
use super::common::{ask_owners, locate};
use protocol::ErrorCode;
use protocol::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

pub(crate) struct OffsetForLeaderEpoch;

impl Api for OffsetForLeaderEpoch {
    type Request = OffsetForLeaderEpochRequest;

    async fn handle(call: Call<OffsetForLeaderEpochRequest>) -> OffsetForLeaderEpochResponse {
        let image = call.shard.image();
        let topics = &call.request.topics;
        let questions = topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|asked| {
                let id = locate(&image, &topic.topic, asked.partition)?;
                Ok((id, (asked.current_leader_epoch, asked.leader_epoch)))
            })
        });
        let questions = questions.collect();
        let mut answers = ask_owners(&call.shard, questions, |partition, (believed, wanted)| async move {
            partition.check_leader_epoch(believed)?;
            Ok(partition.group().log().epoch_end_offset(wanted))
        })
        .await
        .into_iter();
        let topics = topics.iter().map(|topic| OffsetForLeaderTopicResult {
            topic: topic.topic.clone(),
            partitions: topic
                .partitions
                .iter()
                .map(|asked| {
                    let answer = answers.next().unwrap_or(Err(ErrorCode::NotLeaderOrFollower));
                    let (leader_epoch, end_offset) = answer.unwrap_or((-1, -1));
                    let error_code = answer.err().unwrap_or(ErrorCode::None).code();
                    EpochEndOffset { error_code, partition: asked.partition, leader_epoch, end_offset }
                })
                .collect(),
        });
        OffsetForLeaderEpochResponse { topics: topics.collect(), ..OffsetForLeaderEpochResponse::default() }
    }
}
