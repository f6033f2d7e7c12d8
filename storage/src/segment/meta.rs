//! What is known of a segment without opening it, when it is full, and which of its batches are indexed. Pure.
//!
//! Invariants:
//! 1. The same batches give the same index entries, whether they are being written or scanned to rebuild an index.
//! 2. Offsets relative to the base offset, and positions, fit into the i32 of Kafka's index formats.

use protocol::record::BatchHeader;
use rkyv::{Archive, Deserialize, Serialize};

use crate::config::LogConfig;
use crate::segment::index::{OffsetEntry, TimeEntry};

/// Largest offset difference and position that Kafka's indexes can hold.
pub(crate) const RELATIVE_MAX: i64 = i32::MAX as i64;

/// One segment. Also its form in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub(crate) struct Segment {
    /// First offset it may hold; its name.
    pub(crate) base_offset: i64,
    /// Raft index of its first batch.
    pub(crate) first_index: u64,
    /// Bytes of whole batches.
    pub(crate) bytes: u64,
    /// Offset after its last batch.
    pub(crate) next_offset: i64,
    /// Largest timestamp, −1 for none.
    pub(crate) max_timestamp: i64,
    /// Last offset of the batch with the largest timestamp.
    pub(crate) max_timestamp_offset: i64,
    /// Largest timestamp of its first batch, −1 for none: its age is counted from here.
    pub(crate) first_timestamp: i64,
    /// Entries in the offset index and in the raft index.
    pub(crate) index_entries: u32,
    /// Entries in the time index.
    pub(crate) time_entries: u32,
    /// Timestamp of the last entry in the time index, −1 for none.
    pub(crate) last_time_entry: i64,
    /// Bytes since the last index entry.
    pub(crate) bytes_since_index: u64,
}

/// What a segment must know of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Added {
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) index: u64,
    pub(crate) bytes: u64,
}

/// Index entries that a batch gave rise to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NewEntries {
    pub(crate) offset: Option<OffsetEntry>,
    pub(crate) time: Option<TimeEntry>,
}

impl Added {
    /// What a segment must know of the batch with this header and raft index.
    pub(crate) fn of(header: &BatchHeader, index: u64) -> Self {
        Self {
            last_offset: header.last_offset(),
            max_timestamp: header.max_timestamp,
            index,
            bytes: header.size() as u64,
        }
    }
}

impl Segment {
    /// A segment without batches.
    pub(crate) fn empty(base_offset: i64, first_index: u64) -> Self {
        Self {
            base_offset,
            first_index,
            bytes: 0,
            next_offset: base_offset,
            max_timestamp: -1,
            max_timestamp_offset: base_offset,
            first_timestamp: -1,
            index_entries: 0,
            time_entries: 0,
            last_time_entry: -1,
            bytes_since_index: 0,
        }
    }

    /// Whether the batch must go into a new segment.
    pub(crate) fn is_full_for(&self, batch: &Added, config: &LogConfig) -> bool {
        if self.bytes == 0 {
            return false;
        }
        let bytes = self.bytes + batch.bytes;
        let old = self.first_timestamp >= 0
            && batch.max_timestamp.saturating_sub(self.first_timestamp) > config.segment_ms;
        let index_full = u64::from(self.index_entries + 1) * OffsetEntry::BYTES as u64
            > config.segment_index_bytes
            || u64::from(self.time_entries + 2) * TimeEntry::BYTES as u64 > config.segment_index_bytes;
        bytes > config.segment_bytes.min(RELATIVE_MAX as u64)
            || batch.last_offset - self.base_offset > RELATIVE_MAX
            || old
            || index_full
    }

    /// Adds a batch at the end.
    pub(crate) fn add(&mut self, batch: &Added, index_interval_bytes: u64) -> NewEntries {
        if batch.max_timestamp > self.max_timestamp {
            self.max_timestamp = batch.max_timestamp;
            self.max_timestamp_offset = batch.last_offset;
        }
        if self.bytes == 0 {
            self.first_timestamp = batch.max_timestamp;
        }
        let mut new = NewEntries::default();
        if self.bytes_since_index > index_interval_bytes {
            new.offset = Some(OffsetEntry {
                offset: relative(batch.last_offset - self.base_offset),
                position: relative(i64::try_from(self.bytes).unwrap_or(i64::MAX)),
                index: u32::try_from(batch.index.saturating_sub(self.first_index)).unwrap_or(u32::MAX),
            });
            self.index_entries += 1;
            new.time = self.add_time_entry();
            self.bytes_since_index = 0;
        }
        self.bytes += batch.bytes;
        self.bytes_since_index += batch.bytes;
        self.next_offset = batch.last_offset.saturating_add(1);
        new
    }

    /// The entry that ends the time index of a closed segment.
    pub(crate) fn add_time_entry(&mut self) -> Option<TimeEntry> {
        if self.max_timestamp <= self.last_time_entry {
            return None;
        }
        self.last_time_entry = self.max_timestamp;
        self.time_entries += 1;
        Some(TimeEntry {
            timestamp: self.max_timestamp,
            offset: relative(self.max_timestamp_offset - self.base_offset),
        })
    }
}

/// An offset difference or position as Kafka's indexes hold it; segments roll before it could be larger.
fn relative(value: i64) -> u32 {
    u32::try_from(value.clamp(0, RELATIVE_MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(last_offset: i64, max_timestamp: i64, bytes: u64) -> Added {
        Added { last_offset, max_timestamp, index: last_offset as u64 + 1, bytes }
    }

    #[test]
    fn entries_come_after_more_than_the_interval() {
        let mut segment = Segment::empty(100, 101);
        assert_eq!(segment.add(&batch(100, 50, 60), 100), NewEntries::default());
        assert_eq!(segment.add(&batch(101, 70, 60), 100), NewEntries::default());
        let new = segment.add(&batch(102, 60, 60), 100);
        assert_eq!(new.offset, Some(OffsetEntry { offset: 2, position: 120, index: 2 }));
        assert_eq!(new.time, Some(TimeEntry { timestamp: 70, offset: 1 }));
        segment.add(&batch(103, 60, 101), 100);
        let new = segment.add(&batch(104, 65, 10), 100);
        assert!(new.offset.is_some());
        assert_eq!(new.time, None, "no larger timestamp came");
        assert_eq!(segment.add_time_entry(), None);
        assert_eq!((segment.bytes, segment.next_offset), (291, 105));
    }

    #[test]
    fn rolls_by_size_age_index_and_offset_range() {
        let config = LogConfig {
            segment_bytes: 1000,
            segment_ms: 50,
            segment_index_bytes: 24,
            ..LogConfig::default()
        };
        let mut segment = Segment::empty(0, 1);
        assert!(!segment.is_full_for(&batch(0, 0, 5000), &config), "an empty segment takes any batch");
        segment.add(&batch(0, 10, 600), 0);
        assert!(segment.is_full_for(&batch(1, 10, 401), &config));
        assert!(!segment.is_full_for(&batch(1, 10, 400), &config));
        assert!(segment.is_full_for(&batch(1, 61, 1), &config));
        assert!(segment.is_full_for(&batch(1 << 31, 10, 1), &config));
        segment.add(&batch(1, 20, 1), 0);
        assert!(segment.is_full_for(&batch(2, 20, 1), &config), "no room for the time entry at roll");
    }
}
