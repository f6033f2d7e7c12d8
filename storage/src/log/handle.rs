//! The public handle of a log: append, durability, and questions that need no I/O.
//! Does not own: reading (`read`), segment files (`write`).
//!
//! Invariants:
//! 1. Offsets and raft indexes are assigned in the order of calls to `append`, without gaps.
//! 2. A batch is patched on the copy that is kept; the journal, the segments and every reader get the same bytes.

use std::cell::RefCell;
use std::fmt;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use bytes::{Bytes, BytesMut};
use protocol::record::{self, BatchHeader};
use runtime::sync::{Permits, Watch};

use crate::config::{LogConfig, PartitionId, Vote};
use crate::durable::DurableEnd;
use crate::error::{AppendError, StorageError};
use crate::journal::entry::{Change, Entry};
use crate::log::state::LogState;
use crate::producer::ProducerCheck;
use crate::shared::Shared;

/// Dirty bytes of one log at which its batches are worth a large write.
pub(crate) const LARGE_WRITE_BYTES: u64 = 1 << 20;

/// One partition's log. Cheap to clone.
#[derive(Clone)]
pub struct Log(pub(crate) Rc<LogInner>);

/// The log behind its handles.
pub(crate) struct LogInner {
    pub(crate) id: PartitionId,
    pub(crate) topic: String,
    pub(crate) dir: PathBuf,
    pub(crate) shared: Rc<Shared>,
    pub(crate) durable: DurableEnd,
    pub(crate) state: RefCell<LogState>,
    /// One is held by each reader of segments, all by whoever puts other files in their place.
    pub(crate) readers: Permits,
    /// Itself, for the cache.
    pub(crate) this: Weak<LogInner>,
}

/// Where an appended batch went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Its raft index.
    pub index: u64,
    /// To wait for its durability.
    pub ticket: Ticket,
}

/// Names a journal entry whose durability can be awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log({} {})", self.0.topic, self.0.id)
    }
}

impl Log {
    pub(crate) fn new(
        id: PartitionId,
        topic: String,
        dir: PathBuf,
        shared: &Rc<Shared>,
        state: LogState,
    ) -> Self {
        let durable = DurableEnd::new(state.next_offset);
        Self(Rc::new_cyclic(|this| LogInner {
            id,
            topic,
            dir,
            shared: Rc::clone(shared),
            durable,
            state: RefCell::new(state),
            readers: Permits::new(u64::MAX),
            this: this.clone(),
        }))
    }

    /// Which partition this is.
    pub fn id(&self) -> PartitionId {
        self.0.id
    }

    /// Name of the topic when the log was created.
    pub fn topic(&self) -> &str {
        &self.0.topic
    }

    /// Appends one valid v2 batch: assigns offsets and raft index, keeps a patched copy, and puts it before the next flush.
    /// Durability is awaited apart ([`Log::durable`], [`Log::durable_watch`]).
    ///
    /// # Errors
    /// [`AppendError`]; nothing of the batch was kept then.
    pub fn append(
        &self,
        batch: Bytes,
        header: &BatchHeader,
        leader_epoch: i32,
    ) -> Result<Appended, AppendError> {
        let inner = &*self.0;
        inner.admit(&batch, header, leader_epoch)?;
        let mut state = inner.state.borrow_mut();
        if state.deleted.is_some() {
            return Err(AppendError::Deleted);
        }
        let mut header = *header;
        header.base_offset = state.next_offset;
        header.partition_leader_epoch = leader_epoch;
        // Always a copy of its own: a slice would keep the whole request frame in memory.
        let mut bytes = BytesMut::from(&batch[..]);
        record::set_base_offset(&mut bytes, header.base_offset);
        record::set_leader_epoch(&mut bytes, leader_epoch);
        let bytes = bytes.freeze();
        let index = state.last_index + 1;
        let term = u64::try_from(leader_epoch).unwrap_or(0);
        let change = Change::Append { index, term, batch: bytes.clone() };
        let done = inner.durable.completion(header.last_offset() + 1);
        let entry = inner.shared.journal.append(Entry { id: inner.id, change }, Some(done))?;
        inner.shared.cache.add_dirty(bytes.len());
        state.push(&header, index, entry, bytes);
        let worth_a_write = state.dirty_bytes >= LARGE_WRITE_BYTES;
        drop(state);
        inner.shared.cache.evict();
        if worth_a_write || inner.shared.cache.pressed() {
            inner.shared.urge.notify_all();
        }
        Ok(Appended {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            index,
            ticket: Ticket(entry),
        })
    }

