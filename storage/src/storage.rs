//! The public handle of a shard's storage: its logs, its checkpoints, its end.
//! Does not own: recovery (`recovery`), when background work runs (`background`).
//!
//! Invariants:
//! 1. A checkpoint holds, for each log, exactly what its segments and small state contain up to `applied_entry`.
//! 2. Journal files, segments and directories go only after both copies of a checkpoint without them are durable.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use futures::stream::{self, TryStreamExt};
use runtime::time::Instant;

use crate::checkpoint::{self, Checkpoint, LogCheckpoint};
use crate::config::{LogConfig, PartitionId, StorageConfig, Vote};
use crate::error::StorageError;
use crate::journal::entry::{Change, Entry};
use crate::log::state::LogState;
use crate::log::{Log, LogInner, Ticket, names, shrink};
use crate::recovery::{self, RecoveryReport};
use crate::shared::Shared;

/// How often a waiter for room urges the segment writer.
const ROOM_LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Segment files flushed at once: the file system makes one transaction of them.
const FLUSHES_AT_ONCE: usize = 8;

/// One shard's storage. Cheap to clone.
#[derive(Clone)]
pub struct Storage(pub(crate) Rc<Inner>);

pub(crate) struct Inner {
    pub(crate) shared: Rc<Shared>,
    pub(crate) logs: RefCell<BTreeMap<PartitionId, Log>>,
    /// Deleted logs whose directories are still there under their names.
    deleting: RefCell<Vec<(Log, u64)>>,
    generation: Cell<u64>,
    /// Last entry that the last checkpoint knew durable.
    saved_entry: Cell<u64>,
    pub(crate) saved_at: Cell<Instant>,
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage(shard {})", self.0.shared.config.shard)
    }
}

impl Storage {
    /// Opens a shard's directory, made when missing, and recovers what it holds. The caller has locked it
    /// (`runtime::disk::lock_dir`) and spawns [`Storage::run_background`].
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when something durable is damaged; nothing is changed or cut off then.
    pub async fn open(config: StorageConfig) -> Result<(Self, RecoveryReport), StorageError> {
        recovery::open(config).await
    }

    pub(crate) fn new(shared: Rc<Shared>, logs: BTreeMap<PartitionId, Log>, generation: u64) -> Self {
        let saved_entry = shared.journal.durable_entry();
        Self(Rc::new(Inner {
            shared,
            logs: RefCell::new(logs),
            deleting: RefCell::default(),
            generation: Cell::new(generation),
            saved_entry: Cell::new(saved_entry),
            saved_at: Cell::new(runtime::time::now()),
        }))
    }

    /// All logs, in the order of their ids.
    pub fn logs(&self) -> Vec<(PartitionId, Log)> {
        self.0.logs.borrow().iter().map(|(id, log)| (*id, log.clone())).collect()
    }

    /// The log of a partition.
    pub fn log(&self, id: PartitionId) -> Option<Log> {
        self.0.logs.borrow().get(&id).cloned()
    }

    /// Creates a log. Only journalled: its directory is made when its first batch leaves the journal. Durable at the latest
    /// with the first batch that is; after a crash before that the log may be missing.
    ///
    /// # Errors
    /// The name cannot be a directory, the log exists, the disk is full, or the storage failed.
    pub async fn create_log(
        &self,
        id: PartitionId,
        topic: &str,
        config: LogConfig,
    ) -> Result<Log, StorageError> {
        let directory = names::directory(topic, id.partition)?;
        let shared = &self.0.shared;
        if self.0.logs.borrow().contains_key(&id) {
            return Err(StorageError::LogExists(id));
        }
        if !self.writable() {
            shared.failure.check()?;
            return Err(StorageError::Full);
        }
        let change = Change::Create { topic: topic.as_bytes().to_vec().into() };
        shared.journal.append(Entry { id, change }, None)?;
        let dir = shared.partitions_dir().join(directory);
        let log = Log::new(id, topic.to_owned(), dir, shared, LogState::new(Rc::new(config), true));
        self.0.logs.borrow_mut().insert(id, log.clone());
        Ok(log)
    }

