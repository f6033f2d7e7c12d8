//! A log in memory: cached batches, segments, ends, producers, leader epochs. No I/O, no awaits.
//!
//! Invariants:
//! 1. `cached` is one run of batches that ends at `next_offset`; the first `clean` of them are in segments, the rest are dirty.
//! 2. The last segment ends where the dirty batches begin.
//! 3. Raft indexes of appended batches rise by one.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use protocol::record::BatchHeader;
use runtime::disk::BLOCK_BYTES;

use crate::config::{LogConfig, Vote};
use crate::error::StorageError;
use crate::leader_epochs::LeaderEpochs;
use crate::producer::Producers;
use crate::segment::index_files::Pending;
use crate::segment::meta::{Added, Segment};

/// Everything about a log that changes.
pub(crate) struct LogState {
    pub(crate) config: Rc<LogConfig>,
    /// False after a restart until the owner sets the configuration: no retention with a wrong one.
    pub(crate) config_known: bool,
    pub(crate) log_start: i64,
    pub(crate) next_offset: i64,
    pub(crate) last_index: u64,
    pub(crate) cached: VecDeque<Cached>,
    pub(crate) clean: usize,
    pub(crate) dirty_bytes: u64,
    pub(crate) segments: Vec<Segment>,
    /// Index entries of the last segment that are not in its files.
    pub(crate) pending: Pending,
    /// Base offsets of segments whose index must be rebuilt.
    pub(crate) damaged_indexes: Vec<i64>,
    /// Damage that kept the index of a segment from being rebuilt, by base offset.
    pub(crate) unindexable: BTreeMap<i64, StorageError>,
    pub(crate) unflushed: Unflushed,
    /// Base offset and length of the last segment in the checkpoint, if it ends inside a block that is not journalled: that
    /// block may be written again only after it is, for a power cut may spoil what is being written.
    pub(crate) protected: Option<(i64, u64)>,
    /// Segments were cut, and the checkpoint does not know: nothing may be written where they were.
    pub(crate) cut_unsaved: bool,
    pub(crate) directory_made: bool,
    pub(crate) epochs: LeaderEpochs,
    pub(crate) producers: Producers,
    /// Offset of the newest producer snapshot, −1 for none.
    pub(crate) snapshot_offset: i64,
    pub(crate) vote: Option<Vote>,
    /// Offset up to which the log was compacted since the start.
    pub(crate) compacted_to: i64,
    /// A segment is damaged: compaction keeps away until the next start.
    pub(crate) uncompactable: bool,
    /// Entry after which a deleted log is to be replayed no further.
    pub(crate) deleted: Option<u64>,
}

/// What was written to segment files and not flushed yet.
#[derive(Debug, Default)]
pub(crate) struct Unflushed {
    /// Base offsets of the segments.
    pub(crate) segments: Vec<i64>,
    /// Offset of the producer snapshot.
    pub(crate) snapshot: Option<i64>,
    /// Files were made in the directory.
    pub(crate) names: bool,
}

impl Unflushed {
    /// Whether there is nothing to flush.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.snapshot.is_none() && !self.names
    }
}

/// A batch in memory.
#[derive(Debug, Clone)]
pub(crate) struct Cached {
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) index: u64,
    /// Number of its journal entry.
    pub(crate) entry: u64,
    pub(crate) bytes: Bytes,
}

impl Cached {
    /// What a segment must know of it.
    pub(crate) fn added(&self) -> Added {
        Added {
            last_offset: self.last_offset,
            max_timestamp: self.max_timestamp,
            index: self.index,
            bytes: self.bytes.len() as u64,
        }
    }
}

/// What the segment writer does next.
pub(crate) enum Step {
    /// Begin a segment for the next dirty batch; the last one is full, or there is none.
    Roll,
    /// Write these batches, the first dirty ones, to the end of the last segment.
    Write(Vec<Cached>),
}

impl LogState {
    /// A log without batches.
    pub(crate) fn new(config: Rc<LogConfig>, config_known: bool) -> Self {
        Self {
            config,
            config_known,
            log_start: 0,
            next_offset: 0,
            last_index: 0,
            cached: VecDeque::new(),
            clean: 0,
            dirty_bytes: 0,
            segments: Vec::new(),
            pending: Pending::default(),
            damaged_indexes: Vec::new(),
            unindexable: BTreeMap::new(),
            unflushed: Unflushed::default(),
            protected: None,
            cut_unsaved: false,
            directory_made: false,
            epochs: LeaderEpochs::default(),
            producers: Producers::default(),
            snapshot_offset: -1,
            vote: None,
            compacted_to: 0,
            uncompactable: false,
            deleted: None,
        }
    }

