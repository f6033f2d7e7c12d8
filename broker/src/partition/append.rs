//! A batch into the log, and the answer once it is acknowledged.
//!
//! Invariants:
//! I1 batches of a partition are appended in the order in which `append` was called, those that had to wait for room included.
//! I2 nothing is acknowledged before it is raft-committed, unless the topic asks for it (`flush.messages` above 1).
//! I3 a batch of an idempotent producer that is there already is answered with the offset that it was given.

use super::Partition;
use crate::config::TimestampType;
use bytes::{Bytes, BytesMut};
use protocol::ErrorCode;
use protocol::record::{self, BatchHeader};
use raft::{Proposal, ProposeError};
use runtime::sync::oneshot;
use runtime::{task, time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::rc::Rc;
use storage::{AppendError, ProducerCheck, Storage};

/// A batch that is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first record.
    pub base_offset: i64,
    /// The broker's time at the append where the topic wants that, -1 otherwise.
    pub log_append_time_ms: i64,
    /// Log start offset of the partition.
    pub log_start_offset: i64,
    /// Whether it was there already.
    pub duplicate: bool,
}

/// Batches that wait for room in the journal.
#[derive(Default)]
pub(super) struct Queue {
    waiting: RefCell<VecDeque<Waiting>>,
    draining: Cell<bool>,
}

struct Waiting {
    batch: Bytes,
    header: BatchHeader,
    answer: oneshot::Sender<Result<Placed, ErrorCode>>,
}

/// A batch that has its place in the log, or had it before.
enum Placed {
    New { proposal: Proposal, log_append_time_ms: i64 },
    Before { base_offset: i64, last_offset: i64 },
}

/// What became of a batch at once.
enum Step {
    Placed(Placed),
    Waits(oneshot::Receiver<Result<Placed, ErrorCode>>),
    Refused(ErrorCode),
}

/// Why a batch has no place.
enum Unplaced {
    /// Room will come back.
    Busy,
    Refused(ErrorCode),
}

impl From<ErrorCode> for Unplaced {
    fn from(error: ErrorCode) -> Unplaced {
        Unplaced::Refused(error)
    }
}

impl Partition {
    /// Appends a batch that `api::produce` has validated. The append happens in this call, unless the journal has no room
    /// at the moment; the future waits for the acknowledgement.
    pub fn append(
        self: &Rc<Self>,
        storage: &Storage,
        batch: Bytes,
        header: BatchHeader,
        acks: i16,
    ) -> impl Future<Output = Result<Appended, ErrorCode>> + use<> {
        let step = self.place_or_wait(storage, batch, header, acks);
        let partition = Rc::clone(self);
        async move {
            let placed = match step {
                Step::Placed(placed) => placed,
                Step::Refused(error) => return Err(error),
                // The queue of a partition that ends is dropped.
                Step::Waits(answer) => answer.await.unwrap_or(Err(ErrorCode::UnknownTopicOrPartition))?,
            };
            partition.acknowledge(placed).await
        }
    }

    fn place_or_wait(
        self: &Rc<Self>,
        storage: &Storage,
        batch: Bytes,
        header: BatchHeader,
        acks: i16,
    ) -> Step {
        // One replica is all there is, and all that are in sync.
        if acks == -1 && self.settings().min_insync_replicas > 1 {
            return Step::Refused(ErrorCode::NotEnoughReplicas);
        }
        // I1: whoever comes while others wait, waits behind them.
        if self.queue.waiting.borrow().is_empty() {
            match self.place(batch.clone(), &header) {
                Ok(placed) => return Step::Placed(placed),
                Err(Unplaced::Refused(error)) => return Step::Refused(error),
                Err(Unplaced::Busy) => {}
            }
        }
        let (answer, answered) = oneshot::channel();
        self.queue.waiting.borrow_mut().push_back(Waiting { batch, header, answer });
        if !self.queue.draining.replace(true) {
            let (partition, storage) = (Rc::clone(self), storage.clone());
            task::spawn(async move { partition.drain(&storage).await });
        }
        Step::Waits(answered)
    }