    /// Waits until the entry is durable.
    ///
    /// # Errors
    /// The failure of the flush, which is final for the shard.
    pub async fn durable(&self, ticket: Ticket) -> Result<(), StorageError> {
        self.0.shared.journal.durable(ticket.0).await
    }

    /// First offset kept.
    pub fn log_start_offset(&self) -> i64 {
        self.0.state.borrow().log_start
    }

    /// Next offset to be assigned.
    pub fn log_end_offset(&self) -> i64 {
        self.0.state.borrow().next_offset
    }

    /// First offset that is not durable.
    pub fn durable_end_offset(&self) -> i64 {
        self.0.durable.get()
    }

    /// The durable end offset, to be watched.
    pub fn durable_watch(&self) -> Watch<i64> {
        self.0.durable.watch()
    }

    /// Raft index of the last entry, 0 for none.
    pub fn last_index(&self) -> u64 {
        self.0.state.borrow().last_index
    }

    /// The vote last saved.
    pub fn vote(&self) -> Option<Vote> {
        self.0.state.borrow().vote
    }

    /// Bytes of all batches kept, in segments and in memory.
    pub fn size_bytes(&self) -> u64 {
        self.0.state.borrow().size_bytes()
    }

    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.0.state.borrow().segments.len()
    }

    /// Replaces the configuration. Retention runs only once it was set after a start.
    pub fn set_config(&self, config: LogConfig) {
        let mut state = self.0.state.borrow_mut();
        state.config = Rc::new(config);
        state.config_known = true;
    }

    /// The configuration.
    pub fn config(&self) -> Rc<LogConfig> {
        Rc::clone(&self.0.state.borrow().config)
    }

    /// Judges a batch of an idempotent producer (KIP-98): batches appended but not yet durable count.
    pub fn check_producer(&self, header: &BatchHeader) -> ProducerCheck {
        self.0.state.borrow().producers.check(header)
    }

    /// The leader epoch asked for, or the one before it, and where it ended; (−1, −1) when unknown (KIP-320).
    pub fn epoch_end_offset(&self, leader_epoch: i32) -> (i32, i64) {
        let state = self.0.state.borrow();
        state.epochs.end_offset(leader_epoch, state.next_offset)
    }

    /// The leader epoch of the last batch.
    pub fn latest_leader_epoch(&self) -> Option<i32> {
        self.0.state.borrow().epochs.latest()
    }
}

impl LogInner {
    /// Whether the batch may be appended now.
    fn admit(&self, batch: &Bytes, header: &BatchHeader, leader_epoch: i32) -> Result<(), AppendError> {
        let shared = &*self.shared;
        shared.failure.check()?;
        if shared.refusing.get() {
            return Err(StorageError::Closed.into());
        }
        let limit = shared.journal.batch_bytes_max();
        if batch.len() > limit {
            return Err(AppendError::TooLarge { size: batch.len(), limit });
        }
        if header.size() != batch.len() || header.last_offset_delta < 0 || leader_epoch < 0 {
            return Err(AppendError::Malformed);
        }
        if self.state.borrow().config.uses_reserve {
            return Ok(());
        }
        if shared.space.is_full() || shared.journal.is_starved() {
            return Err(AppendError::Full);
        }
        if !shared.journal.has_room() || shared.cache.exhausted() {
            return Err(AppendError::Busy);
        }
        if !shared.space.take(batch.len() as u64) {
            return Err(AppendError::Full);
        }
        Ok(())
    }

    /// Drops a clean batch for the cache.
    pub(crate) fn evict(&self, base_offset: i64) {
        if let Some(bytes) = self.state.borrow_mut().evict(base_offset) {
            self.shared.cache.remove(bytes, false);
        }
    }
}