    /// The dirty batches.
    pub(crate) fn dirty(&self) -> impl Iterator<Item = &Cached> {
        self.cached.iter().skip(self.clean)
    }

    /// Offset and raft index up to which everything is in segments: first offset not there, last index there.
    pub(crate) fn written_end(&self) -> (i64, u64) {
        self.cached
            .get(self.clean)
            .map_or((self.next_offset, self.last_index), |first| (first.base_offset, first.index - 1))
    }

    /// Bytes of all batches kept.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum::<u64>() + self.dirty_bytes
    }

    /// Puts a batch, patched and accepted, at the end.
    pub(crate) fn push(&mut self, header: &BatchHeader, index: u64, entry: u64, bytes: Bytes) {
        assert_eq!(header.base_offset, self.next_offset, "offsets have no gaps");
        assert_eq!(index, self.last_index + 1, "raft indexes have no gaps");
        let (settled, _) = self.written_end();
        self.producers.apply(header, settled);
        self.epochs.assign(header.partition_leader_epoch, header.base_offset);
        self.next_offset = header.last_offset() + 1;
        self.last_index = index;
        self.dirty_bytes += bytes.len() as u64;
        self.cached.push_back(Cached {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            max_timestamp: header.max_timestamp,
            index,
            entry,
            bytes,
        });
    }

    /// What to write next, of the batches whose entries are durable; `bytes_max` at once. Without `may_journal`, a protected
    /// block is left alone.
    pub(crate) fn next_step(&self, durable_entry: u64, bytes_max: u64, may_journal: bool) -> Option<Step> {
        if self.cut_unsaved {
            return None;
        }
        let mut dirty = self.dirty().take_while(|batch| batch.entry <= durable_entry).peekable();
        let first = dirty.peek()?;
        let Some(mut segment) = self.segments.last().copied() else { return Some(Step::Roll) };
        let untouchable = !may_journal && self.protected_tail().is_some();
        if untouchable || segment.is_full_for(&first.added(), &self.config) {
            return Some(Step::Roll);
        }
        let mut batches = Vec::new();
        let mut bytes = 0;
        for batch in dirty {
            let full = segment.is_full_for(&batch.added(), &self.config);
            if full || (bytes > 0 && bytes + batch.bytes.len() as u64 > bytes_max) {
                break;
            }
            bytes += batch.bytes.len() as u64;
            segment.add(&batch.added(), self.config.index_interval_bytes);
            batches.push(batch.clone());
        }
        Some(Step::Write(batches))
    }

    /// Length of the last segment up to which its last block must be journalled before it is written again.
    pub(crate) fn protected_tail(&self) -> Option<u64> {
        let last = self.segments.last()?;
        self.protected.filter(|(base_offset, _)| *base_offset == last.base_offset).map(|(_, bytes)| bytes)
    }

    /// A checkpoint with the segments as they are now is durable.
    pub(crate) fn saved(&mut self) {
        self.cut_unsaved = false;
        let inside_block = |segment: &&Segment| !segment.bytes.is_multiple_of(BLOCK_BYTES as u64);
        self.protected = self.segments.last().filter(inside_block).map(|last| (last.base_offset, last.bytes));
    }

    /// The batches of a [`Step::Write`] are in the last segment now.
    pub(crate) fn written(&mut self, batches: &[Cached]) {
        let interval = self.config.index_interval_bytes;
        let segment = self.segments.last_mut().expect("batches are written to a segment");
        for batch in batches {
            let new = segment.add(&batch.added(), interval);
            self.pending.offsets.extend(new.offset);
            self.pending.times.extend(new.time);
            self.dirty_bytes -= batch.bytes.len() as u64;
        }
        self.clean += batches.len();
    }

    /// The last segment is about to be written. Noted before: a write that fails may have changed its last block, and a
    /// checkpoint that calls the block durable must not leave that to a power cut.
    pub(crate) fn begin_write(&mut self, base_offset: i64) {
        if self.unflushed.segments.last() != Some(&base_offset) {
            self.unflushed.segments.push(base_offset);
        }
    }

    /// Number of the first entry that is not in a segment, if there is one.
    pub(crate) fn first_needed_entry(&self) -> Option<u64> {
        let dirty = self.dirty().next().map(|batch| batch.entry);
        dirty.into_iter().chain(self.deleted).min()
    }

    /// Drops the oldest cached batch if it is the clean one at `base_offset`, and returns its bytes.
    pub(crate) fn evict(&mut self, base_offset: i64) -> Option<usize> {
        if self.clean == 0 || self.cached.front()?.base_offset != base_offset {
            return None;
        }
        self.clean -= 1;
        self.cached.pop_front().map(|batch| batch.bytes.len())
    }
}
