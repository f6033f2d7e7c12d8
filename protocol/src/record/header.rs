//! [`BatchHeader`]: the 61 bytes in front of the records of a batch, read in place.
//!
//! | at | bytes | field | in the CRC |
//! |---|---|---|---|
//! | 0 | 8 | base offset | |
//! | 8 | 4 | batch length, from byte 12 on | |
//! | 12 | 4 | partition leader epoch | |
//! | 16 | 1 | magic, 2 | |
//! | 17 | 4 | CRC32C of byte 21 on | |
//! | 21 | 2 | attributes | yes |
//! | 23 | 4 | last offset delta | yes |
//! | 27 | 8 | base timestamp | yes |
//! | 35 | 8 | max timestamp | yes |
//! | 43 | 8 | producer id | yes |
//! | 51 | 2 | producer epoch | yes |
//! | 53 | 4 | base sequence | yes |
//! | 57 | 4 | record count | yes |

use super::{Codec, RecordError};

/// Bytes of a batch header.
pub const HEADER_BYTES: usize = 61;
/// Bytes in front of what the batch length counts.
pub const LENGTH_PREFIX_BYTES: usize = 12;
/// The one format that is supported.
pub const MAGIC: i8 = 2;
/// The timestamp that stands for none.
pub const NO_TIMESTAMP: i64 = -1;

pub(super) const LEADER_EPOCH_AT: usize = 12;
pub(super) const MAGIC_AT: usize = 16;
pub(super) const CRC_AT: usize = 17;
pub(super) const CHECKED_FROM: usize = 21;
pub(super) const MAX_TIMESTAMP_AT: usize = 35;

pub(super) const CODEC_MASK: i16 = 0x07;
pub(super) const LOG_APPEND_TIME: i16 = 0x08;
pub(super) const TRANSACTIONAL: i16 = 0x10;
pub(super) const CONTROL: i16 = 0x20;
pub(super) const DELETE_HORIZON: i16 = 0x40;

/// Who set the timestamps of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer, record by record.
    CreateTime,
    /// The broker: every record has the batch's max timestamp.
    LogAppendTime,
}

