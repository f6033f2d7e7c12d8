//! Which batches of a stretch of a segment a read returns. Pure.
//!
//! Invariants:
//! 1. Whole batches only; the first contains the offset asked for, or follows it where compaction left a hole.
//! 2. Every batch returned has a right CRC and offsets that rise.

use protocol::record::{self, BatchHeader, HEADER_BYTES};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The first batch contains this offset.
    pub(crate) from: i64,
    /// No batch reaches this offset.
    pub(crate) limit: i64,
    /// Bytes at most.
    pub(crate) bytes_max: usize,
    /// One batch even if it is larger than that (KIP-74).
    pub(crate) min_one_batch: bool,
}

/// What a stretch gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Selected {
    /// These bytes of the stretch; `next_offset` follows the last batch.
    Range { start: usize, end: usize, next_offset: i64 },
    /// The first batch wanted reaches the limit, or is larger than what is wanted.
    Nothing,
    /// The stretch ends before the first batch wanted does: read at least `bytes` from `start` on.
    Longer { start: usize, bytes: usize },
}

/// Damage, and where in the stretch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) at: usize,
    pub(crate) what: String,
}

/// Selects from a stretch that begins at a batch with offsets ≥ `min_offset`.
pub(crate) fn select(stretch: &[u8], min_offset: i64, wanted: &Wanted) -> Result<Selected, Damage> {
    let mut at = 0;
    let mut due = min_offset;
    let mut start = None;
    let mut next_offset = wanted.from;
    let mut stopped = false;
    while let Some(rest) = stretch.get(at..).filter(|rest| !rest.is_empty()) {
        let damage = |what: String| Damage { at, what };
        if rest.len() < HEADER_BYTES {
            if start.is_none() {
                return Ok(Selected::Longer { start: at, bytes: HEADER_BYTES });
            }
            break;
        }
        let header = BatchHeader::read(rest).map_err(|error| damage(error.to_string()))?;
        if header.base_offset < due || header.last_offset_delta < 0 {
            return Err(damage(format!("offset {} where {due} or more is due", header.base_offset)));
        }
        due = header.next_offset();
        let size = header.size();
        if header.last_offset() < wanted.from {
            at += size;
            continue;
        }
        let taken = at - start.unwrap_or(at);
        let too_much = taken + size > wanted.bytes_max && (taken > 0 || !wanted.min_one_batch);
        if header.last_offset() >= wanted.limit || too_much {
            stopped = true;
            break;
        }
        let Some(batch) = rest.get(..size) else {
            if start.is_none() {
                return Ok(Selected::Longer { start: at, bytes: size });
            }
            break;
        };
        record::verify_crc(batch).map_err(|error| damage(error.to_string()))?;
        start.get_or_insert(at);
        at += size;
        next_offset = header.next_offset();
    }
    match start {
        Some(start) => Ok(Selected::Range { start, end: at, next_offset }),
        None if stopped => Ok(Selected::Nothing),
        None => Ok(Selected::Longer { start: at, bytes: HEADER_BYTES }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_batches;
    use proptest::prelude::*;

    fn stretch() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for n in 0..5 {
            bytes.extend_from_slice(&test_batches::batch_at(n * 2, 2, 100));
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn wanted(from: i64, limit: i64, bytes_max: usize, min_one_batch: bool) -> Wanted {
        Wanted { from, limit, bytes_max, min_one_batch }
    }

    #[test]
    fn whole_batches_from_the_one_that_contains_the_offset() {
        let (bytes, ends) = stretch();
        let range = |start: usize, end: usize, next_offset| Ok(Selected::Range { start, end, next_offset });
        assert_eq!(select(&bytes, 0, &wanted(3, 100, 10_000, false)), range(ends[0], ends[4], 10));
        assert_eq!(select(&bytes, 0, &wanted(3, 6, 10_000, false)), range(ends[0], ends[2], 6));
        assert_eq!(select(&bytes, 0, &wanted(0, 100, ends[0] + 1, false)), range(0, ends[0], 2));
        assert_eq!(select(&bytes, 0, &wanted(0, 100, 1, true)), range(0, ends[0], 2));
        assert_eq!(select(&bytes, 0, &wanted(4, 100, 1, false)), Ok(Selected::Nothing));
        assert_eq!(select(&bytes, 0, &wanted(4, 5, 10_000, true)), Ok(Selected::Nothing));
    }

    #[test]
    fn asks_for_more_when_the_first_batch_is_cut_off() {
        let (bytes, ends) = stretch();
        let short = &bytes[..ends[0] + 30];
        assert_eq!(
            select(short, 0, &wanted(2, 100, 10_000, true)),
            Ok(Selected::Longer { start: ends[0], bytes: HEADER_BYTES })
        );
        let short = &bytes[..ends[0] + 70];
        assert_eq!(
            select(short, 0, &wanted(2, 100, 10_000, true)),
            Ok(Selected::Longer { start: ends[0], bytes: ends[1] - ends[0] })
        );
        for end in [ends[0] - 1, ends[0]] {
            assert_eq!(
                select(&bytes[..end], 0, &wanted(2, 100, 10_000, true)),
                Ok(Selected::Longer { start: ends[0], bytes: HEADER_BYTES })
            );
        }
    }

    proptest! {
        #[test]
        fn damage_is_an_error_or_outside_of_what_is_returned(at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let (good, _) = stretch();
            let mut bad = good.clone();
            let at = at.index(bad.len());
            bad[at] ^= 1 << bit;
            if let Ok(Selected::Range { start, end, .. }) = select(&bad, 0, &wanted(2, 100, 10_000, true)) {
                // Leader epoch and base offset lie outside of the CRC; rising offsets guard the latter in part.
                let in_header = (at - start.min(at)) % good.len();
                prop_assert!(!(start..end).contains(&at) || in_header % (good.len() / 5) < 16);
            }
        }
    }
}
