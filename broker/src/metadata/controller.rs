//! The controller: the shell around the metadata decisions, on shard 0.
//!
//! Owns: the metadata log, the newest image, the order of changes.
//! Invariants:
//! I1 changes happen one after the other: each is decided on the image that the one before left.
//! I2 an answer leaves after its records are raft-committed and every shard has published them.
//! I3 the image is what the raft-committed records add up to, in their order, and nothing else.

use super::decide::{Decision, Refusal};
use super::image::Image;
use super::record::{MetadataRecord, RecordError};
use crate::config::NodeConfig;
use crate::shard::{Publication, Shard, ShardGone};
use bytes::Bytes;
use protocol::record::{BatchHeader, Builder, Codec, RecordError as BatchError, RecordIter, split_batches};
use protocol::wire::EncodeError;
use protocol::{ErrorCode, Uuid};
use raft::Group;
use runtime::shard::ShardId;
use runtime::sync::Permits;
use runtime::task;
use runtime::time;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use storage::{LogConfig, PartitionId, StorageError};

/// The metadata log: partition 0 of a topic that no client sees, with the id that Kafka gives it.
const METADATA_LOG: PartitionId = PartitionId { topic_id: Uuid::METADATA_TOPIC, partition: 0 };
/// A batch of the metadata log is not compressed, and never longer than this.
const REPLAY_BATCH_LEN_MAX: usize = 64 << 20;
/// Bytes that the replay reads at a time.
const REPLAY_LEN: usize = 1 << 20;

/// The shell on shard 0.
pub struct Controller {
    group: Group,
    image: RefCell<Arc<Image>>,
    /// One permit: who holds it changes the metadata (I1).
    turn: Permits,
}

/// A change did not happen, or is not known to have happened.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The metadata log did not take it.
    #[error("the metadata log does not take records: {0}")]
    Log(String),
    /// A record does not encode, such as a text that is too long.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The node is stopping.
    #[error(transparent)]
    Gone(#[from] ShardGone),
}

impl ChangeError {
    /// What a client is told.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        let error = match self {
            ChangeError::Log(_) => ErrorCode::KafkaStorageError,
            ChangeError::Encode(_) => ErrorCode::InvalidRequest,
            ChangeError::Gone(_) => ErrorCode::BrokerNotAvailable,
        };
        Refusal::new(error, self.to_string())
    }
}

/// The metadata log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error("reading the metadata log: {0}")]
    Read(String),
    /// It cannot be created.
    #[error("creating the metadata log: {0}")]
    Create(#[from] StorageError),
    /// A batch is not what it should be.
    #[error("the metadata log holds a bad batch: {0}")]
    Batch(#[from] BatchError),
    /// A record is not what it should be.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Logs of topics are there, but no metadata.
    #[error(
        "the metadata log is missing, but there are logs of {0} partitions; restore it, or start with an empty data directory"
    )]
    Missing(usize),
}

impl Controller {
    /// Opens the metadata log of this shard, creates it on the first start, and replays it.
    pub async fn open(shard: &Shard, defaults: Arc<NodeConfig>) -> Result<Controller, ReplayError> {
        let storage = shard.storage();
        let logs = storage.logs();
        let config =
            LogConfig { retention_ms: -1, retention_bytes: -1, uses_reserve: true, ..LogConfig::default() };
        let log = match logs.iter().find(|(id, _)| *id == METADATA_LOG) {
            Some((_, log)) => {
                log.set_config(config);
                log.clone()
            }
            None if !logs.is_empty() => return Err(ReplayError::Missing(logs.len())),
            None => storage.create_log(METADATA_LOG, super::topic_name::CLUSTER_METADATA, config).await?,
        };
        let group = Group::new(log);
        let mut image = Image::empty(defaults, shard.count);
        let end = group.high_watermark();
        let mut from = group.log().log_start_offset();
        while from < end {
            let read = group.log().read(from, REPLAY_LEN, end, true).await;
            let read = read.map_err(|error| ReplayError::Read(error.to_string()))?;
            for chunk in read.chunks {
                apply_batches(&mut image, chunk)?;
            }
            if read.next_offset <= from {
                return Err(ReplayError::Read(format!("nothing at offset {from}, the end is {end}")));
            }
            from = read.next_offset;
        }
        Ok(Controller { group, image: RefCell::new(Arc::new(image)), turn: Permits::new(1) })
    }