    /// Deletes a log: refused to readers and appenders at once, durable on return, its files follow in the background.
    ///
    /// # Errors
    /// There is no such log, or the storage failed.
    pub async fn delete_log(&self, id: PartitionId) -> Result<(), StorageError> {
        let shared = &self.0.shared;
        let Some(log) = self.log(id) else { return Err(StorageError::UnknownLog(id)) };
        let entry = shared.journal.append(Entry { id, change: Change::Delete }, None)?;
        self.0.logs.borrow_mut().remove(&id);
        log.0.mark_deleted(entry);
        self.0.deleting.borrow_mut().push((log, entry));
        shared.journal.durable(entry).await?;
        shared.urge.notify_all();
        Ok(())
    }

    /// Saves a raft vote; durable on return.
    ///
    /// # Errors
    /// There is no such log, or the storage failed.
    pub async fn save_vote(&self, id: PartitionId, vote: Vote) -> Result<(), StorageError> {
        let Some(log) = self.log(id) else { return Err(StorageError::UnknownLog(id)) };
        let entry = self.0.shared.journal.append(Entry { id, change: Change::Vote(vote) }, None)?;
        log.0.state.borrow_mut().vote = Some(vote);
        self.0.shared.journal.durable(entry).await
    }

    /// Removes all entries after raft index `index` (a new leader's log differs); durable on return.
    ///
    /// # Errors
    /// There is no such log, or the storage failed.
    pub async fn truncate_after(&self, id: PartitionId, index: u64) -> Result<(), StorageError> {
        let Some(log) = self.log(id) else { return Err(StorageError::UnknownLog(id)) };
        let _permit = self.0.shared.maintenance.acquire(1).await;
        let Some(cut) = log.0.cut_after(index).await? else { return Ok(()) };
        log.0.check_exists()?;
        let reaches_segments = cut.reaches_segments();
        let entry = Entry { id, change: Change::TruncateAfter { index } };
        let number = self.0.shared.journal.append(entry, None)?;
        log.0.apply_cut(cut);
        self.0.shared.journal.durable(number).await?;
        if reaches_segments {
            recovery::rebuild_producers(&log.0, None).await?;
            self.checkpoint_held().await?;
        }
        Ok(())
    }

    /// Waits until the ticket's entry is durable.
    ///
    /// # Errors
    /// The failure of the flush, which is final for the shard.
    pub async fn durable(&self, ticket: Ticket) -> Result<(), StorageError> {
        self.0.shared.journal.durable(ticket.0).await
    }

    /// Waits until an append is not answered Busy any more; returns also when the disk is full or the storage has failed, as
    /// appends then say.
    pub async fn room(&self) {
        let shared = &self.0.shared;
        loop {
            let (relief, flushed) = (shared.relief.listen(), shared.journal.flushed());
            let exhausted = shared.cache.exhausted();
            if !self.writable() || (shared.journal.has_room() && !exhausted) {
                return;
            }
            if exhausted {
                shared.urge.notify_all();
            }
            // The segment writer waits for durable entries; it is urged again should it have come too early.
            let woken = futures::future::select(relief, flushed);
            let _ = runtime::time::timeout(ROOM_LOOK_INTERVAL, woken).await;
        }
    }

    /// The failure that has fenced this shard, if there is one.
    pub fn failed(&self) -> Option<StorageError> {
        self.0.shared.failure.get()
    }

    /// Waits for such a failure.
    pub async fn wait_failed(&self) -> StorageError {
        self.0.shared.failure.wait().await
    }

    /// False while the disk is full up to the reserve (appends answer Full, reads go on), and after a failure.
    pub fn writable(&self) -> bool {
        let shared = &self.0.shared;
        !shared.space.is_full() && !shared.journal.is_starved() && shared.failure.get().is_none()
    }

    /// Figures for metrics.
    pub fn usage(&self) -> Usage {
        let shared = &self.0.shared;
        Usage {
            cache_bytes: shared.cache.bytes() as u64,
            dirty_bytes: shared.cache.dirty_bytes() as u64,
            journal_files_used: shared.journal.files.used() as u64,
            journal_blocks: shared.journal.durable_block(),
            journal_entries: shared.journal.durable_entry(),
        }
    }

