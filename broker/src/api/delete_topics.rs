//! DeleteTopics (20), by name or by id.

use super::call::{Api, Call};
use crate::metadata::{self, decide};
use protocol::messages::delete_topics_request::DeleteTopicState;
use protocol::messages::delete_topics_response::DeletableTopicResult;
use protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse};
use protocol::{ErrorCode, Str, Uuid};

/// Versions from here on know TOPIC_DELETION_DISABLED, and from 6 on name topics in `topics`.
const DISABLED_FROM: i16 = 3;

pub(crate) struct DeleteTopics;

impl Api for DeleteTopics {
    type Request = DeleteTopicsRequest;

    async fn handle(call: Call<DeleteTopicsRequest>) -> DeleteTopicsResponse {
        let version = call.version();
        let Call { shard, request, .. } = call;
        let names = request.topic_names.into_iter();
        let by_name = names.map(|name| DeleteTopicState { name: Some(name), topic_id: Uuid::ZERO });
        let wanted: Vec<DeleteTopicState> = request.topics.into_iter().chain(by_name).collect();
        if !shard.config.delete_topic_enable {
            let disabled = if version < DISABLED_FROM {
                ErrorCode::InvalidRequest
            } else {
                ErrorCode::TopicDeletionDisabled
            };
            return all(wanted, disabled, "delete.topic.enable is false");
        }
        let asked = wanted.clone();
        match metadata::change(&shard, move |image| decide::delete_topics(image, &asked)).await {
            Ok(deleted) => {
                let responses = deleted.into_iter().map(|topic| {
                    let refusal = topic.result.err();
                    DeletableTopicResult {
                        name: topic.name,
                        topic_id: topic.id,
                        error_code: refusal.as_ref().map_or(ErrorCode::None, |refusal| refusal.error).code(),
                        error_message: refusal.map(|refusal| Str::from(refusal.message)),
                    }
                });
                DeleteTopicsResponse { responses: responses.collect(), ..DeleteTopicsResponse::default() }
            }
            Err(error) => {
                let refusal = error.refusal();
                all(wanted, refusal.error, &refusal.message)
            }
        }
    }
}

fn all(wanted: Vec<DeleteTopicState>, error: ErrorCode, message: &str) -> DeleteTopicsResponse {
    let responses = wanted.into_iter().map(|topic| DeletableTopicResult {
        name: topic.name,
        topic_id: topic.topic_id,
        error_code: error.code(),
        error_message: Some(Str::from(message)),
    });
    DeleteTopicsResponse { responses: responses.collect(), ..DeleteTopicsResponse::default() }
}
