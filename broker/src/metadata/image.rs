//! What the cluster looks like: topics, their partitions and configurations. Pure; never changed once published.
//!
//! Owns: the tables that requests look things up in, and `apply`, the only way they change.
//! Does not own: when a change is legal (`decide`), or how it reaches every shard (`controller`).
//! Invariants:
//! I1 `names` and `topics` are two views of the same topics: every name leads to a topic of that name.
//! I2 the partitions of a topic are numbered from 0 without gaps.
//! I3 two nodes that applied the same records hold equal images.

use super::record::MetadataRecord;
use super::settings::TopicSettings;
use crate::config::NodeConfig;
use protocol::messages::{ConfigRecord, PartitionRecord};
use protocol::{Str, Uuid};
use runtime::shard::ShardId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `ConfigRecord::resource_type` of a topic, as in Kafka.
pub(super) const RESOURCE_TOPIC: i8 = 2;

/// One partition as the metadata log describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionImage {
    /// Brokers that hold it, the preferred leader first.
    pub replicas: Vec<i32>,
    /// Brokers that clients see as in sync.
    pub isr: Vec<i32>,
    /// The leading broker, -1 without one.
    pub leader: i32,
    /// Leader epoch.
    pub leader_epoch: i32,
    /// Counts every change of this partition.
    pub partition_epoch: i32,
}

/// One topic.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicImage {
    /// Its name.
    pub name: Str,
    /// Its id: differs between two topics that had the same name one after the other.
    pub id: Uuid,
    /// Partitions by number.
    pub partitions: Vec<PartitionImage>,
    /// What was configured on the topic itself, by Kafka's names.
    pub configs: BTreeMap<Str, Str>,
    /// What results from `configs` over the node's defaults.
    pub settings: Arc<TopicSettings>,
}

/// The whole of it. Cloning copies pointers, one per topic.
#[derive(Debug, Clone)]
pub struct Image {
    /// Offset of the last metadata record in here, -1 before the first.
    pub offset: i64,
    /// First producer id that no block holds yet.
    pub next_producer_id: i64,
    shard_count: u16,
    defaults: Arc<NodeConfig>,
    names: BTreeMap<Str, Uuid>,
    topics: BTreeMap<Uuid, Arc<TopicImage>>,
}

impl Image {
    /// An image without topics, over the node's defaults.
    #[must_use]
    pub fn empty(defaults: Arc<NodeConfig>, shard_count: u16) -> Image {
        assert!(shard_count > 0, "a node has at least one shard");
        Image {
            offset: -1,
            next_producer_id: 0,
            shard_count,
            defaults,
            names: BTreeMap::new(),
            topics: BTreeMap::new(),
        }
    }

    /// The topic of this name.
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<&Arc<TopicImage>> {
        self.topics.get(self.names.get(name)?)
    }

    /// The topic with this id.
    #[must_use]
    pub fn topic_by_id(&self, id: &Uuid) -> Option<&Arc<TopicImage>> {
        self.topics.get(id)
    }

    /// Every topic, by name.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicImage>> {
        self.names.values().filter_map(|id| self.topics.get(id))
    }

    /// Every topic after `name` in order of names.
    pub fn topics_from(&self, name: &Str) -> impl Iterator<Item = &Arc<TopicImage>> {
        self.names.range(name.clone()..).filter_map(|(_, id)| self.topics.get(id))
    }

    /// How many topics there are.
    #[must_use]
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    /// The node's configuration, over which topics override.
    #[must_use]
    pub fn defaults(&self) -> &Arc<NodeConfig> {
        &self.defaults
    }

    /// The shard that owns a partition: the same for ever while the number of shards stays, with the partitions of a
    /// topic going round the shards from a start that its id gives, so that every topic is spread evenly.
    #[must_use]
    pub fn shard_of(&self, topic_id: &Uuid, partition: i32) -> ShardId {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in topic_id.as_bytes() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let partition = u64::from(partition.unsigned_abs());
        let shard = ((hash >> 16).wrapping_add(partition)) % u64::from(self.shard_count);
        ShardId(u16::try_from(shard).unwrap_or(0))
    }

    /// Takes in one record of the metadata log. A record about a topic that is gone changes nothing.
    pub fn apply(&mut self, record: &MetadataRecord) {
        match record {
            MetadataRecord::Topic(topic) => {
                let image = TopicImage {
                    name: topic.name.clone(),
                    id: topic.topic_id,
                    partitions: Vec::new(),
                    configs: BTreeMap::new(),
                    settings: Arc::new(TopicSettings::resolve(&self.defaults, &BTreeMap::new())),
                };
                self.names.insert(topic.name.clone(), topic.topic_id);
                self.topics.insert(topic.topic_id, Arc::new(image));
            }
            MetadataRecord::Partition(partition) => self.apply_partition(partition),
            MetadataRecord::Config(config) => self.apply_config(config),
            MetadataRecord::RemoveTopic(gone) => {
                if let Some(topic) = self.topics.remove(&gone.topic_id) {
                    // A topic of the same name may have taken the name already.
                    if self.names.get(&topic.name) == Some(&gone.topic_id) {
                        self.names.remove(&topic.name);
                    }
                }
            }
            MetadataRecord::ProducerIds(ids) => self.next_producer_id = ids.next_producer_id,
        }
    }

    /// The topic that a record is about, as known before the record is applied; none if it is about no topic.
    #[must_use]
    pub fn topic_of(&self, record: &MetadataRecord) -> Option<Uuid> {
        match record {
            MetadataRecord::Topic(topic) => Some(topic.topic_id),
            MetadataRecord::Partition(partition) => Some(partition.topic_id),
            MetadataRecord::RemoveTopic(gone) => Some(gone.topic_id),
            MetadataRecord::Config(config) => self.names.get(&config.resource_name).copied(),
            MetadataRecord::ProducerIds(_) => None,
        }
    }

    fn apply_partition(&mut self, record: &PartitionRecord) {
        let Some(topic) = self.topics.get_mut(&record.topic_id) else { return };
        let topic = Arc::make_mut(topic);
        let image = PartitionImage {
            replicas: record.replicas.clone(),
            isr: record.isr.clone(),
            leader: record.leader,
            leader_epoch: record.leader_epoch,
            partition_epoch: record.partition_epoch,
        };
        let Ok(index) = usize::try_from(record.partition_id) else { return };
        match topic.partitions.get_mut(index) {
            Some(known) => *known = image,
            None => {
                assert_eq!(index, topic.partitions.len(), "I2: partitions are recorded in order");
                topic.partitions.push(image);
            }
        }
    }

    fn apply_config(&mut self, record: &ConfigRecord) {
        if record.resource_type != RESOURCE_TOPIC {
            return;
        }
        let Some(id) = self.names.get(&record.resource_name) else { return };
        let Some(topic) = self.topics.get_mut(id) else { return };
        let topic = Arc::make_mut(topic);
        match &record.value {
            Some(value) => topic.configs.insert(record.name.clone(), value.clone()),
            None => topic.configs.remove(&record.name),
        };
        topic.settings = Arc::new(TopicSettings::resolve(&self.defaults, &topic.configs));
    }
}
