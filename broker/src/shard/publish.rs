//! Taking in a new metadata image, in two halves, so that no client hears of a partition before its shard has it.
//!
//! 1. Every shard prepares: it opens or creates the logs of the new partitions that the image places on it.
//! 2. Every shard publishes: requests see the image from here on; partitions that are gone end.

use super::Shard;
use crate::coordinator;
use crate::metadata::{Image, TopicImage};
use crate::partition::Partition;
use protocol::Uuid;
use runtime::task::{self, Queue};
use runtime::time;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use storage::{PartitionId, StorageError};

/// How long a partition whose log could not be created waits for the next try.
const CREATE_RETRY: Duration = Duration::from_secs(1);

/// A new image and the topics in which it differs from the one before.
#[derive(Clone)]
pub struct Publication {
    /// The image.
    pub image: Arc<Image>,
    /// Topics that are new, changed or gone.
    pub changed: Arc<Vec<Uuid>>,
}

impl Shard {
    /// First half. A log that cannot be created, for want of space say, is tried again in the background; until then its
    /// partition answers with a retryable error.
    pub(crate) async fn prepare(self: &Rc<Self>, publication: &Publication) {
        let mut wanted = Vec::new();
        for topic in publication.changed.iter().filter_map(|id| publication.image.topic_by_id(id)) {
            for id in self.owned(&publication.image, topic) {
                if self.partition(&id).is_none() {
                    wanted.push((id, Arc::clone(topic)));
                }
            }
        }
        // All at once, so that they share flushes.
        let created =
            futures::future::join_all(wanted.iter().map(|(id, topic)| self.create(*id, topic))).await;
        for ((id, topic), result) in wanted.into_iter().zip(created) {
            if let Err(error) = result {
                tracing::error!(%error, topic = %topic.name, partition = id.partition, "creating a log; trying again");
                let shard = Rc::clone(self);
                self.keep(task::spawn_in(Queue::Background, async move { shard.create_later(id).await }));
            }
        }
    }

    async fn create(self: &Rc<Self>, id: PartitionId, topic: &TopicImage) -> Result<(), StorageError> {
        let log = self.storage().create_log(id, &topic.name, topic.settings.log.clone()).await?;
        self.begin(Partition::new(id, log, topic)).await;
        Ok(())
    }

    async fn begin(self: &Rc<Self>, partition: Rc<Partition>) {
        self.insert_partition(Rc::clone(&partition));
        coordinator::partition_added(self, &partition).await;
    }

    async fn create_later(self: Rc<Self>, id: PartitionId) {
        loop {
            time::sleep(CREATE_RETRY).await;
            let image = self.image();
            let Some(topic) = image.topic_by_id(&id.topic_id) else { return };
            if self.partition(&id).is_some() || self.create(id, topic).await.is_ok() {
                return;
            }
        }
    }

    /// Second half.
    pub(crate) fn publish(self: &Rc<Self>, publication: &Publication) {
        let before = self.image();
        self.replace_image(Arc::clone(&publication.image));
        for id in publication.changed.iter() {
            match publication.image.topic_by_id(id) {
                Some(topic) => {
                    for partition in
                        self.owned(&publication.image, topic).filter_map(|id| self.partition(&id))
                    {
                        partition.configure(topic);
                    }
                }
                None => {
                    if let Some(topic) = before.topic_by_id(id) {
                        self.end_partitions(&before, topic);
                    }
                }
            }
        }
    }

    fn end_partitions(self: &Rc<Self>, image: &Image, topic: &TopicImage) {
        for id in self.owned(image, topic) {
            let Some(partition) = self.take_partition(&id) else { continue };
            partition.end();
            coordinator::partition_removed(self, id);
            let shard = Rc::clone(self);
            task::spawn_in(Queue::Background, async move {
                if let Err(error) = shard.storage().delete_log(id).await {
                    tracing::warn!(%error, log = %id, "deleting a log; the next start deletes it");
                }
            });
        }
    }

    /// The partitions of a topic that are this shard's.
    fn owned(&self, image: &Image, topic: &TopicImage) -> impl Iterator<Item = PartitionId> {
        let topic_id = topic.id;
        let count = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        let mine: Vec<i32> = (0..count).filter(|p| image.shard_of(&topic_id, *p) == self.id).collect();
        mine.into_iter().map(move |partition| PartitionId { topic_id, partition })
    }

    /// At the start: takes over the logs that storage found, and deletes those of topics that are gone.
    pub(crate) async fn adopt_logs(self: &Rc<Self>, image: &Image) -> Result<(), StorageError> {
        for (id, log) in self.storage().logs() {
            if id.topic_id == Uuid::METADATA_TOPIC {
                continue;
            }
            match image.topic_by_id(&id.topic_id) {
                Some(topic) => {
                    log.set_config(topic.settings.log.clone());
                    self.begin(Partition::new(id, log, topic)).await;
                }
                None => {
                    tracing::info!(log = %id, "deleting the log of a topic that is gone");
                    self.storage().delete_log(id).await?;
                }
            }
        }
        Ok(())
    }
}
