//! What the clients of one run saw, in the order in which they saw it; the checks judge nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::value::{Place, Value};

/// A moment of the history: every question and every answer has its own.
pub(crate) type Tick = u64;

/// A record that the node acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub value: Value,
    pub offset: i64,
    pub answered_at: Tick,
}

/// An answer that told the high watermark of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub place: Place,
    pub asked_at: Tick,
    pub answered_at: Tick,
    /// The mark; of a node that called an offset out of range, the highest that it may have had.
    pub high_watermark: i64,
}

/// A group's offset: stored, or asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub asked_at: Tick,
    pub answered_at: Tick,
    pub offset: i64,
}

/// A partition as it was read at the end.
#[derive(Clone, Default, Debug)]
pub(crate) struct FinalLog {
    pub log_start: i64,
    pub high_watermark: i64,
    pub records: Vec<(i64, Value)>,
}

/// Something that no record tells: a node that does not start, an answer that nobody should get.
#[derive(Clone, Debug)]
pub(crate) struct Breach {
    /// Name of the check.
    pub check: &'static str,
    /// What happened.
    pub what: String,
}

/// Everything that was seen.
#[derive(Default, Debug)]
pub(crate) struct History {
    ticks: Tick,
    /// How many values each producer has sent.
    pub sent: BTreeMap<u32, u32>,
    /// Producers that repeat what was not acknowledged, under idempotence.
    pub idempotent: BTreeSet<u32>,
    /// Values whose batches were refused before they could reach a log.
    pub refused: BTreeSet<Value>,
    pub acks: Vec<Ack>,
    /// All values that any read ever showed at an offset.
    pub shown: BTreeMap<(Place, i64), BTreeSet<Value>>,
    pub marks: Vec<Mark>,
    /// Reads that skipped something, or showed what is not a value.
    pub torn_reads: Vec<String>,
    pub garbage: Vec<String>,
    /// The group's offset: what was acknowledged, and what was read.
    pub committed: Vec<Stored>,
    pub fetched: Vec<Stored>,
    pub logs: BTreeMap<Place, FinalLog>,
    pub breaches: Vec<Breach>,
}

impl History {
    /// The next moment.
    pub(crate) fn tick(&mut self) -> Tick {
        self.ticks += 1;
        self.ticks
    }

    /// Notes a breach of what is judged on the spot.
    pub(crate) fn breach(&mut self, check: &'static str, what: impl Into<String>) {
        self.breaches.push(Breach { check, what: what.into() });
    }

    /// The highest offset of a partition that must be readable: below it, everything was acknowledged or shown.
    pub(crate) fn end_of(&self, place: Place) -> i64 {
        let shown = self
            .shown
            .range((place, 0)..=(place, i64::MAX))
            .next_back()
            .map_or(0, |((_, offset), _)| offset + 1);
        let acks = self.acks.iter().filter(|ack| ack.value.place == place).map(|ack| ack.offset + 1);
        acks.fold(shown, i64::max)
    }
}
