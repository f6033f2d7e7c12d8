//! OffsetCommit, OffsetFetch and OffsetDelete.
//!
//! A consumer group may commit without members: generation -1 makes a *simple* group, of which only offsets are
//! stored. There are no pending transactions here, so every committed offset is stable.

use std::collections::BTreeMap;

use protocol::messages::offset_commit_request::{OffsetCommitRequest, OffsetCommitRequestPartition};
use protocol::messages::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use protocol::messages::offset_commit_value::OffsetCommitValue;
use protocol::messages::offset_delete_request::OffsetDeleteRequest;
use protocol::messages::offset_delete_response::{
    OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};
use protocol::{ErrorCode, Str, Uuid};

use super::membership::{Membership, State};
use super::message::{Reply, RequestId};
use super::record::Record;
use super::state::{CommittedOffset, GroupOffsets};
use super::turn::Turn;

/// From this version an unknown consumer group has an error of its own.
const VERSION_GROUP_ID_NOT_FOUND: i16 = 9;
/// "The broker decides how long": the retention time of clients that do not set one.
const DEFAULT_RETENTION: i64 = -1;

impl Turn<'_> {
    pub(super) fn commit_offsets(&mut self, request: RequestId, version: i16, body: &OffsetCommitRequest) {
        let error = self.check_commit(version, body);
        if error != ErrorCode::None {
            return self.fail(request, error);
        }
        if let Some(membership) = self.soft.live.remove(&body.group_id) {
            // A commit shows that its member is alive.
            if membership.state() != State::Empty {
                self.renew_session(&membership, &body.member_id);
            }
            self.keep(membership);
        }
        let expire_timestamp = match body.retention_time_ms {
            DEFAULT_RETENTION => -1,
            retention_ms => self.now_ms.saturating_add(retention_ms),
        };
        let mut topics = Vec::with_capacity(body.topics.len());
        for topic in &body.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for partition in &topic.partitions {
                let error =
                    self.commit_offset(body, (&topic.name, topic.topic_id), partition, expire_timestamp);
                partitions.push(OffsetCommitResponsePartition {
                    partition_index: partition.partition_index,
                    error_code: error.code(),
                });
            }
            topics.push(OffsetCommitResponseTopic {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                partitions,
            });
        }
        self.reply(request, Reply::OffsetCommit(OffsetCommitResponse { topics, ..Default::default() }));
    }

    fn commit_offset(
        &mut self,
        body: &OffsetCommitRequest,
        (topic, topic_id): (&Str, Uuid),
        partition: &OffsetCommitRequestPartition,
        expire_timestamp: i64,
    ) -> ErrorCode {
        let metadata = partition.committed_metadata.clone().unwrap_or_default();
        if metadata.len() > self.hard.config.offset_metadata_max_bytes {
            return ErrorCode::OffsetMetadataTooLarge;
        }
        // The version of a record with an expiry has no place for the other two.
        let expires = expire_timestamp != -1;
        let value = OffsetCommitValue {
            offset: partition.committed_offset,
            leader_epoch: if expires { -1 } else { partition.committed_leader_epoch },
            metadata,
            commit_timestamp: self.now_ms,
            expire_timestamp,
            topic_id: if expires { Uuid::ZERO } else { topic_id },
        };
        self.record(Record::Offset {
            group_id: body.group_id.clone(),
            topic: topic.clone(),
            partition: partition.partition_index,
            value: Some(value),
        });
        ErrorCode::None
    }

    /// NONE when the sender may commit for this consumer group.
    fn check_commit(&self, version: i16, body: &OffsetCommitRequest) -> ErrorCode {
        let generation = body.generation_id_or_member_epoch;
        if !self.exists(&body.group_id) {
            return match generation {
                ..0 if !self.has_room() => ErrorCode::CoordinatorNotAvailable,
                ..0 => ErrorCode::None,
                _ if version >= VERSION_GROUP_ID_NOT_FOUND => ErrorCode::GroupIdNotFound,
                _ => ErrorCode::IllegalGeneration,
            };
        }
        if generation < 0 && self.state(&body.group_id) == State::Empty {
            // An administrator, or a consumer that assigns its partitions itself.
            return ErrorCode::None;
        }
        let Some(membership) = self.soft.live.get(&body.group_id) else { return ErrorCode::UnknownMemberId };
        match membership.validate(&body.member_id, body.group_instance_id.as_ref()) {
            ErrorCode::None if generation != membership.generation => ErrorCode::IllegalGeneration,
            ErrorCode::None if membership.state() == State::CompletingRebalance => {
                ErrorCode::RebalanceInProgress
            }
            error => error,
        }
    }

    pub(super) fn fetch_offsets(&mut self, request: RequestId, body: OffsetFetchRequestGroup) {
        let offsets = self.hard.offsets(&body.group_id);
        let topics = match &body.topics {
            None => offsets.map(all_topics).unwrap_or_default(),
            Some(topics) => topics.iter().map(|topic| asked_topic(offsets, topic)).collect(),
        };
        let group = OffsetFetchResponseGroup { group_id: body.group_id, topics, ..Default::default() };
        self.reply(request, Reply::OffsetFetch(group));
    }

    pub(super) fn delete_offsets(&mut self, request: RequestId, body: &OffsetDeleteRequest) {
        let group_id = &body.group_id;
        if group_id.is_empty() {
            return self.fail(request, ErrorCode::InvalidGroupId);
        }
        let Some(membership) = self.take(group_id) else {
            return self.fail(request, ErrorCode::GroupIdNotFound);
        };
        if membership.state() != State::Empty && !membership.is_of_consumers() {
            self.fail(request, ErrorCode::NonEmptyGroup);
            return self.keep(membership);
        }
        let mut topics = Vec::with_capacity(body.topics.len());
        for topic in &body.topics {
            let is_read = reads(&membership, &topic.name);
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for partition in &topic.partitions {
                let error = if is_read { ErrorCode::GroupSubscribedToTopic } else { ErrorCode::None };
                let index = partition.partition_index;
                if !is_read && self.committed(group_id, &topic.name, index).is_some() {
                    self.forget_offset(group_id, &topic.name, index);
                }
                partitions
                    .push(OffsetDeleteResponsePartition { partition_index: index, error_code: error.code() });
            }
            topics.push(OffsetDeleteResponseTopic { name: topic.name.clone(), partitions });
        }
        self.keep(membership);
        self.reply(request, Reply::OffsetDelete(OffsetDeleteResponse { topics, ..Default::default() }));
    }

    fn committed(&self, group_id: &str, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.hard.offsets(group_id)?.get(topic)?.get(&partition)
    }

    /// Stores that the offset of one partition is gone.
    pub(super) fn forget_offset(&mut self, group_id: &Str, topic: &Str, partition: i32) {
        let (group_id, topic) = (group_id.clone(), topic.clone());
        self.record(Record::Offset { group_id, topic, partition, value: None });
    }
}