    /// Flushes everything, writes a checkpoint and ends. On a full disk the segments stay behind: the journal keeps what they lack.
    ///
    /// # Errors
    /// The storage failed.
    pub async fn close(self) -> Result<(), StorageError> {
        let shared = &self.0.shared;
        shared.refusing.set(true);
        let permit = shared.maintenance.acquire(1).await;
        let written = self.write_rest().await;
        let ended = shared.journal.close().await?;
        shared.closing.set(true);
        shared.failure.wake();
        match written {
            Ok(()) if ended => self.save(Some(shared.journal.end())).await?,
            Ok(()) => {}
            Err(error) if error.is_no_space() => {
                tracing::warn!(%error, "closes on a full disk: the journal keeps what the segments lack");
            }
            Err(error) => return Err(error),
        }
        drop(permit);
        shared.files.close().await
    }

    /// Brings all that the journal was given into segments: each checkpoint frees journal files for what still waits for one.
    async fn write_rest(&self) -> Result<(), StorageError> {
        loop {
            self.checkpoint_held().await?;
            if self.0.shared.journal.settle().await? && !self.has_unsaved() {
                return Ok(());
            }
        }
    }

    /// Writes all that is dirty into segments, flushes them, saves a checkpoint, and lets go what it supersedes.
    pub(crate) async fn checkpoint(&self) -> Result<(), StorageError> {
        let _permit = self.0.shared.maintenance.acquire(1).await;
        self.checkpoint_held().await
    }

    /// As [`Storage::checkpoint`], with the maintenance permit held by the caller.
    pub(crate) async fn checkpoint_held(&self) -> Result<(), StorageError> {
        let written = self.write_all().await;
        match &written {
            // Deletions must go through on a full disk, above all there: what could not be written stays in the journal.
            Err(error) if error.is_no_space() => {
                self.rename_deleted(self.0.shared.journal.durable_entry()).await?;
                self.flush_all().await?;
            }
            Err(_) => return written,
            Ok(()) => {}
        }
        self.save(None).await?;
        written
    }

    /// Writes every durable batch and the producers' state into segments and snapshots, and flushes them.
    pub(crate) async fn write_all(&self) -> Result<(), StorageError> {
        let shared = &self.0.shared;
        shared.failure.check()?;
        for (_, log) in self.logs() {
            self.write_log(&log).await?;
            log.0.write_snapshot().await?;
            runtime::task::yield_if_needed().await;
        }
        self.flush_all().await
    }

    /// Writes a log's durable batches into segments; under the maintenance permit. A deleted log of the same name gives up
    /// its directory first: the journal has its deletion before any batch of its successor.
    pub(crate) async fn write_log(&self, log: &Log) -> Result<(), StorageError> {
        let durable_entry = self.0.shared.journal.durable_entry();
        self.rename_deleted(durable_entry).await?;
        log.0.write_segments(durable_entry).await
    }

    /// Flushes what was written to segments, of logs that are being deleted, too: the checkpoint still names them.
    pub(crate) async fn flush_all(&self) -> Result<(), StorageError> {
        let shared = &self.0.shared;
        let deleting = self.0.deleting.borrow().clone();
        let logs =
            self.logs().into_iter().map(|(_, log)| log).chain(deleting.into_iter().map(|(log, _)| log));
        let unflushed: Vec<Log> = logs.filter(|log| !log.0.state.borrow().unflushed.is_empty()).collect();
        if shared.partitions_made.take() {
            let dir = shared.partitions_dir();
            runtime::disk::sync_dir(&dir).await.map_err(StorageError::during("flush", &dir))?;
        }
        let flushes = stream::iter(unflushed.into_iter().map(Ok));
        flushes.try_for_each_concurrent(FLUSHES_AT_ONCE, async |log| log.0.flush_segments().await).await
    }

    /// Generation of the next checkpoint; under the maintenance permit.
    pub(crate) fn next_generation(&self) -> u64 {
        self.0.generation.get() + 1
    }

