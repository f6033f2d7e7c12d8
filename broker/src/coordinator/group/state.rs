//! [`ConsumerGroups`]: the stored state of one coordinator, which is exactly what its partition of
//! `__consumer_offsets` says.
//!
//! Owns generations, members with assignments, and committed offsets. Does not own who is waiting or joining right
//! now ([`super::Soft`]).
//!
//! Invariants:
//! 1. Only [`ConsumerGroups::apply`] changes it.
//! 2. The same records in the same order give the same state.
//! 3. No map holds an empty inner map.
//! 4. Nothing in it shares memory with a request.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use protocol::messages::group_metadata_value::{GroupMetadataValue, MemberMetadata};
use protocol::messages::offset_commit_value::OffsetCommitValue;
use protocol::{Str, Uuid};

use super::config::GroupConfig;
use super::record::Record;

/// Committed offsets of one consumer group: topic, partition.
pub(super) type GroupOffsets = BTreeMap<Str, BTreeMap<i32, CommittedOffset>>;

/// The consumer groups of one coordinator, as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerGroups {
    pub(super) config: GroupConfig,
    groups: BTreeMap<Str, StoredGroup>,
    offsets: BTreeMap<Str, GroupOffsets>,
}

/// The last stored generation of a consumer group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredGroup {
    /// `None` for a group that no member ever joined.
    pub(super) protocol_type: Option<Str>,
    pub(super) generation: i32,
    pub(super) protocol: Option<Str>,
    pub(super) leader: Option<Str>,
    /// Wall clock of the last change of state; `None` when the writer was too old to say.
    pub(super) state_since_ms: Option<i64>,
    /// By member id.
    pub(super) members: BTreeMap<Str, StoredMember>,
}

/// A member of a stored generation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredMember {
    pub(super) instance_id: Option<Str>,
    pub(super) client_id: Str,
    pub(super) client_host: Str,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
    /// Metadata of the protocol in use.
    pub(super) subscription: Bytes,
    /// What the leader gave it.
    pub(super) assignment: Bytes,
}

/// What a consumer group committed for one partition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CommittedOffset {
    pub(super) offset: i64,
    /// -1: the client did not say.
    pub(super) leader_epoch: i32,
    pub(super) metadata: Str,
    pub(super) commit_timestamp_ms: i64,
    /// Only clients before Kafka 2.1 choose it themselves.
    pub(super) expire_timestamp_ms: Option<i64>,
    /// Zero: unknown when it was committed.
    pub(super) topic_id: Uuid,
}

impl ConsumerGroups {
    /// A coordinator that has stored nothing.
    pub fn new(config: GroupConfig) -> Self {
        Self { config, groups: BTreeMap::new(), offsets: BTreeMap::new() }
    }

    /// Takes over one stored record.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::GroupMetadata { group_id, value: Some(value) } => {
                self.groups.insert(group_id.detached(), StoredGroup::from(value));
            }
            Record::GroupMetadata { group_id, value: None } => {
                self.groups.remove(group_id);
            }
            Record::Offset { group_id, topic, partition, value: Some(value) } => {
                let topics = entry(&mut self.offsets, group_id);
                entry(topics, topic).insert(*partition, CommittedOffset::from(value));
            }
            Record::Offset { group_id, topic, partition, value: None } => {
                self.forget_offset(group_id, topic, *partition);
            }
        }
    }

    fn forget_offset(&mut self, group_id: &str, topic: &str, partition: i32) {
        let Some(topics) = self.offsets.get_mut(group_id) else { return };
        if let Some(partitions) = topics.get_mut(topic) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                topics.remove(topic);
            }
        }
        if topics.is_empty() {
            self.offsets.remove(group_id);
        }
    }

    /// True when anything is stored of this consumer group: a group that only commits offsets has no metadata.
    pub(super) fn exists(&self, group_id: &str) -> bool {
        self.groups.contains_key(group_id) || self.offsets.contains_key(group_id)
    }

    /// Number of consumer groups with metadata, and an upper bound for the others.
    pub(super) fn len_bound(&self) -> usize {
        self.groups.len().max(self.offsets.len())
    }

    pub(super) fn group(&self, group_id: &str) -> Option<&StoredGroup> {
        self.groups.get(group_id)
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = (&Str, &StoredGroup)> {
        self.groups.iter()
    }

    pub(super) fn offsets(&self, group_id: &str) -> Option<&GroupOffsets> {
        self.offsets.get(group_id)
    }

    /// Ids of all consumer groups, in order, each once.
    pub(super) fn group_ids(&self) -> impl Iterator<Item = &Str> {
        let simple = self.offsets.keys().filter(|id| !self.groups.contains_key(id.as_str()));
        let mut ids: Vec<&Str> = self.groups.keys().chain(simple).collect();
        ids.sort_unstable();
        ids.into_iter()
    }

    /// Topics (name, id) with an offset that was committed before this wall clock; those without an id are left out.
    pub fn topics_committed_before(&self, ms: i64) -> BTreeSet<(Str, Uuid)> {
        let topics = self.offsets.values().flatten();
        let offsets = topics.flat_map(|(topic, partitions)| partitions.values().map(move |it| (topic, it)));
        let known = offsets.filter(|(_, it)| !it.topic_id.is_zero() && it.commit_timestamp_ms < ms);
        known.map(|(topic, it)| (topic.clone(), it.topic_id)).collect()
    }

    /// The assignment of a member in the stored generation, empty when it has none.
    pub(super) fn assignment(&self, group_id: &str, member_id: &str) -> Bytes {
        let member = self.groups.get(group_id).and_then(|group| group.members.get(member_id));
        member.map(|member| member.assignment.clone()).unwrap_or_default()
    }
}

/// The inner map of `key`, which gets memory of its own when it is new (invariant 4).
fn entry<'a, V: Default>(map: &'a mut BTreeMap<Str, V>, key: &Str) -> &'a mut V {
    if !map.contains_key(key) {
        map.insert(key.detached(), V::default());
    }
    map.entry(key.clone()).or_default()
}

impl From<&GroupMetadataValue> for StoredGroup {
    fn from(value: &GroupMetadataValue) -> Self {
        let timestamp = value.current_state_timestamp;
        Self {
            protocol_type: (!value.protocol_type.is_empty()).then(|| value.protocol_type.detached()),
            generation: value.generation,
            protocol: value.protocol.as_ref().map(Str::detached),
            leader: value.leader.as_ref().map(Str::detached),
            state_since_ms: (timestamp != -1).then_some(timestamp),
            members: value
                .members
                .iter()
                .map(|member| (member.member_id.detached(), member.into()))
                .collect(),
        }
    }
}

impl From<&MemberMetadata> for StoredMember {
    fn from(member: &MemberMetadata) -> Self {
        let rebalance_timeout_ms = match member.rebalance_timeout {
            -1 => member.session_timeout,
            given => given,
        };
        Self {
            instance_id: member.group_instance_id.as_ref().map(Str::detached),
            client_id: member.client_id.detached(),
            client_host: member.client_host.detached(),
            rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout,
            subscription: Bytes::copy_from_slice(&member.subscription),
            assignment: Bytes::copy_from_slice(&member.assignment),
        }
    }
}

impl From<&OffsetCommitValue> for CommittedOffset {
    fn from(value: &OffsetCommitValue) -> Self {
        Self {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: value.metadata.detached(),
            commit_timestamp_ms: value.commit_timestamp,
            expire_timestamp_ms: (value.expire_timestamp != -1).then_some(value.expire_timestamp),
            topic_id: value.topic_id,
        }
    }
}