/// The header of a record batch, field by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Bytes behind this field; at least 49.
    pub batch_length: i32,
    /// Epoch of the leader that appended the batch, −1 from a producer.
    pub partition_leader_epoch: i32,
    /// Format, always [`MAGIC`].
    pub magic: i8,
    /// CRC32C of everything behind it.
    pub crc: u32,
    /// Codec and flags.
    pub attributes: i16,
    /// Offset of the last record, less the base offset.
    pub last_offset_delta: i32,
    /// Timestamp of the first record, in Unix milliseconds; or the delete horizon.
    pub base_timestamp: i64,
    /// The highest timestamp, in Unix milliseconds.
    pub max_timestamp: i64,
    /// Idempotent or transactional producer, −1 for none.
    pub producer_id: i64,
    /// Epoch of the producer, −1 for none.
    pub producer_epoch: i16,
    /// Sequence number of the first record, −1 for none.
    pub base_sequence: i32,
    /// Number of records.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`. Checks that it is a batch of format v2 with a possible length; whether
    /// all of the batch is there, and whether its CRC fits, is for others to ask.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let truncated = |wanted| RecordError::Truncated { wanted, left: bytes.len() };
        // The length and the magic lie at the same place in every format.
        let mut fields = Fields(bytes);
        let base_offset = i64::from_be_bytes(fields.next().ok_or(truncated(HEADER_BYTES))?);
        let batch_length = i32::from_be_bytes(fields.next().ok_or(truncated(HEADER_BYTES))?);
        let magic = *bytes.get(MAGIC_AT).ok_or(truncated(HEADER_BYTES))? as i8;
        if magic != MAGIC {
            return Err(RecordError::Magic(magic));
        }
        if batch_length < (HEADER_BYTES - LENGTH_PREFIX_BYTES) as i32 {
            return Err(RecordError::BatchLength(batch_length));
        }
        Self::read_v2(base_offset, batch_length, fields).ok_or(truncated(HEADER_BYTES))
    }

    fn read_v2(base_offset: i64, batch_length: i32, mut fields: Fields<'_>) -> Option<Self> {
        Some(Self {
            base_offset,
            batch_length,
            partition_leader_epoch: i32::from_be_bytes(fields.next()?),
            magic: i8::from_be_bytes(fields.next()?),
            crc: u32::from_be_bytes(fields.next()?),
            attributes: i16::from_be_bytes(fields.next()?),
            last_offset_delta: i32::from_be_bytes(fields.next()?),
            base_timestamp: i64::from_be_bytes(fields.next()?),
            max_timestamp: i64::from_be_bytes(fields.next()?),
            producer_id: i64::from_be_bytes(fields.next()?),
            producer_epoch: i16::from_be_bytes(fields.next()?),
            base_sequence: i32::from_be_bytes(fields.next()?),
            record_count: i32::from_be_bytes(fields.next()?),
        })
    }

    /// The header as bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut rest = bytes.as_mut_slice();
        let mut put = |field: &[u8]| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(field.len());
            head.copy_from_slice(field);
            rest = tail;
        };
        put(&self.base_offset.to_be_bytes());
        put(&self.batch_length.to_be_bytes());
        put(&self.partition_leader_epoch.to_be_bytes());
        put(&self.magic.to_be_bytes());
        put(&self.crc.to_be_bytes());
        put(&self.attributes.to_be_bytes());
        put(&self.last_offset_delta.to_be_bytes());
        put(&self.base_timestamp.to_be_bytes());
        put(&self.max_timestamp.to_be_bytes());
        put(&self.producer_id.to_be_bytes());
        put(&self.producer_epoch.to_be_bytes());
        put(&self.base_sequence.to_be_bytes());
        put(&self.record_count.to_be_bytes());
        bytes
    }

    /// Bytes of the whole batch, header included.
    pub fn size(&self) -> usize {
        self.batch_length.max(0) as usize + LENGTH_PREFIX_BYTES
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(self.last_offset_delta.into())
    }

    /// Offset behind the last record.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// Sequence number of the last record, −1 for none. Sequence numbers go on at 0 behind `i32::MAX`.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        (last & i64::from(i32::MAX)) as i32
    }

    /// How the records are compressed.
    pub fn compression(&self) -> Result<Codec, RecordError> {
        Codec::from_id((self.attributes & CODEC_MASK) as u8)
    }

    /// Who set the timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        match self.attributes & LOG_APPEND_TIME {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    /// Whether the batch is part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether the batch holds control records, which clients never see.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// Whether the producer is idempotent or transactional.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id >= 0
    }

    /// When tombstones in the batch may go, in Unix milliseconds: kept in place of the base timestamp (KIP-534).
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }
}

/// Takes fields off the front of bytes.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> BatchHeader {
        BatchHeader {
            base_offset: 10,
            batch_length: 49,
            partition_leader_epoch: 3,
            magic: 2,
            crc: 0xdead_beef,
            attributes: 0x33,
            last_offset_delta: 4,
            base_timestamp: 1_000,
            max_timestamp: 1_004,
            producer_id: 7,
            producer_epoch: 1,
            base_sequence: i32::MAX - 1,
            record_count: 5,
        }
    }

    #[test]
    fn bytes_lead_back() {
        let header = header();
        assert_eq!(BatchHeader::read(&header.to_bytes()), Ok(header));
        assert_eq!(header.size(), HEADER_BYTES);
        assert_eq!(header.last_offset(), 14);
        assert_eq!(header.last_sequence(), 2);
        assert_eq!(header.compression(), Ok(Codec::Lz4));
        assert!(header.is_control() && header.is_transactional());
        assert_eq!(header.timestamp_type(), TimestampType::CreateTime);
        assert_eq!(header.delete_horizon_ms(), None);
    }

    #[test]
    fn short_old_and_impossible_headers_are_refused() {
        let bytes = header().to_bytes();
        for len in 0..HEADER_BYTES {
            assert_eq!(
                BatchHeader::read(&bytes[..len]),
                Err(RecordError::Truncated { wanted: HEADER_BYTES, left: len })
            );
        }
        for magic in [0, 1, 3, 127, -1] {
            let bytes = BatchHeader { magic, ..header() }.to_bytes();
            assert_eq!(BatchHeader::read(&bytes), Err(RecordError::Magic(magic)));
        }
        for batch_length in [i32::MIN, -1, 0, 48] {
            let bytes = BatchHeader { batch_length, ..header() }.to_bytes();
            assert_eq!(BatchHeader::read(&bytes), Err(RecordError::BatchLength(batch_length)));
        }
    }
}
