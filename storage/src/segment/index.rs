//! The three sparse indexes of a segment as bytes, and look-ups in them (docs/storage-format.md, sections 4.2 and 4.3). Pure.
//! Does not own: files; when entries are made (`meta`).
//!
//! Invariant: entries are strictly rising; bytes that are not make no index, and it is rebuilt.

/// Where a batch is: its last offset relative to the segment's base offset, its position, its raft index relative to the
/// segment's first. One entry of `.index` and one of `.rix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    pub(crate) offset: u32,
    pub(crate) position: u32,
    pub(crate) index: u32,
}

/// Up to where no timestamp is larger: one entry of `.timeindex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    pub(crate) timestamp: i64,
    pub(crate) offset: u32,
}

/// Bytes in front of the raft index.
pub(crate) const RIX_HEADER_BYTES: usize = 16;
const RIX_MAGIC: [u8; 4] = *b"MRIX";
const RIX_VERSION: u16 = 1;

impl OffsetEntry {
    /// Bytes of an entry in `.index`, and in `.rix`.
    pub(crate) const BYTES: usize = 8;

    /// Its bytes in `.index`.
    pub(crate) fn to_index(self) -> [u8; Self::BYTES] {
        join(self.offset.to_be_bytes(), self.position.to_be_bytes())
    }

    /// Its bytes in `.rix`.
    pub(crate) fn to_rix(self) -> [u8; Self::BYTES] {
        join(self.index.to_le_bytes(), self.position.to_le_bytes())
    }
}

impl TimeEntry {
    /// Bytes of an entry in `.timeindex`.
    pub(crate) const BYTES: usize = 12;

    /// Its bytes in `.timeindex`.
    pub(crate) fn to_timeindex(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_be_bytes());
        bytes
    }
}

fn join(first: [u8; 4], second: [u8; 4]) -> [u8; 8] {
    let [a, b, c, d] = first;
    let [e, f, g, h] = second;
    [a, b, c, d, e, f, g, h]
}

/// The header of a raft index.
pub(crate) fn rix_header(first_index: u64) -> [u8; RIX_HEADER_BYTES] {
    let mut bytes = [0; RIX_HEADER_BYTES];
    bytes[..4].copy_from_slice(&RIX_MAGIC);
    bytes[4..6].copy_from_slice(&RIX_VERSION.to_le_bytes());
    bytes[8..].copy_from_slice(&first_index.to_le_bytes());
    bytes
}

/// The indexes of one segment in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SegmentIndex {
    pub(crate) offsets: Vec<OffsetEntry>,
    pub(crate) times: Vec<TimeEntry>,
}

impl SegmentIndex {
    /// From the bytes of the three files, of which exactly the entries expected are used; `None` if they are no index of a
    /// segment of `segment_bytes` whose batches begin at raft index `first_index`.
    pub(crate) fn parse(
        index: &[u8],
        timeindex: &[u8],
        rix: &[u8],
        first_index: u64,
        counts: (u32, u32),
        segment_bytes: u64,
    ) -> Option<Self> {
        let (offset_count, time_count) = (counts.0 as usize, counts.1 as usize);
        let index = index.get(..offset_count.checked_mul(OffsetEntry::BYTES)?)?;
        let timeindex = timeindex.get(..time_count.checked_mul(TimeEntry::BYTES)?)?;
        let (header, rix) = rix.split_first_chunk::<RIX_HEADER_BYTES>()?;
        let rix = rix.get(..offset_count.checked_mul(OffsetEntry::BYTES)?)?;
        if *header != rix_header(first_index) {
            return None;
        }
        let (index, rix) = (index.as_chunks::<4>().0, rix.as_chunks::<4>().0);
        let mut this =
            Self { offsets: Vec::with_capacity(offset_count), times: Vec::with_capacity(time_count) };
        for (pair, rix_pair) in index.chunks_exact(2).zip(rix.chunks_exact(2)) {
            let ([offset, position], [raft_index, rix_position]) = (pair, rix_pair) else { return None };
            if u32::from_le_bytes(*rix_position) != u32::from_be_bytes(*position) {
                return None;
            }
            this.offsets.push(OffsetEntry {
                offset: u32::from_be_bytes(*offset),
                position: u32::from_be_bytes(*position),
                index: u32::from_le_bytes(*raft_index),
            });
        }
        for chunk in timeindex.as_chunks::<12>().0 {
            let (timestamp, offset) = (chunk.first_chunk::<8>()?, chunk.last_chunk::<4>()?);
            this.times.push(TimeEntry {
                timestamp: i64::from_be_bytes(*timestamp),
                offset: u32::from_be_bytes(*offset),
            });
        }
        this.is_sound(segment_bytes).then_some(this)
    }

