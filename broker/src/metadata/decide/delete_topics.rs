//! DeleteTopics: by name or by id. Pure.

use super::{Decision, Refusal};
use crate::metadata::image::Image;
use crate::metadata::record::MetadataRecord;
use protocol::messages::RemoveTopicRecord;
use protocol::messages::delete_topics_request::DeleteTopicState;
use protocol::{ErrorCode, Str, Uuid};
use std::collections::{BTreeMap, BTreeSet};

/// What became of one topic that a client asked to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// Its name, if known.
    pub name: Option<Str>,
    /// Its id, zero if not known.
    pub id: Uuid,
    /// The outcome.
    pub result: Result<(), Refusal>,
}

/// Decides each topic apart; what is named twice is refused, as Kafka does.
#[must_use]
pub fn delete_topics(image: &Image, topics: &[DeleteTopicState]) -> Decision<Vec<Deleted>> {
    let mut reply = Vec::with_capacity(topics.len());
    let mut refuse = |name: Option<Str>, id: Uuid, error: ErrorCode, text: &str| {
        reply.push(Deleted { name, id, result: Err(Refusal::new(error, text)) });
    };
    let mut names: BTreeMap<&Str, u32> = BTreeMap::new();
    let mut ids: BTreeMap<Uuid, u32> = BTreeMap::new();
    for topic in topics {
        match (&topic.name, topic.topic_id.is_zero()) {
            (None, true) => {
                refuse(
                    None,
                    Uuid::ZERO,
                    ErrorCode::InvalidRequest,
                    "Neither topic name nor id were specified",
                );
            }
            (Some(name), false) => refuse(
                Some(name.clone()),
                topic.topic_id,
                ErrorCode::InvalidRequest,
                "You may not specify both topic name and topic id",
            ),
            (Some(name), true) => *names.entry(name).or_default() += 1,
            (None, false) => *ids.entry(topic.topic_id).or_default() += 1,
        }
    }
    let mut doomed: BTreeSet<Uuid> = BTreeSet::new();
    for (id, count) in ids {
        if count > 1 {
            refuse(None, id, ErrorCode::InvalidRequest, "Duplicate topic id");
        } else if image.topic_by_id(&id).is_none() {
            refuse(None, id, ErrorCode::UnknownTopicId, "This server does not host this topic ID");
        } else {
            doomed.insert(id);
        }
    }
    for (name, count) in names {
        match image.topic(name) {
            _ if count > 1 => {
                refuse(Some(name.clone()), Uuid::ZERO, ErrorCode::InvalidRequest, "Duplicate topic name")
            }
            None => refuse(
                Some(name.clone()),
                Uuid::ZERO,
                ErrorCode::UnknownTopicOrPartition,
                "This server does not host this topic",
            ),
            Some(topic) if !doomed.insert(topic.id) => {
                doomed.remove(&topic.id);
                refuse(
                    Some(name.clone()),
                    topic.id,
                    ErrorCode::InvalidRequest,
                    "The provided topic name maps to an ID that was already supplied",
                );
            }
            Some(_) => {}
        }
    }
    let mut records = Vec::with_capacity(doomed.len());
    for id in doomed {
        records.push(MetadataRecord::RemoveTopic(RemoveTopicRecord { topic_id: id }));
        let name = image.topic_by_id(&id).map(|t| t.name.clone());
        reply.push(Deleted { name, id, result: Ok(()) });
    }
    Decision { records, reply }
}
