//! The last offset of each key in a stretch of a log, within a budget of keys. Pure, but for the seed.
//! Does not own: which stretch (`compact`).
//!
//! Invariants:
//! 1. Keys are told apart by a hash of 16 bytes that nobody outside can foresee, so nobody can make two of them meet.
//! 2. What is known of a key is the offset of a record that exists: whatever was left out, a record before it is superseded.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use protocol::record::{BatchHeader, Record, RecordIter};

use crate::segment::cursor::Located;

/// Larger batches, decompressed, are neither looked into nor changed.
const LOOK_INSIDE_BYTES_MAX: usize = 64 << 20;

/// Last offsets by key, for offsets below `end`.
pub(crate) struct LastOffsets {
    seeds: [u64; 2],
    by_key: BTreeMap<u128, i64>,
    keys_max: usize,
    /// Records from here on were not looked at.
    pub(crate) end: i64,
}

impl LastOffsets {
    /// Knows nothing; to be filled with records from `from` on.
    pub(crate) fn new(keys_max: usize, from: i64, seeds: [u64; 2]) -> Self {
        Self { seeds, by_key: BTreeMap::new(), keys_max, end: from }
    }

    /// Takes the records of the next batch.
    pub(crate) fn add(&mut self, batch: &Located) {
        if batch.header.last_offset() < self.end {
            return;
        }
        for record in records(batch).unwrap_or_default() {
            if let Some(key) = &record.key {
                self.by_key.insert(self.hash(key), record.offset);
            }
        }
        self.end = batch.header.next_offset();
    }

    /// Whether the budget is used up: what follows is left to the next pass.
    pub(crate) fn is_full(&self) -> bool {
        self.by_key.len() >= self.keys_max
    }

    /// Whether no later record with the same key is known. Records without a key, which only a topic can hold that was not
    /// compacted once, do not stay, as in Kafka.
    fn is_last(&self, record: &Record) -> bool {
        let Some(key) = &record.key else { return false };
        self.by_key.get(&self.hash(key)).is_none_or(|last| *last <= record.offset)
    }

    fn hash(&self, key: &[u8]) -> u128 {
        let half = |seed: u64| {
            let mut hasher = DefaultHasher::new();
            // The secret comes first: it is what the state of the hash depends on when the key comes.
            hasher.write_u64(seed);
            hasher.write_u64(!seed.rotate_left(29));
            hasher.write(key);
            u128::from(hasher.finish())
        };
        half(self.seeds[0]) << 64 | half(self.seeds[1])
    }
}

/// What compaction makes of tombstones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tombstones {
    pub(crate) now_ms: i64,
    /// `delete.retention.ms`, counted from the pass that first kept the tombstone (KIP-534).
    pub(crate) retention_ms: i64,
}

/// What stays of a batch, `None` for nothing. One that is `needed` stays at least as a header.
pub(crate) fn filter(
    batch: &Located,
    last: &LastOffsets,
    tombstones: Tombstones,
    needed: bool,
) -> Option<bytes::Bytes> {
    let (header, unchanged) = (&batch.header, Some(batch.bytes.clone()));
    if header.next_offset() > last.end {
        return unchanged;
    }
    let Some(mut records) = records(batch) else { return unchanged };
    let before = records.len();
    let expired = header.delete_horizon_ms().is_some_and(|horizon| horizon <= tombstones.now_ms);
    records.retain(|record| last.is_last(record) && !(expired && record.value.is_none()));
    if records.is_empty() && !needed {
        return None;
    }
    let marks = header.delete_horizon_ms().is_none() && records.iter().any(|record| record.value.is_none());
    if records.len() == before && !marks {
        return unchanged;
    }
    let horizon = marks.then(|| tombstones.now_ms.saturating_add(tombstones.retention_ms));
    protocol::record::rebuild(header, &records, horizon).ok().or(unchanged)
}

/// The records of a batch; `None` where compaction must keep its hands off: what is no client's data, cannot be read, or
/// contradicts its header (as a topic may hold that was not compacted once).
fn records(batch: &Located) -> Option<Vec<Record>> {
    let BatchHeader { base_offset, .. } = batch.header;
    if batch.header.is_control() || batch.header.is_transactional() {
        return None;
    }
    let records = RecordIter::of_batch(&batch.bytes, LOOK_INSIDE_BYTES_MAX).ok()?;
    let records = records.collect::<Result<Vec<_>, _>>().ok()?;
    let rising = records.is_sorted_by(|a, b| a.offset < b.offset);
    let inside = |record: &Record| (base_offset..=batch.header.last_offset()).contains(&record.offset);
    (rising && records.iter().all(inside)).then_some(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::{Builder, Codec, set_base_offset};

    fn located(base_offset: i64, records: &[(&str, Option<&str>)]) -> Located {
        let mut builder = Builder::new(Codec::Lz4);
        for (key, value) in records {
            builder.push(5, Some(key.as_bytes()), value.map(str::as_bytes), &[]);
        }
        let mut bytes = builder.build().to_vec();
        set_base_offset(&mut bytes, base_offset);
        let header = BatchHeader::read(&bytes).expect("a header");
        Located { position: 0, header, bytes: bytes.into() }
    }

    fn again(bytes: bytes::Bytes) -> Located {
        Located { position: 0, header: BatchHeader::read(&bytes).expect("a header"), bytes }
    }

    fn offsets(batch: &Located) -> Vec<i64> {
        records(batch).expect("records").iter().map(|record| record.offset).collect()
    }

    #[test]
    fn the_last_record_of_each_key_stays() {
        let batches = [
            located(0, &[("a", Some("1")), ("b", Some("1"))]),
            located(2, &[("a", Some("2"))]),
            located(3, &[("a", Some("3")), ("c", Some("1"))]),
        ];
        let mut last = LastOffsets::new(100, 0, [1, 2]);
        batches.iter().for_each(|batch| last.add(batch));
        let tombstones = Tombstones { now_ms: 1000, retention_ms: 50 };
        let first = again(filter(&batches[0], &last, tombstones, false).expect("b stays"));
        assert_eq!((offsets(&first), first.header.last_offset()), (vec![1], 1));
        assert_eq!(filter(&batches[1], &last, tombstones, false), None);
        let emptied = again(filter(&batches[1], &last, tombstones, true).expect("a header"));
        assert_eq!((offsets(&emptied), emptied.header.last_offset()), (vec![], 2));
        assert_eq!(filter(&batches[2], &last, tombstones, false), Some(batches[2].bytes.clone()));
        last.end = 1;
        assert_eq!(filter(&batches[0], &last, tombstones, false), Some(batches[0].bytes.clone()));
    }

    #[test]
    fn tombstones_go_when_their_time_has_passed() {
        let batch = located(0, &[("a", None), ("b", Some("1"))]);
        let mut last = LastOffsets::new(100, 0, [1, 2]);
        last.add(&batch);
        let at = |now_ms| Tombstones { now_ms, retention_ms: 50 };
        let marked = again(filter(&batch, &last, at(1000), false).expect("stays"));
        assert_eq!((offsets(&marked), marked.header.delete_horizon_ms()), (vec![0, 1], Some(1050)));
        assert_eq!(filter(&marked, &last, at(1049), false), Some(marked.bytes.clone()));
        let later = again(filter(&marked, &last, at(1050), false).expect("b stays"));
        assert_eq!(offsets(&later), [1]);
    }
}
