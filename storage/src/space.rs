//! Whether the file system has room for what is appended: the reserve is kept free so that segments can always be written.
//! Owns: the full/not full decision. Does not own: measuring (the background does).
//!
//! Invariant: appends are refused before the journal or a segment can meet a full disk, as far as nobody else fills it.

use std::cell::Cell;

/// What a segment write in progress may count twice: as dirty, and as taken from the free space already.
const COMEBACK_BYTES_MIN: u64 = 4 << 20;

/// Free space as last measured, and what was appended since.
pub(crate) struct Space {
    reserve_bytes: u64,
    /// What may be appended before the next measurement.
    room_bytes: Cell<u64>,
    full: Cell<bool>,
}

impl Space {
    /// Nothing measured yet: full until the first measurement.
    pub(crate) fn new(reserve_bytes: u64) -> Self {
        Self { reserve_bytes, room_bytes: Cell::new(0), full: Cell::new(true) }
    }

    /// Whether appends are refused.
    pub(crate) fn is_full(&self) -> bool {
        self.full.get()
    }

    /// Takes a measurement: `free_bytes` on the file system, `dirty_bytes` that segments will still take.
    pub(crate) fn measured(&self, free_bytes: u64, dirty_bytes: u64) {
        let room = free_bytes.saturating_sub(self.reserve_bytes.saturating_add(dirty_bytes));
        // Some room must have come back before appends go on, or the answer would flicker.
        let needed = if self.full.get() { (self.reserve_bytes / 16).max(COMEBACK_BYTES_MIN) } else { 0 };
        let full = room <= needed;
        if full != self.full.get() {
            let reserve_bytes = self.reserve_bytes;
            if full {
                tracing::warn!(
                    free_bytes,
                    dirty_bytes,
                    reserve_bytes,
                    "the disk is nearly full: appends are refused"
                );
            } else {
                tracing::info!(
                    free_bytes,
                    dirty_bytes,
                    reserve_bytes,
                    "there is disk space: appends are accepted"
                );
            }
        }
        self.room_bytes.set(room);
        self.full.set(full);
    }

    /// A write met a full disk in spite of the reserve.
    pub(crate) fn exhausted(&self) {
        if !self.full.replace(true) {
            tracing::warn!("a segment write met a full disk: appends are refused until space comes back");
        }
    }

    /// Takes `bytes` out of the room, or refuses.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        if self.full.get() {
            return false;
        }
        match self.room_bytes.get().checked_sub(bytes) {
            Some(rest) => {
                self.room_bytes.set(rest);
                true
            }
            None => {
                self.full.set(true);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_before_the_reserve_is_touched_and_writable_again() {
        const MIB: u64 = 1 << 20;
        let space = Space::new(160 * MIB);
        assert!(!space.take(1));
        space.measured(300 * MIB, 0);
        assert!(space.take(100 * MIB));
        assert!(!space.take(100 * MIB), "would touch the reserve");
        assert!(space.is_full());
        space.measured(165 * MIB, 0);
        assert!(space.is_full(), "too little came back");
        space.measured(300 * MIB, 100 * MIB);
        assert!(space.take(40 * MIB));
        space.exhausted();
        assert!(!space.take(1));
        let without_reserve = Space::new(0);
        without_reserve.measured(3 * MIB, 0);
        assert!(without_reserve.is_full(), "too little to begin with");
        without_reserve.measured(5 * MIB, 0);
        assert!(without_reserve.take(5 * MIB));
    }
}
