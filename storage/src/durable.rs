//! How far a log is durable, as watched by whoever waits for acknowledgement.
//!
//! Invariants:
//! 1. It rises only when the flush of an entry has returned, and only for entries appended since the last truncation.
//! 2. It falls only by a truncation, which raft never asks for below what is raft-committed.

use std::cell::Cell;
use std::rc::Rc;

use runtime::sync::Watch;

/// The durable end of one log. Cheap to clone.
#[derive(Clone)]
pub(crate) struct DurableEnd(Rc<State>);

struct State {
    watch: Watch<i64>,
    truncations: Cell<u64>,
}

/// What happens when an entry has become durable: the log's durable end rises.
pub(crate) struct Completion {
    durable: DurableEnd,
    end_offset: i64,
    truncations: u64,
}

impl DurableEnd {
    /// A log durable up to `offset`.
    pub(crate) fn new(offset: i64) -> Self {
        Self(Rc::new(State { watch: Watch::new(offset), truncations: Cell::new(0) }))
    }

    /// First offset not durable.
    pub(crate) fn get(&self) -> i64 {
        self.0.watch.get()
    }

    /// The watched value.
    pub(crate) fn watch(&self) -> Watch<i64> {
        self.0.watch.clone()
    }

    /// What to do when an entry that ends the log at `end_offset` is durable.
    pub(crate) fn completion(&self, end_offset: i64) -> Completion {
        Completion { durable: self.clone(), end_offset, truncations: self.0.truncations.get() }
    }

    /// The log ends at `end_offset` now: entries still in flight say nothing any more about what follows.
    pub(crate) fn truncate(&self, end_offset: i64) {
        self.0.truncations.set(self.0.truncations.get() + 1);
        self.0.watch.set(self.get().min(end_offset));
    }

    /// Sets the end that recovery found.
    pub(crate) fn recover(&self, end_offset: i64) {
        self.0.watch.set(end_offset);
    }
}

impl Completion {
    /// Called once the entry is durable.
    pub(crate) fn complete(&self) {
        if self.durable.0.truncations.get() == self.truncations {
            self.durable.0.watch.set(self.durable.get().max(self.end_offset));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_from_before_a_truncation_raises_nothing() {
        let durable = DurableEnd::new(0);
        let (first, second) = (durable.completion(5), durable.completion(10));
        first.complete();
        durable.truncate(3);
        second.complete();
        assert_eq!(durable.get(), 3);
        durable.completion(7).complete();
        assert_eq!(durable.get(), 7);
    }
}
