//! Group commit: entries gather while the block before is being flushed; one direct write that flushes makes them durable.
//! Owns: numbering of entries and blocks, the file being written, who waits for durability.
//! Does not own: what entries mean (`log`), which files are free (`files`).
//!
//! Invariants:
//! 1. One block is in flight at a time (docs/storage-format.md, section 2.3 rests on it).
//! 2. An entry counts as durable only after the flush of its block returned without an error.
//! 3. After a failed write or flush nothing is written or acknowledged any more; it is never retried.
//! 4. Entry numbers and block sequences rise by one and never repeat.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures::future::{self, Either};
use runtime::disk::AlignedBuf;
use runtime::sync::{Event, Listener};

use crate::durable::Completion;
use crate::error::StorageError;
use crate::failure::Failure;
use crate::journal::block::{self, BlockHeader, JournalIdentity};
use crate::journal::entry::{ENTRY_HEADER_BYTES, Entry};
use crate::journal::files::{Files, JournalFile, UsedFile};
use crate::sabotage::{self, Sabotage};

/// Payload at which a block takes no further entry: larger writes gain nothing and make small ones wait.
const BLOCK_PAYLOAD_BYTES_MAX: usize = 2 << 20;
/// Share of a file at which it takes none either, so that little is left unused at the end of files.
const FILE_SHARE: usize = 8;
/// Share of a file in which no batch is gathered unless another file is free: for the rest of a file that a block leaves
/// unused, and for deletions.
const KEPT_SHARE: u64 = 4;
/// Quiet time after which a seal proves the last block durable.
const SEAL_AFTER: Duration = Duration::from_secs(1);
/// How often a closing journal looks whether the disk is full.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The journal of a shard.
pub(crate) struct Journal {
    identity: JournalIdentity,
    pub(crate) files: Files,
    failure: Rc<Failure>,
    gather_bytes_max: usize,
    block_payload_bytes_max: usize,
    state: RefCell<State>,
    /// There is something to write, or the journal is closing.
    wake: Event,
    /// The durable entry moved, or the journal stopped.
    flushed: Event,
}

/// Where writing goes on.
pub(crate) struct Position {
    pub(crate) file: JournalFile,
    /// First sequence in this use of the file.
    pub(crate) first_block: u64,
    pub(crate) position: u64,
    pub(crate) next_block: u64,
    pub(crate) next_entry: u64,
}

struct State {
    gathering: Vec<Gathered>,
    /// Bytes gathering and in flight.
    waiting_bytes: usize,
    next_entry: u64,
    durable_entry: u64,
    next_block: u64,
    file: JournalFile,
    first_block: u64,
    position: u64,
    /// The last block holds entries, and nothing yet proves it durable.
    unsealed: bool,
    closing: bool,
    stopped: bool,
}

struct Gathered {
    entry: Entry,
    done: Option<Completion>,
}

impl Journal {
    /// A journal that goes on at `position`.
    pub(crate) fn new(
        identity: JournalIdentity,
        files: Files,
        failure: Rc<Failure>,
        gather_bytes_max: usize,
        position: Position,
    ) -> Self {
        let state = State {
            gathering: Vec::new(),
            waiting_bytes: 0,
            next_entry: position.next_entry,
            durable_entry: position.next_entry - 1,
            next_block: position.next_block,
            file: position.file,
            first_block: position.first_block,
            position: position.position,
            unsealed: false,
            closing: false,
            stopped: false,
        };
        let file_share = usize::try_from(files.file_bytes()).unwrap_or(usize::MAX) / FILE_SHARE;
        Self {
            identity,
            files,
            failure,
            gather_bytes_max,
            block_payload_bytes_max: BLOCK_PAYLOAD_BYTES_MAX.min(file_share),
            state: RefCell::new(state),
            wake: Event::new(),
            flushed: Event::new(),
        }
    }

    /// What all blocks of this journal share.
    pub(crate) fn identity(&self) -> JournalIdentity {
        self.identity
    }

    /// Largest batch that fits into a journal file.
    pub(crate) fn batch_bytes_max(&self) -> usize {
        let file_bytes = usize::try_from(self.files.file_bytes()).unwrap_or(usize::MAX);
        file_bytes - block::HEADER_BYTES - ENTRY_HEADER_BYTES
    }

    /// Number of the last durable entry.
    pub(crate) fn durable_entry(&self) -> u64 {
        self.state.borrow().durable_entry
    }

    /// Sequence of the last durable block.
    pub(crate) fn durable_block(&self) -> u64 {
        self.state.borrow().next_block - 1
    }

    /// Slot and position where the next block goes.
    pub(crate) fn end(&self) -> (u16, u64) {
        let state = self.state.borrow();
        (state.file.slot, state.position)
    }

    /// Waits until all entries gathered so far are durable; false when the journal has stalled first.
    pub(crate) async fn settle(&self) -> Result<bool, StorageError> {
        let last = self.state.borrow().next_entry - 1;
        self.durable_unless_stalled(last).await
    }