    /// The newest image, which shards may not have published yet.
    #[must_use]
    pub fn image(&self) -> Arc<Image> {
        Arc::clone(&self.image.borrow())
    }

    async fn change<R>(
        &self,
        shard: &Rc<Shard>,
        decide: impl FnOnce(&Image) -> Decision<R>,
    ) -> Result<R, ChangeError> {
        let _turn = self.turn.acquire(1).await;
        let before = self.image();
        let Decision { records, reply } = decide(&before);
        if records.is_empty() {
            return Ok(reply);
        }
        let makes_logs = |record: &MetadataRecord| {
            matches!(record, MetadataRecord::Topic(_) | MetadataRecord::Partition(_))
        };
        // The metadata log takes records on a full disk, too: what makes space must go through, what needs it must not.
        if records.iter().any(makes_logs) && !shard.storage().writable() {
            return Err(ChangeError::Log(StorageError::Full.to_string()));
        }
        let base_offset = self.write(&records).await?;
        let mut image = Image::clone(&before);
        let mut changed = BTreeSet::new();
        for (offset, record) in (base_offset..).zip(&records) {
            changed.extend(image.topic_of(record));
            image.apply(record);
            image.offset = offset;
        }
        let image = Arc::new(image);
        *self.image.borrow_mut() = Arc::clone(&image);
        publish(shard, Publication { image, changed: Arc::new(changed.into_iter().collect()) }).await?;
        Ok(reply)
    }

    /// Appends the records as one batch and waits until it is raft-committed; gives the first offset.
    async fn write(&self, records: &[MetadataRecord]) -> Result<i64, ChangeError> {
        let mut builder = Builder::new(Codec::None);
        let now_ms = time::wall_ms();
        for record in records {
            let value = record.encode()?;
            builder.push(now_ms, None, Some(&value), &[]);
        }
        let batch = builder.build();
        let header = BatchHeader::read(&batch).expect("a batch that was just built has a header");
        let proposal =
            self.group.propose(batch, &header).map_err(|error| ChangeError::Log(error.to_string()))?;
        self.group.committed(&proposal).await.map_err(|error| ChangeError::Log(error.to_string()))?;
        Ok(proposal.base_offset)
    }
}

fn apply_batches(image: &mut Image, chunk: Bytes) -> Result<(), ReplayError> {
    for batch in split_batches(chunk) {
        let (header, bytes) = batch?;
        for record in RecordIter::of_batch(&bytes, REPLAY_BATCH_LEN_MAX)? {
            let record = record?;
            let value = record.value.ok_or(RecordError::Empty)?;
            image.apply(&MetadataRecord::decode(value)?);
        }
        image.offset = header.last_offset();
    }
    Ok(())
}

/// Makes an image known to every shard: all prepare, then all publish.
pub(crate) async fn publish(shard: &Rc<Shard>, publication: Publication) -> Result<(), ShardGone> {
    let prepare = publication.clone();
    shard.call_all(move |shard| async move { shard.prepare(&prepare).await }).await?;
    shard.call_all(move |shard| async move { shard.publish(&publication) }).await?;
    Ok(())
}

/// Changes the metadata, from any shard: `decide` runs on shard 0, with the newest image.
pub async fn change<R: Send + 'static>(
    shard: &Rc<Shard>,
    decide: impl FnOnce(&Image) -> Decision<R> + Send + 'static,
) -> Result<R, ChangeError> {
    let changed = shard.call(ShardId(0), |shard| async move {
        // A task of its own: a client that goes away must not stop a change between its record and its image.
        let changed = task::spawn(async move { shard.controller().change(&shard, decide).await });
        changed.await.unwrap_or(Err(ChangeError::Gone(ShardGone)))
    });
    changed.await?
}