    /// Saves a checkpoint of what is in the segments, and lets go what it supersedes.
    pub(crate) async fn save(&self, closed_at: Option<(u16, u64)>) -> Result<(), StorageError> {
        let shared = &self.0.shared;
        let doomed = shared.doomed.take();
        let (mut checkpoint, first_needed) = self.table();
        // What must be replayed must be searched for.
        checkpoint.closed_at = closed_at.filter(|_| checkpoint.replay_from_block > checkpoint.durable_block);
        if let Err(error) = checkpoint::save(&shared.config.dir, &checkpoint).await {
            shared.doomed.borrow_mut().extend(doomed);
            return Err(error);
        }
        self.0.generation.set(checkpoint.generation);
        // Not what became durable after the segments were written.
        self.0.saved_entry.set(first_needed - 1);
        self.0.saved_at.set(runtime::time::now());
        for (_, log) in self.logs() {
            log.0.state.borrow_mut().saved();
        }
        shared.journal.files.release_before(checkpoint.replay_from_block);
        shrink::remove(shared, doomed).await;
        Ok(())
    }

    /// Whether files wait for the next checkpoint to go.
    pub(crate) fn has_doomed(&self) -> bool {
        !self.0.deleting.borrow().is_empty() || !self.0.shared.doomed.borrow().is_empty()
    }

    /// Whether the last checkpoint lacks something.
    pub(crate) fn has_unsaved(&self) -> bool {
        self.0.shared.journal.durable_entry() != self.0.saved_entry.get()
    }

    /// Takes the directories of logs whose deletion is durable out of the way.
    async fn rename_deleted(&self, durable: u64) -> Result<(), StorageError> {
        let deleted = self.0.deleting.borrow().clone();
        for (log, entry) in deleted.into_iter().filter(|(_, entry)| *entry <= durable) {
            log.0.rename_deleted().await?;
            self.0.deleting.borrow_mut().retain(|(_, other)| *other != entry);
        }
        Ok(())
    }

    /// The checkpoint as of now, and the first entry that it needs of the journal. No await: all logs are seen at one moment.
    fn table(&self) -> (Checkpoint, u64) {
        let shared = &self.0.shared;
        let journal = &shared.journal;
        let durable_entry = journal.durable_entry();
        let live = self.0.logs.borrow();
        let deleting = self.0.deleting.borrow();
        let logs: Vec<&LogInner> =
            live.values().chain(deleting.iter().map(|(log, _)| log)).map(|log| &*log.0).collect();
        let needed = logs.iter().filter_map(|log| log.state.borrow().first_needed_entry());
        let first_needed = needed.min().unwrap_or(durable_entry + 1);
        let identity = journal.identity();
        let checkpoint = Checkpoint {
            shard: identity.shard,
            journal_id: identity.journal_id,
            generation: self.next_generation(),
            replay_from_block: journal.first_block_for(first_needed),
            durable_block: journal.durable_block(),
            next_entry: durable_entry + 1,
            closed_at: None,
            logs: logs.into_iter().map(|log| log.to_checkpoint(durable_entry)).collect(),
        };
        (checkpoint, first_needed)
    }
}

/// What a storage uses, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Memory that batches take.
    pub cache_bytes: u64,
    /// Of these, not yet in segments.
    pub dirty_bytes: u64,
    /// Journal files in use.
    pub journal_files_used: u64,
    /// Journal blocks flushed so far: one flush each.
    pub journal_blocks: u64,
    /// Journal entries made durable so far.
    pub journal_entries: u64,
}

impl LogInner {
    fn to_checkpoint(&self, durable_entry: u64) -> LogCheckpoint {
        let state = self.state.borrow();
        assert!(state.unflushed.is_empty(), "a checkpoint names only what is flushed");
        let (next_offset, last_index) = state.written_end();
        let leader_epochs = state.epochs.entries().iter().filter(|(_, start)| *start < next_offset);
        LogCheckpoint {
            topic_id: *self.id.topic_id.as_bytes(),
            partition: self.id.partition,
            topic: self.topic.clone(),
            log_start: state.log_start,
            applied_entry: state.first_needed_entry().map_or(durable_entry, |first| first - 1),
            vote: state.vote.map(|vote| (vote.term, vote.node, vote.committed)),
            next_offset,
            last_index,
            leader_epochs: leader_epochs.copied().collect(),
            // Producers without a snapshot are read from the log, from its beginning.
            snapshot_offset: if state.producers.is_empty() { -1 } else { state.snapshot_offset.max(0) },
            segments: state.segments.clone(),
        }
    }
}