    /// First block that must stay so that `entry` and all later ones can be replayed.
    pub(crate) fn first_block_for(&self, entry: u64) -> u64 {
        let state = self.state.borrow();
        if entry > state.durable_entry {
            return state.next_block;
        }
        self.files.first_block_with(entry).unwrap_or(state.first_block)
    }

    /// Whether a batch may be gathered now without growing beyond the limit, and is sure of a place in a file.
    pub(crate) fn has_room(&self) -> bool {
        self.state.borrow().waiting_bytes < self.gather_bytes_max && self.has_place()
    }

    /// Whether there is no place for a batch, nor for a file that would give it one.
    pub(crate) fn is_starved(&self) -> bool {
        self.files.no_space() && !self.has_place()
    }

    /// What waits fits into the files that are there, and leaves some: deletions must find a place on a full disk.
    fn has_place(&self) -> bool {
        let state = self.state.borrow();
        let kept = state.file.bytes.min(self.files.file_bytes()) / KEPT_SHARE;
        let left = state.file.bytes.saturating_sub(state.position) + self.files.free_bytes();
        left >= kept + state.waiting_bytes as u64
    }

    /// Ready once another block is durable, or the journal has stopped.
    pub(crate) fn flushed(&self) -> Listener {
        self.flushed.listen()
    }

    /// Gathers one entry for the next block and returns its number. Small entries are taken beyond the limit too:
    /// votes and deletions must not starve behind batches.
    pub(crate) fn append(&self, entry: Entry, done: Option<Completion>) -> Result<u64, StorageError> {
        self.failure.check()?;
        let mut state = self.state.borrow_mut();
        if state.closing {
            return Err(StorageError::Closed);
        }
        let number = state.next_entry;
        state.next_entry += 1;
        state.waiting_bytes += entry.encoded_bytes();
        if sabotage::is(Sabotage::AcknowledgeBeforeFlush) {
            done.iter().for_each(Completion::complete);
        }
        state.gathering.push(Gathered { entry, done });
        drop(state);
        self.wake.notify_all();
        Ok(number)
    }

    /// Waits until the entry with this number is durable.
    pub(crate) async fn durable(&self, entry: u64) -> Result<(), StorageError> {
        loop {
            let listener = self.flushed.listen();
            if self.durable_entry() >= entry || sabotage::is(Sabotage::AcknowledgeBeforeFlush) {
                return Ok(());
            }
            self.failure.check()?;
            if self.state.borrow().stopped {
                return Err(StorageError::Closed);
            }
            listener.await;
        }
    }

    /// As [`Journal::durable`] for whoever must not wait for a checkpoint: false when the journal has stalled first.
    pub(crate) async fn durable_unless_stalled(&self, entry: u64) -> Result<bool, StorageError> {
        let (durable, stalled) = (pin!(self.durable(entry)), pin!(self.files.wait_stalled()));
        match future::select(durable, stalled).await {
            Either::Left((durable, _)) => durable.map(|()| true),
            Either::Right(_) => Ok(false),
        }
    }

    /// Takes no further entries, flushes those gathered and waits for that; false when they were given up for want of space.
    pub(crate) async fn close(&self) -> Result<bool, StorageError> {
        self.state.borrow_mut().closing = true;
        self.wake.notify_all();
        loop {
            let listener = self.flushed.listen();
            self.failure.check()?;
            if self.state.borrow().stopped {
                return Ok(true);
            }
            // On a full disk what waits for a journal file was never acknowledged, and is given up.
            if self.files.stalled() {
                return Ok(false);
            }
            let _ = runtime::time::timeout(LOOK_INTERVAL, listener).await;
        }
    }

    /// Writes blocks until the journal is closed or has failed.
    pub(crate) async fn run_flusher(self: Rc<Self>) {
        while let Some(batch) = self.next_batch().await {
            if let Err(error) = self.flush(batch).await {
                self.failure.set(error);
                break;
            }
            self.flushed.notify_all();
        }
        self.state.borrow_mut().stopped = true;
        self.flushed.notify_all();
    }

    /// What the next block is to hold; nothing for a seal; `None` at the end.
    async fn next_batch(&self) -> Option<Vec<Gathered>> {
        loop {
            let listener = self.wake.listen();
            if self.failure.get().is_some() {
                return None;
            }
            if let Some(batch) = self.take_gathered() {
                return Some(batch);
            }
            let (closing, unsealed) = {
                let state = self.state.borrow();
                (state.closing, state.unsealed)
            };
            if closing {
                return None;
            }
            if !unsealed {
                listener.await;
            } else if runtime::time::timeout(SEAL_AFTER, listener).await.is_err() {
                return Some(Vec::new());
            }
        }
    }

