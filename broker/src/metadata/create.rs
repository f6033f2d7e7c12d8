//! Topics that come into being without a CreateTopics request: those that a client asks for, and internal ones.

use super::controller::{ChangeError, change};
use super::decide::{Created, Refusal, create_topics};
use super::image::TopicImage;
use super::topic_name;
use crate::config::NodeConfig;
use crate::server::new_uuid;
use crate::shard::Shard;
use protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use protocol::{ErrorCode, Str};
use std::rc::Rc;
use std::sync::Arc;

/// Creates topics with the node's defaults, and internal ones as Kafka creates them.
pub async fn auto_create(
    shard: &Rc<Shard>,
    names: &[Str],
) -> Result<Vec<(Str, Result<Created, Refusal>)>, ChangeError> {
    // Copied: a name in the metadata must not hold on to the frame that it came in.
    let topics: Vec<_> = names.iter().map(|name| creatable(&shard.config, name.detached())).collect();
    let brokers = shard.brokers();
    change(shard, move |image| create_topics(image, &brokers, &topics, new_uuid)).await
}

/// The topic of this name, created first if it does not exist; on return every shard has it.
pub async fn ensure_topic(shard: &Rc<Shard>, name: &'static str) -> Result<Arc<TopicImage>, Refusal> {
    if let Some(topic) = shard.image().topic(name) {
        return Ok(Arc::clone(topic));
    }
    let results = auto_create(shard, &[Str::from_static(name)]).await.map_err(|error| error.refusal())?;
    for (_, result) in results {
        match result {
            Err(refusal) if refusal.error != ErrorCode::TopicAlreadyExists => return Err(refusal),
            _ => {}
        }
    }
    let gone = || Refusal::new(ErrorCode::UnknownTopicOrPartition, "The topic was deleted at once");
    shard.image().topic(name).cloned().ok_or_else(gone)
}

fn creatable(config: &NodeConfig, name: Str) -> CreatableTopic {
    let topic = CreatableTopic { num_partitions: -1, replication_factor: -1, ..CreatableTopic::default() };
    if *name != *topic_name::CONSUMER_OFFSETS {
        return CreatableTopic { name, ..topic };
    }
    let own = |name: &'static str, value: &str| CreatableTopicConfig {
        name: Str::from_static(name),
        value: Some(Str::from(value)),
    };
    CreatableTopic {
        name,
        num_partitions: config.offsets_topic_num_partitions,
        replication_factor: 1,
        configs: vec![
            own("cleanup.policy", "compact"),
            own("compression.type", "producer"),
            own("segment.bytes", "104857600"),
        ],
        ..topic
    }
}
