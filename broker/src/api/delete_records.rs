//! DeleteRecords (21): moves the log start offset forward.

use super::call::{Api, Call};
use super::common::{ask_owners, locate};
use crate::metadata::topic_name;
use crate::partition::storage_error;
use protocol::ErrorCode;
use protocol::messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

/// Stands for the high watermark.
const ALL: i64 = -1;

pub(crate) struct DeleteRecords;

impl Api for DeleteRecords {
    type Request = DeleteRecordsRequest;

    async fn handle(call: Call<DeleteRecordsRequest>) -> DeleteRecordsResponse {
        let image = call.shard.image();
        let topics = &call.request.topics;
        let questions = topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|asked| {
                let id = locate(&image, &topic.name, asked.partition_index)?;
                if topic_name::is_internal(&topic.name) {
                    return Err(ErrorCode::InvalidTopicException);
                }
                let settings = image.topic_by_id(&id.topic_id).map(|topic| topic.settings.cleanup);
                // Kafka refuses it for topics that are compacted only.
                if settings.is_some_and(|cleanup| !cleanup.delete) {
                    return Err(ErrorCode::PolicyViolation);
                }
                Ok((id, asked.offset))
            })
        });
        let questions = questions.collect();
        let mut answers = ask_owners(&call.shard, questions, |partition, wanted| async move {
            let high_watermark = partition.high_watermark();
            let offset = if wanted == ALL { high_watermark } else { wanted };
            if !(0..=high_watermark).contains(&offset) {
                return Err(ErrorCode::OffsetOutOfRange);
            }
            let log = partition.group().log();
            if offset > log.log_start_offset() {
                log.set_log_start_offset(offset).await.map_err(|error| storage_error(&error))?;
            }
            Ok(log.log_start_offset())
        })
        .await
        .into_iter();
        let topics = topics.iter().map(|topic| DeleteRecordsTopicResult {
            name: topic.name.clone(),
            partitions: topic
                .partitions
                .iter()
                .map(|asked| {
                    let answer = answers.next().unwrap_or(Err(ErrorCode::NotLeaderOrFollower));
                    DeleteRecordsPartitionResult {
                        partition_index: asked.partition_index,
                        low_watermark: answer.unwrap_or(-1),
                        error_code: answer.err().unwrap_or(ErrorCode::None).code(),
                    }
                })
                .collect(),
        });
        DeleteRecordsResponse { topics: topics.collect(), ..DeleteRecordsResponse::default() }
    }
}
