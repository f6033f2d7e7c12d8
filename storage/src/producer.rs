//! What a log knows of its idempotent producers: the last five batches of each (KIP-98, KIP-360). Pure.
//! Owns: new or duplicate, in or out of order, fenced or not; expiry. Does not own: transactions, snapshots' files.
//!
//! Invariants:
//! 1. The state is a function of the batches applied in offset order, and of expiry by their timestamps.
//! 2. What is known as of any offset from `settled` on can be told: a snapshot never holds a batch that a crash may still take.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use protocol::record::BatchHeader;
use rkyv::{Archive, Deserialize, Serialize};

/// Batches remembered per producer: as many as a producer may have in flight.
const BATCHES_MAX: usize = 5;

/// What to do with a batch of an idempotent producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProducerCheck {
    /// Append it. Also the answer for batches without a producer id.
    New,
    /// It is there already; answer with these once the high watermark is beyond `last_offset`.
    Duplicate {
        /// Base offset it was given.
        base_offset: i64,
        /// Last offset it was given.
        last_offset: i64,
        /// Its largest timestamp.
        timestamp: i64,
    },
    /// The base sequence does not follow the last one (OUT_OF_ORDER_SEQUENCE_NUMBER).
    OutOfOrder {
        /// Last sequence known, −1 for none in this producer epoch.
        last_sequence: i32,
    },
    /// A newer producer epoch is known (INVALID_PRODUCER_EPOCH).
    Fenced {
        /// The newest producer epoch.
        producer_epoch: i16,
    },
}

/// One batch as remembered; also the form in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub(crate) struct KnownBatch {
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) last_sequence: i32,
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) timestamp: i64,
}

/// The batches of one producer, oldest first, never empty. All but the last five of the latest producer epoch are there
/// only because batches after them are not settled.
type Batches = VecDeque<KnownBatch>;

/// All producers of one log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Producers(BTreeMap<i64, Batches>);

impl Producers {
    /// Judges a batch that a client sends.
    pub(crate) fn check(&self, header: &BatchHeader) -> ProducerCheck {
        if header.producer_id < 0 {
            return ProducerCheck::New;
        }
        let Some((batches, last)) =
            self.0.get(&header.producer_id).and_then(|known| Some((known, known.back()?)))
        else {
            return ProducerCheck::New;
        };
        if header.producer_epoch < last.producer_epoch {
            return ProducerCheck::Fenced { producer_epoch: last.producer_epoch };
        }
        if header.producer_epoch > last.producer_epoch {
            // A new producer epoch begins with sequence 0.
            return match header.base_sequence {
                0 => ProducerCheck::New,
                _ => ProducerCheck::OutOfOrder { last_sequence: -1 },
            };
        }
        let ends_at = header.last_sequence();
        let same = |batch: &&KnownBatch| {
            batch.producer_epoch == header.producer_epoch
                && batch.base_sequence == header.base_sequence
                && batch.last_sequence == ends_at
        };
        if let Some(batch) = batches.iter().rev().take(BATCHES_MAX).find(same) {
            let KnownBatch { base_offset, last_offset, timestamp, .. } = *batch;
            return ProducerCheck::Duplicate { base_offset, last_offset, timestamp };
        }
        if follows(last.last_sequence, header.base_sequence) {
            ProducerCheck::New
        } else {
            ProducerCheck::OutOfOrder { last_sequence: last.last_sequence }
        }
    }

    /// Remembers a batch that was appended at `header.base_offset`. No crash can take what lies below `settled`.
    pub(crate) fn apply(&mut self, header: &BatchHeader, settled: i64) {
        if header.producer_id < 0 || header.is_control() {
            return;
        }
        let batches = self.0.entry(header.producer_id).or_default();
        batches.push_back(KnownBatch {
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            timestamp: header.max_timestamp,
        });
        prune(batches, settled);
    }

    /// The log ends at `end_offset` now.
    pub(crate) fn truncate_end(&mut self, end_offset: i64) {
        self.0.retain(|_, batches| {
            batches.retain(|batch| batch.last_offset < end_offset);
            !batches.is_empty()
        });
    }

    /// Forgets producers that have sent nothing for `expiration_ms`.
    pub(crate) fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.0.retain(|_, batches| {
            batches.back().is_some_and(|last| now_ms.saturating_sub(last.timestamp) < expiration_ms)
        });
    }

    /// Last offset of a producer's latest batch.
    pub(crate) fn last_offset(&self, producer_id: i64) -> Option<i64> {
        self.0.get(&producer_id)?.back().map(|last| last.last_offset)
    }

    /// Whether no producer is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The state as of `end_offset`, which must not lie below what was settled.
    pub(crate) fn to_snapshot(&self, end_offset: i64) -> Vec<(i64, Vec<KnownBatch>)> {
        let mut as_of = self.clone();
        as_of.truncate_end(end_offset);
        as_of.0.values_mut().for_each(|batches| prune(batches, i64::MAX));
        as_of.0.into_iter().map(|(producer_id, batches)| (producer_id, batches.into())).collect()
    }

    /// The state that a snapshot holds.
    pub(crate) fn from_snapshot(producers: Vec<(i64, Vec<KnownBatch>)>) -> Self {
        let known = producers.into_iter().filter(|(_, batches)| !batches.is_empty());
        Self(known.map(|(producer_id, batches)| (producer_id, batches.into())).collect())
    }
}

/// Drops from the front what is not needed to tell the state as of any offset ≥ `settled`.
fn prune(batches: &mut Batches, settled: i64) {
    let superseded = |batches: &Batches| {
        let settled_at = |at: usize| batches.get(at).filter(|batch| batch.last_offset < settled);
        let older_epoch = settled_at(1)
            .is_some_and(|next| Some(next.producer_epoch) != batches.front().map(|b| b.producer_epoch));
        older_epoch || settled_at(BATCHES_MAX).is_some()
    };
    while superseded(batches) {
        batches.pop_front();
    }
}

/// Whether `next` is the sequence after `last`.
fn follows(last: i32, next: i32) -> bool {
    i64::from(next) == i64::from(last) + 1 || (next == 0 && last == i32::MAX)
}

#[cfg(test)]
#[path = "producer_tests.rs"]
mod tests;
