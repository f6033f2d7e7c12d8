//! OffsetFetch (9): how far consumer groups have read; one group up to version 7, several from version 8 on.
//!
//! Offsets of topics that are gone are not shown, nor those of a former topic of the same name. There are no open
//! transactions, so every offset is stable and `require_stable` changes nothing.

use super::call::{Api, Call, Reply};
use crate::coordinator::ask;
use crate::coordinator::group::{self, Request};
use crate::metadata::Image;
use crate::shard::Shard;
use futures::future::join_all;
use protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use protocol::messages::{OffsetFetchRequest, OffsetFetchResponse};
use protocol::{ErrorCode, Str, Uuid};
use std::future::Future;
use std::rc::Rc;

/// From this version on an error of the whole group has a place of its own.
const VERSION_GROUP_ERROR: i16 = 2;
const VERSION_BATCHED: i16 = 8;
const VERSION_TOPIC_IDS: i16 = 10;

pub(crate) struct OffsetFetch;

impl Api for OffsetFetch {
    type Request = OffsetFetchRequest;

    fn handle(
        call: Call<OffsetFetchRequest>,
    ) -> impl Future<Output: Into<Reply<OffsetFetchResponse>>> + 'static {
        let version = call.version();
        let request = call.request;
        let groups = match version {
            VERSION_BATCHED.. => request.groups,
            _ => vec![single(request)],
        };
        let fetches: Vec<_> = groups.into_iter().map(|group| fetch(&call.shard, version, group)).collect();
        async move { respond(version, join_all(fetches).await) }
    }
}

/// The group of a request before version 8, in the form of the later ones.
fn single(request: OffsetFetchRequest) -> OffsetFetchRequestGroup {
    let topics = request.topics.map(|topics| {
        let topics = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name,
            topic_id: Uuid::ZERO,
            partition_indexes: topic.partition_indexes,
        });
        topics.collect()
    });
    OffsetFetchRequestGroup { group_id: request.group_id, topics, ..OffsetFetchRequestGroup::default() }
}

/// Asks the coordinator of one group.
fn fetch(
    shard: &Rc<Shard>,
    version: i16,
    mut group: OffsetFetchRequestGroup,
) -> impl Future<Output = OffsetFetchResponseGroup> + use<> {
    let image = shard.image();
    let asked = group.clone();
    // Topics that do not exist are answered here.
    let mut unknown = Vec::new();
    if let Some(topics) = &mut group.topics {
        topics.retain_mut(|topic| {
            let known = match version {
                VERSION_TOPIC_IDS.. => image.topic_by_id(&topic.topic_id),
                _ => image.topic(&topic.name),
            };
            match known {
                Some(known) => (topic.name, topic.topic_id) = (known.name.clone(), known.id),
                None => unknown.push(topic.clone()),
            }
            known.is_some()
        });
    }
    let answer = ask(shard, &asked.group_id, Request::OffsetFetch(group));
    async move {
        match answer.await {
            group::Reply::OffsetFetch(mut group) if group.error_code == 0 => {
                if asked.topics.is_none() {
                    keep_existing(&image, &mut group.topics);
                }
                let error =
                    if version >= VERSION_TOPIC_IDS { ErrorCode::UnknownTopicId } else { ErrorCode::None };
                group.topics.extend(unknown.iter().map(|topic| without_offsets(topic, error)));
                group
            }
            group::Reply::OffsetFetch(group) => group,
            other => failed(version, &asked, other.error()),
        }
    }
}

/// Leaves out what belongs to topics that are gone.
fn keep_existing(image: &Image, topics: &mut Vec<OffsetFetchResponseTopics>) {
    topics.retain_mut(|topic| match image.topic(&topic.name) {
        Some(known) if topic.topic_id.is_zero() || topic.topic_id == known.id => {
            topic.topic_id = known.id;
            true
        }
        _ => false,
    });
}

fn without_offsets(topic: &OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics {
    let partition = |index: &i32| OffsetFetchResponsePartitions {
        partition_index: *index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(Str::new()),
        error_code: error.code(),
    };
    OffsetFetchResponseTopics {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partition_indexes.iter().map(partition).collect(),
    }
}

/// A group that cannot be asked. Version 1 has room for an error at each partition only.
fn failed(version: i16, asked: &OffsetFetchRequestGroup, error: ErrorCode) -> OffsetFetchResponseGroup {
    let group_id = asked.group_id.clone();
    if version >= VERSION_GROUP_ERROR {
        let error_code = error.code();
        return OffsetFetchResponseGroup { group_id, error_code, ..OffsetFetchResponseGroup::default() };
    }
    let topics = asked.topics.iter().flatten().map(|topic| without_offsets(topic, error)).collect();
    OffsetFetchResponseGroup { group_id, topics, ..OffsetFetchResponseGroup::default() }
}

fn respond(version: i16, groups: Vec<OffsetFetchResponseGroup>) -> OffsetFetchResponse {
    if version >= VERSION_BATCHED {
        return OffsetFetchResponse { groups, ..OffsetFetchResponse::default() };
    }
    let group = groups.into_iter().next().unwrap_or_default();
    let partition = |it: OffsetFetchResponsePartitions| OffsetFetchResponsePartition {
        partition_index: it.partition_index,
        committed_offset: it.committed_offset,
        committed_leader_epoch: it.committed_leader_epoch,
        metadata: it.metadata,
        error_code: it.error_code,
    };
    let topic = |it: OffsetFetchResponseTopics| OffsetFetchResponseTopic {
        name: it.name,
        partitions: it.partitions.into_iter().map(partition).collect(),
    };
    let topics = group.topics.into_iter().map(topic).collect();
    OffsetFetchResponse { topics, error_code: group.error_code, ..OffsetFetchResponse::default() }
}