    fn is_sound(&self, segment_bytes: u64) -> bool {
        let rising = |a: &OffsetEntry, b: &OffsetEntry| {
            a.offset < b.offset && a.position < b.position && a.index < b.index
        };
        self.offsets.is_sorted_by(rising)
            && self.offsets.last().is_none_or(|last| u64::from(last.position) < segment_bytes)
            && self.times.is_sorted_by(|a, b| a.timestamp < b.timestamp && a.offset <= b.offset)
    }

    /// Where to look for the batch that contains the offset (relative to the base offset).
    pub(crate) fn position_of(&self, offset: u64) -> u64 {
        self.entry_for(offset).map_or(0, |entry| u64::from(entry.position))
    }

    /// The entry that [`SegmentIndex::position_of`] goes by.
    pub(crate) fn entry_for(&self, offset: u64) -> Option<OffsetEntry> {
        self.before(self.offsets.partition_point(|entry| u64::from(entry.offset) <= offset)).copied()
    }

    /// Where to look for the batch with the raft index (relative to the first): a position, and the index of the batch there.
    pub(crate) fn position_of_index(&self, index: u64) -> (u64, u64) {
        let after = self.offsets.partition_point(|entry| u64::from(entry.index) <= index);
        self.before(after).map_or((0, 0), |entry| (u64::from(entry.position), u64::from(entry.index)))
    }

    /// An offset (relative) up to which every timestamp is smaller than `timestamp`.
    pub(crate) fn offset_before(&self, timestamp: i64) -> u64 {
        let after = self.times.partition_point(|entry| entry.timestamp < timestamp);
        after.checked_sub(1).and_then(|at| self.times.get(at)).map_or(0, |entry| u64::from(entry.offset))
    }

    fn before(&self, after: usize) -> Option<&OffsetEntry> {
        after.checked_sub(1).and_then(|at| self.offsets.get(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn index() -> SegmentIndex {
        SegmentIndex {
            offsets: vec![
                OffsetEntry { offset: 5, position: 100, index: 2 },
                OffsetEntry { offset: 9, position: 300, index: 4 },
            ],
            times: vec![TimeEntry { timestamp: 50, offset: 4 }, TimeEntry { timestamp: 80, offset: 8 }],
        }
    }

    fn files(index: &SegmentIndex) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let mut rix = rix_header(7).to_vec();
        rix.extend(index.offsets.iter().flat_map(|entry| entry.to_rix()));
        (
            index.offsets.iter().flat_map(|entry| entry.to_index()).collect(),
            index.times.iter().flat_map(|entry| entry.to_timeindex()).collect(),
            rix,
        )
    }

    #[test]
    fn look_ups_start_at_or_before() {
        let index = index();
        assert_eq!([0, 4, 5, 8, 9, 100].map(|offset| index.position_of(offset)), [0, 0, 100, 100, 300, 300]);
        assert_eq!(index.position_of_index(3), (100, 2));
        assert_eq!(index.position_of_index(1), (0, 0));
        assert_eq!([50, 51, 80, 81].map(|timestamp| index.offset_before(timestamp)), [0, 4, 4, 8]);
    }

    proptest! {
        #[test]
        fn damage_never_panics_and_round_trips_without(at in any::<prop::sample::Index>(), bit in 0u8..8, which in 0..4) {
            let index = index();
            let (mut a, mut b, mut c) = files(&index);
            match which {
                0 => { let at = at.index(a.len()); a[at] ^= 1 << bit }
                1 => { let at = at.index(b.len()); b[at] ^= 1 << bit }
                2 => { let at = at.index(c.len()); c[at] ^= 1 << bit }
                _ => {}
            }
            let parsed = SegmentIndex::parse(&a, &b, &c, 7, (2, 2), 400);
            if which == 3 {
                prop_assert_eq!(parsed, Some(index));
            }
        }
    }
}
