//! Which batches of a stretch of a segment a read returns. Pure.
//!
//! Invariants:
//! 1. Whole batches only; the first contains the offset asked for, or follows it where compaction left a hole.
//! 2. Every batch returned has a right CRC and offsets that rise and belong to the segment.
//! 3. Damage ends what is returned; it is an error for whoever asks for what is damaged, and for nobody else.

use std::ops::Range;

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
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) at: usize,
    pub(crate) what: String,
}

/// Selects from a stretch that begins at a batch of a segment with these offsets.
pub(crate) fn select(stretch: &[u8], offsets: Range<i64>, wanted: &Wanted) -> Result<Selected, Damage> {
    let Found { at: start, header, damaged } = match find(stretch, offsets.clone(), wanted)? {
        Ok(found) => found,
        Err(longer) => return Ok(longer),
    };
    let fits = |taken: usize, header: &BatchHeader| {
        let first = taken == 0 && wanted.min_one_batch;
        header.last_offset() < wanted.limit && (first || taken + header.size() <= wanted.bytes_max)
    };
    if !fits(0, &header) {
        return Ok(Selected::Nothing);
    }
    let Some(first) = stretch.get(start..start + header.size()) else {
        // From the damaged batch on, or it would be forgotten.
        let from = damaged.unwrap_or(start);
        return Ok(Selected::Longer { start: from, bytes: start - from + header.size() });
    };
    record::verify_crc(first).map_err(|error| Damage { at: start, what: error.to_string() })?;
    let (mut end, mut next_offset) = (start + header.size(), header.next_offset());
    while let Some(rest) = stretch.get(end..).filter(|rest| rest.len() >= HEADER_BYTES)
        && let Ok(header) = BatchHeader::read(rest)
        && misplaced(&header, next_offset..offsets.end).is_none()
        && fits(end - start, &header)
        && let Some(batch) = rest.get(..header.size())
        && record::verify_crc(batch).is_ok()
    {
        end += batch.len();
        next_offset = header.next_offset();
    }
    Ok(Selected::Range { start, end, next_offset })
}

/// The first batch wanted.
struct Found {
    at: usize,
    header: BatchHeader,
    /// Where the batches before it begin that have no offsets of their own any more.
    damaged: Option<usize>,
}

/// Walks to the first batch that ends at or behind the offset wanted; `Err` when the stretch ends before it begins.
fn find(stretch: &[u8], offsets: Range<i64>, wanted: &Wanted) -> Result<Result<Found, Selected>, Damage> {
    let (mut at, mut due) = (0, offsets.start);
    // Where batches stand that do not say their offsets: what follows says whether the offset wanted was in them.
    let mut damaged: Option<Damage> = None;
    loop {
        let rest = stretch.get(at..).unwrap_or_default();
        if rest.len() < HEADER_BYTES {
            let start = damaged.map_or(at, |damage| damage.at);
            return Ok(Err(Selected::Longer { start, bytes: at - start + HEADER_BYTES }));
        }
        let header = match (BatchHeader::read(rest), &mut damaged) {
            (Ok(header), _) => header,
            (Err(_), Some(damage)) => return Err(std::mem::take(damage)),
            (Err(error), None) => return Err(Damage { at, what: error.to_string() }),
        };
        if let Some(what) = misplaced(&header, due..offsets.end) {
            damaged.get_or_insert(Damage { at, what });
        } else if header.last_offset() < wanted.from {
            (due, damaged) = (header.next_offset(), None);
        } else {
            return match damaged {
                Some(damage) if header.base_offset > wanted.from => Err(damage),
                damaged => Ok(Ok(Found { at, header, damaged: damaged.map(|damage| damage.at) })),
            };
        }
        at += header.size();
    }
}

/// What is wrong with a batch where one with offsets in this range is due.
fn misplaced(header: &BatchHeader, offsets: Range<i64>) -> Option<String> {
    let fits = header.base_offset >= offsets.start
        && header.last_offset_delta >= 0
        && header.last_offset() < offsets.end;
    (!fits)
        .then(|| format!("offset {} where {} to {} are due", header.base_offset, offsets.start, offsets.end))
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
        assert_eq!(select(&bytes, 0..10, &wanted(3, 100, 10_000, false)), range(ends[0], ends[4], 10));
        assert_eq!(select(&bytes, 0..10, &wanted(3, 6, 10_000, false)), range(ends[0], ends[2], 6));
        assert_eq!(select(&bytes, 0..10, &wanted(0, 100, ends[0] + 1, false)), range(0, ends[0], 2));
        assert_eq!(select(&bytes, 0..10, &wanted(0, 100, 1, true)), range(0, ends[0], 2));
        assert_eq!(select(&bytes, 0..10, &wanted(4, 100, 1, false)), Ok(Selected::Nothing));
        assert_eq!(select(&bytes, 0..10, &wanted(4, 5, 10_000, true)), Ok(Selected::Nothing));
    }

    #[test]
    fn asks_for_more_when_the_first_batch_is_cut_off() {
        let (bytes, ends) = stretch();
        let short = &bytes[..ends[0] + 30];
        assert_eq!(
            select(short, 0..10, &wanted(2, 100, 10_000, true)),
            Ok(Selected::Longer { start: ends[0], bytes: HEADER_BYTES })
        );
        let short = &bytes[..ends[0] + 70];
        assert_eq!(
            select(short, 0..10, &wanted(2, 100, 10_000, true)),
            Ok(Selected::Longer { start: ends[0], bytes: ends[1] - ends[0] })
        );
        for end in [ends[0] - 1, ends[0]] {
            assert_eq!(
                select(&bytes[..end], 0..10, &wanted(2, 100, 10_000, true)),
                Ok(Selected::Longer { start: ends[0], bytes: HEADER_BYTES })
            );
        }
    }

    #[test]
    fn damage_spoils_one_batch_only() {
        let (good, ends) = stretch();
        // Base offset (beyond the CRC), a record, and the base offset so that it fits but does not rise.
        for (at, mask) in [(ends[1], 0x40), (ends[1] + 7, 0x20), (ends[1] + 100, 1), (ends[1] + 7, 4)] {
            let mut bad = good.clone();
            bad[at] ^= mask;
            for from in 0..10 {
                let one = select(&bad, 0..10, &wanted(from, 100, 1, true));
                let all = select(&bad, 0..10, &wanted(from, 100, 10_000, true));
                let n = from as usize / 2;
                let start = if n == 0 { 0 } else { ends[n - 1] };
                let range = |end: usize, next_offset| Ok(Selected::Range { start, end, next_offset });
                if n == 2 {
                    assert!(one.is_err() && all.is_err(), "{at} {from}");
                } else {
                    assert_eq!(one, range(ends[n], n as i64 * 2 + 2), "{at} {from}");
                    assert_eq!(
                        all,
                        if n < 2 { range(ends[1], 4) } else { range(ends[4], 10) },
                        "{at} {from}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn damage_is_an_error_or_outside_of_what_is_returned(at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let (good, _) = stretch();
            let mut bad = good.clone();
            let at = at.index(bad.len());
            bad[at] ^= 1 << bit;
            if let Ok(Selected::Range { start, end, .. }) = select(&bad, 0..10, &wanted(2, 100, 10_000, true)) {
                // Leader epoch and base offset lie outside of the CRC; rising offsets guard the latter in part.
                let in_header = (at - start.min(at)) % good.len();
                prop_assert!(!(start..end).contains(&at) || in_header % (good.len() / 5) < 16);
            }
        }
    }
}