    fn take_gathered(&self) -> Option<Vec<Gathered>> {
        let mut state = self.state.borrow_mut();
        let mut bytes = 0;
        let fits = |gathered: &&Gathered| {
            let before = bytes;
            bytes += gathered.entry.encoded_bytes();
            before == 0 || bytes <= self.block_payload_bytes_max
        };
        let count = state.gathering.iter().take_while(fits).count();
        if count == 0 {
            return None;
        }
        let rest = state.gathering.split_off(count);
        Some(std::mem::replace(&mut state.gathering, rest))
    }

    async fn flush(&self, batch: Vec<Gathered>) -> Result<(), StorageError> {
        let (entries, done): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|gathered| (gathered.entry, gathered.done)).unzip();
        let block_bytes = block::block_bytes_for(payload_bytes(&entries));
        self.roll_for(block_bytes as u64).await?;
        let header = self.write_block(entries, None).await?;
        self.complete(&header);
        done.iter().flatten().for_each(Completion::complete);
        Ok(())
    }

    /// Writes the entries of the last block once more, and flushes that. What a start has read may not be durable: its flush
    /// may have failed, or never have been asked for. From here on it is, and a hole where it was means nothing.
    pub(crate) async fn repeat(&self, last: &BlockHeader, entries: Vec<Entry>) -> Result<(), StorageError> {
        let block_bytes = last.block_bytes();
        if !self.fits(block_bytes) {
            let file = match self.files.try_take(block_bytes) {
                Some(file) => file,
                None => self.files.make_standard().await?,
            };
            self.go_on_in(file);
        }
        let header = self.write_block(entries, Some(last)).await?;
        let mut state = self.state.borrow_mut();
        state.next_block = header.sequence + 1;
        state.position += header.block_bytes();
        Ok(())
    }

    /// Writes one block at the present position, durably.
    async fn write_block(
        &self,
        entries: Vec<Entry>,
        repeated: Option<&BlockHeader>,
    ) -> Result<BlockHeader, StorageError> {
        let (header, file) = self.next_header(&entries, repeated);
        let mut buf = AlignedBuf::zeroed(block::block_bytes_for(header.payload_bytes as usize));
        block::encode(&self.identity, &header, &entries, &mut buf);
        drop(entries);
        // Opened with `O_DSYNC`: one request that writes and flushes.
        let written = file.file.write_at(header.position, buf).await;
        written.map_err(StorageError::during("write and flush", file.file.path()))?;
        Ok(header)
    }

    /// Goes on in another file when the block does not fit into what is left of this one.
    async fn roll_for(&self, block_bytes: u64) -> Result<(), StorageError> {
        if self.fits(block_bytes) {
            return Ok(());
        }
        let next = match self.files.try_take(block_bytes) {
            Some(file) => file,
            None => {
                let (taken, failed) = (pin!(self.files.take(block_bytes)), pin!(self.failure.wait()));
                match future::select(taken, failed).await {
                    Either::Left((file, _)) => file,
                    Either::Right((error, _)) => return Err(error),
                }
            }
        };
        self.go_on_in(next);
        Ok(())
    }

    fn fits(&self, block_bytes: u64) -> bool {
        let state = self.state.borrow();
        state.position + block_bytes <= state.file.bytes
    }

    fn go_on_in(&self, next: JournalFile) {
        let mut state = self.state.borrow_mut();
        let used = UsedFile {
            file: std::mem::replace(&mut state.file, next),
            first_block: state.first_block,
            last_block: state.next_block - 1,
            next_entry: state.durable_entry + 1,
        };
        state.first_block = state.next_block;
        state.position = 0;
        drop(state);
        self.files.push_full(used);
    }

    fn next_header(&self, entries: &[Entry], repeated: Option<&BlockHeader>) -> (BlockHeader, JournalFile) {
        let state = self.state.borrow();
        let header = BlockHeader {
            sequence: state.next_block,
            first_entry: repeated.map_or(state.durable_entry + 1, |last| last.first_entry),
            entry_count: u32::try_from(entries.len()).expect("a block is smaller than 4 GiB"),
            payload_bytes: u32::try_from(payload_bytes(entries)).expect("a block is smaller than 4 GiB"),
            position: state.position,
            slot: state.file.slot,
            repeats: repeated.map_or(0, |last| last.repeats.saturating_add(1)),
        };
        (header, state.file.clone())
    }

    fn complete(&self, header: &BlockHeader) {
        let mut state = self.state.borrow_mut();
        assert_eq!(state.next_block, header.sequence, "one block in flight at a time");
        state.next_block += 1;
        state.position += header.block_bytes();
        state.durable_entry = header.next_entry() - 1;
        state.waiting_bytes -= header.payload_bytes as usize;
        state.unsealed = header.entry_count > 0;
    }
}

fn payload_bytes(entries: &[Entry]) -> usize {
    entries.iter().map(Entry::encoded_bytes).sum()
}