/// True when the offsets of this topic are in use by members.
fn reads(membership: &Membership, topic: &str) -> bool {
    membership.state() != State::Empty && membership.subscribes_to(topic)
}

/// Everything, each topic once for every id that its offsets carry: of a topic that was deleted and made again, the
/// caller leaves the old one out.
fn all_topics(offsets: &GroupOffsets) -> Vec<OffsetFetchResponseTopics> {
    let mut topics: BTreeMap<(&Str, Uuid), Vec<OffsetFetchResponsePartitions>> = BTreeMap::new();
    for (topic, partitions) in offsets {
        for (index, committed) in partitions {
            let shown = partition_offset(*index, Some(committed));
            topics.entry((topic, committed.topic_id)).or_default().push(shown);
        }
    }
    let one = |((name, topic_id), partitions): ((&Str, Uuid), Vec<OffsetFetchResponsePartitions>)| {
        OffsetFetchResponseTopics { name: name.clone(), topic_id, partitions }
    };
    topics.into_iter().map(one).collect()
}

fn asked_topic(
    offsets: Option<&GroupOffsets>,
    topic: &OffsetFetchRequestTopics,
) -> OffsetFetchResponseTopics {
    let committed = offsets.and_then(|topics| topics.get(&topic.name));
    // An offset of a topic that was deleted and made again says nothing about the new one.
    let is_of_topic = |it: &&CommittedOffset| {
        it.topic_id.is_zero() || topic.topic_id.is_zero() || it.topic_id == topic.topic_id
    };
    let one = |index: &i32| {
        let offset = committed.and_then(|partitions| partitions.get(index)).filter(is_of_topic);
        partition_offset(*index, offset)
    };
    OffsetFetchResponseTopics {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partition_indexes.iter().map(one).collect(),
    }
}

fn partition_offset(
    partition_index: i32,
    committed: Option<&CommittedOffset>,
) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: committed.map_or(-1, |it| it.offset),
        committed_leader_epoch: committed.map_or(-1, |it| it.leader_epoch),
        metadata: Some(committed.map(|it| it.metadata.clone()).unwrap_or_default()),
        ..Default::default()
    }
}
