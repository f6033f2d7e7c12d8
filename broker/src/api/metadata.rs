//! Metadata (3): brokers, topics, partitions and who leads them; creates topics that are asked for, if allowed.
//!
//! Unlike Kafka, which answers UNKNOWN_TOPIC_OR_PARTITION while a topic is being created, the answer waits until it exists.

use super::call::{Api, Call, Reply};
use super::common::{self, advertised_node};
use crate::metadata::{self, TopicImage, topic_name};
use crate::shard::Shard;
use protocol::messages::metadata_request::MetadataRequestTopic;
use protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use protocol::messages::{MetadataRequest, MetadataResponse};
use protocol::{ErrorCode, Str, Uuid};
use std::rc::Rc;

pub(crate) struct Metadata;

impl Api for Metadata {
    type Request = MetadataRequest;

    async fn handle(call: Call<MetadataRequest>) -> Reply<MetadataResponse> {
        let version = call.version();
        let request = &call.request;
        // Version 0 asks for all topics with an empty list, later ones with null.
        let all = request.topics.as_ref().is_none_or(|topics| version == 0 && topics.is_empty());
        let wanted = request.topics.as_deref().unwrap_or_default();
        if version < 12 && wanted.iter().any(|topic| topic.name.is_none() || !topic.topic_id.is_zero()) {
            return Reply::Close;
        }
        let topics = if all {
            call.shard.image().topics().map(|topic| describe(topic, version, request)).collect()
        } else {
            wanted_topics(&call, wanted).await
        };
        Reply::Response(response(&call, topics))
    }
}

fn response(call: &Call<MetadataRequest>, topics: Vec<MetadataResponseTopic>) -> MetadataResponse {
    let node = advertised_node(&call.shard, &call.connection);
    let operations = call.version() <= 10 && call.request.include_cluster_authorized_operations;
    MetadataResponse {
        brokers: vec![MetadataResponseBroker {
            node_id: node.id,
            host: node.host,
            port: node.port,
            rack: None,
        }],
        cluster_id: Some(Str::from(call.shard.identity().cluster_id.as_str())),
        controller_id: node.id,
        topics,
        cluster_authorized_operations: if operations { common::CLUSTER_OPERATIONS } else { i32::MIN },
        ..MetadataResponse::default()
    }
}

async fn wanted_topics(
    call: &Call<MetadataRequest>,
    wanted: &[MetadataRequestTopic],
) -> Vec<MetadataResponseTopic> {
    let version = call.version();
    let by_id = wanted.iter().any(|topic| !topic.topic_id.is_zero());
    if by_id {
        let image = call.shard.image();
        let ids = wanted.iter().map(|topic| topic.topic_id).filter(|id| !id.is_zero());
        return ids
            .map(|id| match image.topic_by_id(&id) {
                Some(topic) => describe(topic, version, &call.request),
                None => failed(None, id, ErrorCode::UnknownTopicId),
            })
            .collect();
    }
    let mut names: Vec<Str> = wanted.iter().filter_map(|topic| topic.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    let image = call.shard.image();
    let missing: Vec<Str> = names.iter().filter(|name| image.topic(name).is_none()).cloned().collect();
    let create = call.shard.config.auto_create_topics_enable && call.request.allow_auto_topic_creation;
    let errors =
        if create && !missing.is_empty() { auto_create(&call.shard, missing).await } else { Vec::new() };
    let image = call.shard.image();
    names
        .into_iter()
        .map(|name| match image.topic(&name) {
            Some(topic) => describe(topic, version, &call.request),
            None => {
                let error = errors.iter().find(|(failed, _)| *failed == name).map(|(_, error)| *error);
                let id = Uuid::ZERO;
                failed(Some(name.clone()), id, error.unwrap_or_else(|| unknown(&name)))
            }
        })
        .collect()
}

fn unknown(name: &str) -> ErrorCode {
    match topic_name::check(name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(_) => ErrorCode::InvalidTopicException,
    }
}

/// Creates topics with the node's defaults; gives those that could not be created.
async fn auto_create(shard: &Rc<Shard>, names: Vec<Str>) -> Vec<(Str, ErrorCode)> {
    let created = metadata::auto_create(shard, &names).await;
    match created {
        Ok(results) => results
            .into_iter()
            .filter_map(|(name, result)| result.err().map(|refusal| (name, refusal)))
            // Somebody else was faster.
            .filter(|(_, refusal)| refusal.error != ErrorCode::TopicAlreadyExists)
            .map(|(name, refusal)| {
                tracing::info!(topic = %name, reason = refusal.message, "a topic is not created");
                let known = matches!(refusal.error, ErrorCode::InvalidTopicException);
                (name, if known { refusal.error } else { ErrorCode::UnknownTopicOrPartition })
            })
            .collect(),
        Err(error) => {
            tracing::warn!(%error, "topics are not created");
            names.into_iter().map(|name| (name, ErrorCode::LeaderNotAvailable)).collect()
        }
    }
}

fn failed(name: Option<Str>, topic_id: Uuid, error: ErrorCode) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: error.code(),
        is_internal: name.as_deref().is_some_and(topic_name::is_internal),
        name,
        topic_id,
        ..MetadataResponseTopic::default()
    }
}

fn describe(topic: &TopicImage, version: i16, request: &MetadataRequest) -> MetadataResponseTopic {
    let operations = version >= 8 && request.include_topic_authorized_operations;
    MetadataResponseTopic {
        error_code: ErrorCode::None.code(),
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic_name::is_internal(&topic.name),
        partitions: (0..)
            .zip(&topic.partitions)
            .map(|(partition_index, partition)| MetadataResponsePartition {
                error_code: ErrorCode::None.code(),
                partition_index,
                leader_id: partition.leader,
                leader_epoch: partition.leader_epoch,
                replica_nodes: partition.replicas.clone(),
                isr_nodes: partition.isr.clone(),
                offline_replicas: Vec::new(),
            })
            .collect(),
        topic_authorized_operations: if operations { common::TOPIC_OPERATIONS } else { i32::MIN },
    }
}
