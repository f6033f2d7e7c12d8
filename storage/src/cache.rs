//! The shard's memory for batches: how much is held, how much of it is dirty, which clean batch goes first.
//! Does not own: the batches themselves; each log holds its own, in offset order.
//!
//! Invariants:
//! 1. Dirty batches (not yet in a segment) are never evicted, so every offset is in memory or in a segment.
//! 2. A log's clean batches are evicted in offset order, so what a log holds is one run up to its end.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Weak;

use crate::log::LogInner;

/// Memory that a cached batch costs beside its bytes.
pub(crate) const BATCH_OVERHEAD_BYTES: usize = 128;

/// Accounting of all cached batches of a shard.
pub(crate) struct Cache {
    bytes_max: usize,
    bytes: Cell<usize>,
    dirty_bytes: Cell<usize>,
    /// Clean batches, oldest first: the log, and the offset of the batch in it.
    clean: RefCell<VecDeque<(Weak<LogInner>, i64)>>,
}

impl Cache {
    /// An empty cache of at most `bytes_max`, which dirty batches may exceed for a moment.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: Cell::new(0), dirty_bytes: Cell::new(0), clean: RefCell::default() }
    }

    /// Bytes not yet in segments.
    pub(crate) fn dirty_bytes(&self) -> usize {
        self.dirty_bytes.get()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// The segment writer should hurry.
    pub(crate) fn pressed(&self) -> bool {
        self.dirty_bytes.get() > self.bytes_max / 2
    }

    /// Nothing more can be appended until the segment writer has caught up.
    pub(crate) fn exhausted(&self) -> bool {
        self.dirty_bytes.get() > self.bytes_max / 4 * 3
    }

    /// A dirty batch came.
    pub(crate) fn add_dirty(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes + BATCH_OVERHEAD_BYTES);
        self.dirty_bytes.set(self.dirty_bytes.get() + bytes + BATCH_OVERHEAD_BYTES);
    }

    /// A dirty batch is in its segment now.
    pub(crate) fn clean(&self, log: Weak<LogInner>, base_offset: i64, bytes: usize) {
        self.dirty_bytes.set(self.dirty_bytes.get() - bytes - BATCH_OVERHEAD_BYTES);
        self.clean.borrow_mut().push_back((log, base_offset));
    }

    /// A batch is gone.
    pub(crate) fn remove(&self, bytes: usize, dirty: bool) {
        self.bytes.set(self.bytes.get() - bytes - BATCH_OVERHEAD_BYTES);
        if dirty {
            self.dirty_bytes.set(self.dirty_bytes.get() - bytes - BATCH_OVERHEAD_BYTES);
        }
    }

    /// Evicts the oldest clean batches while the cache is over its limit. No log may be borrowed.
    pub(crate) fn evict(&self) {
        while self.bytes.get() > self.bytes_max {
            let Some((log, base_offset)) = self.clean.borrow_mut().pop_front() else { return };
            if let Some(log) = log.upgrade() {
                log.evict(base_offset);
            }
        }
    }
}
