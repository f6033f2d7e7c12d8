//! OffsetCommit (8): a consumer group stores how far it has read.
//!
//! Only partitions that exist are committed. From version 10 on topics are named by id; the id is stored in any case, so
//! that a topic made anew under an old name does not inherit the offsets of the old one.

use super::call::{Api, Call, Reply};
use crate::coordinator::ask;
use crate::coordinator::group::{self, Request};
use crate::metadata::Image;
use futures::FutureExt;
use futures::future::ready;
use protocol::ErrorCode;
use protocol::messages::offset_commit_request::OffsetCommitRequestTopic;
use protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};
use std::future::Future;

const VERSION_TOPIC_IDS: i16 = 10;

pub(crate) struct OffsetCommit;

impl Api for OffsetCommit {
    type Request = OffsetCommitRequest;

    // Not `async`: commits of one connection are decided in the order in which they came.
    fn handle(
        call: Call<OffsetCommitRequest>,
    ) -> impl Future<Output: Into<Reply<OffsetCommitResponse>>> + 'static {
        let version = call.version();
        let mut body = call.request;
        let image = call.shard.image();
        let topics = std::mem::take(&mut body.topics).into_iter();
        let (plan, accepted): (Vec<_>, Vec<_>) = topics.map(|topic| resolve(&image, version, topic)).unzip();
        body.topics = accepted.into_iter().flatten().collect();
        if body.topics.is_empty() {
            return ready(respond(plan, Ok(OffsetCommitResponse::default()))).left_future();
        }
        let group_id = body.group_id.clone();
        let answer = ask(&call.shard, &group_id, Request::OffsetCommit { version, body });
        let response = answer.map(|answer| match answer {
            group::Reply::OffsetCommit(response) => respond(plan, Ok(response)),
            other => respond(plan, Err(other.error())),
        });
        response.right_future()
    }
}

/// The answer for one topic, in which partitions without an error are the coordinator's to answer, and what of the
/// topic goes to the coordinator.
fn resolve(
    image: &Image,
    version: i16,
    mut topic: OffsetCommitRequestTopic,
) -> (OffsetCommitResponseTopic, Option<OffsetCommitRequestTopic>) {
    let (known, unknown) = match version {
        VERSION_TOPIC_IDS.. => (image.topic_by_id(&topic.topic_id), ErrorCode::UnknownTopicId),
        _ => (image.topic(&topic.name), ErrorCode::UnknownTopicOrPartition),
    };
    let count = known.map_or(0, |known| known.partitions.len());
    let exists = |index: i32| usize::try_from(index).is_ok_and(|index| index < count);
    let missing = if known.is_some() { ErrorCode::UnknownTopicOrPartition } else { unknown };
    let planned = topic.partitions.iter().map(|it| OffsetCommitResponsePartition {
        partition_index: it.partition_index,
        error_code: if exists(it.partition_index) { ErrorCode::None } else { missing }.code(),
    });
    let plan = OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: planned.collect(),
    };
    topic.partitions.retain(|it| exists(it.partition_index));
    if let Some(known) = known {
        topic.name = known.name.clone();
        topic.topic_id = known.id;
    }
    let accepted = (!topic.partitions.is_empty()).then_some(topic);
    (plan, accepted)
}

/// Fills the coordinator's answers, which come in the order of the plan, into it.
fn respond(
    mut plan: Vec<OffsetCommitResponseTopic>,
    answer: Result<OffsetCommitResponse, ErrorCode>,
) -> OffsetCommitResponse {
    let (answered, failed) = match answer {
        Ok(response) => (response.topics, ErrorCode::None),
        Err(error) => (Vec::new(), error),
    };
    let mut errors = answered.into_iter().flat_map(|topic| topic.partitions).map(|it| it.error_code);
    let open = plan.iter_mut().flat_map(|topic| &mut topic.partitions).filter(|it| it.error_code == 0);
    for partition in open {
        partition.error_code = errors.next().unwrap_or(failed.code());
    }
    OffsetCommitResponse { topics: plan, ..OffsetCommitResponse::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Str;

    fn topic(name: &str, errors: &[ErrorCode]) -> OffsetCommitResponseTopic {
        let partition = |(index, error): (usize, &ErrorCode)| OffsetCommitResponsePartition {
            partition_index: index as i32,
            error_code: error.code(),
        };
        let partitions = errors.iter().enumerate().map(partition).collect();
        OffsetCommitResponseTopic {
            name: Str::from(name),
            partitions,
            ..OffsetCommitResponseTopic::default()
        }
    }

    #[test]
    fn answers_are_filled_in_where_the_plan_has_none() {
        use ErrorCode::{None as Open, OffsetMetadataTooLarge as Large, UnknownTopicOrPartition as Unknown};
        let plan = || vec![topic("a", &[Open, Unknown]), topic("b", &[Unknown]), topic("c", &[Open])];
        let answer = OffsetCommitResponse {
            topics: vec![topic("a", &[Open]), topic("c", &[Large])],
            ..OffsetCommitResponse::default()
        };
        let expected = vec![topic("a", &[Open, Unknown]), topic("b", &[Unknown]), topic("c", &[Large])];
        assert_eq!(respond(plan(), Ok(answer)).topics, expected);

        let failed = ErrorCode::NotCoordinator;
        let expected = vec![topic("a", &[failed, Unknown]), topic("b", &[Unknown]), topic("c", &[failed])];
        assert_eq!(respond(plan(), Err(failed)).topics, expected);
    }
}