    /// Appends what waits, whenever there is room.
    async fn drain(&self, storage: &Storage) {
        while !self.queue.waiting.borrow().is_empty() {
            storage.room().await;
            // Room may be gone again: let those that make it have their turn.
            task::yield_now().await;
            loop {
                let Some(next) = self.queue.waiting.borrow_mut().pop_front() else { break };
                match self.place(next.batch.clone(), &next.header) {
                    Ok(placed) => next.answer.send(Ok(placed)),
                    Err(Unplaced::Refused(error)) => next.answer.send(Err(error)),
                    Err(Unplaced::Busy) => {
                        self.queue.waiting.borrow_mut().push_front(next);
                        break;
                    }
                }
            }
        }
        self.queue.draining.set(false);
    }

    /// Gives the batch its place in the log, or finds the place that it has.
    fn place(&self, mut batch: Bytes, header: &BatchHeader) -> Result<Placed, Unplaced> {
        if self.has_ended() {
            return Err(ErrorCode::UnknownTopicOrPartition.into());
        }
        match self.group.log().check_producer(header) {
            ProducerCheck::New => {}
            ProducerCheck::Duplicate { base_offset, last_offset, .. } => {
                return Ok(Placed::Before { base_offset, last_offset });
            }
            ProducerCheck::OutOfOrder { .. } => return Err(ErrorCode::OutOfOrderSequenceNumber.into()),
            ProducerCheck::Fenced { .. } => return Err(ErrorCode::InvalidProducerEpoch.into()),
        }
        let mut header = *header;
        let mut log_append_time_ms = -1;
        if self.settings().timestamp_type == TimestampType::LogAppendTime {
            log_append_time_ms = time::wall_ms();
            let mut own = BytesMut::from(batch.as_ref());
            record::set_max_timestamp_log_append(&mut own, log_append_time_ms);
            batch = own.freeze();
            header = BatchHeader::read(&batch).map_err(|_| ErrorCode::CorruptMessage)?;
        }
        match self.group.propose(batch, &header) {
            Ok(proposal) => Ok(Placed::New { proposal, log_append_time_ms }),
            Err(ProposeError::Append(error)) => Err(unplaced(&error)),
        }
    }

    async fn acknowledge(&self, placed: Placed) -> Result<Appended, ErrorCode> {
        let appended = |base_offset, log_append_time_ms, duplicate| Appended {
            base_offset,
            log_append_time_ms,
            log_start_offset: self.log_start_offset(),
            duplicate,
        };
        match placed {
            Placed::New { proposal, log_append_time_ms } => {
                if !self.settings().acknowledge_from_memory {
                    // The shard's storage has failed for good, and the node stops.
                    self.group.committed(&proposal).await.map_err(|_| ErrorCode::KafkaStorageError)?;
                }
                Ok(appended(proposal.base_offset, log_append_time_ms, false))
            }
            Placed::Before { base_offset, last_offset } => {
                self.group.watch_high_watermark().wait_until(|mark| mark > last_offset).await;
                Ok(appended(base_offset, -1, true))
            }
        }
    }
}

/// What a client is told about an append that was not taken.
fn unplaced(error: &AppendError) -> Unplaced {
    match error {
        AppendError::Busy => Unplaced::Busy,
        AppendError::Full | AppendError::Failed(_) => Unplaced::Refused(ErrorCode::KafkaStorageError),
        AppendError::TooLarge { .. } => Unplaced::Refused(ErrorCode::RecordListTooLarge),
        AppendError::Malformed => Unplaced::Refused(ErrorCode::CorruptMessage),
        AppendError::Deleted => Unplaced::Refused(ErrorCode::UnknownTopicOrPartition),
    }
}
