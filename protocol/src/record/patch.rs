//! What a broker checks and writes in the header of a batch that it keeps, in place.
//!
//! Base offset and leader epoch lie outside the CRC, so a leader sets them without reading the records.

use super::header::{CHECKED_FROM, CRC_AT, HEADER_BYTES, LEADER_EPOCH_AT, LOG_APPEND_TIME, MAX_TIMESTAMP_AT};
use super::{BatchHeader, RecordError};

/// Checks the CRC32C of the batch that `batch` begins with.
pub fn verify_crc(batch: &[u8]) -> Result<(), RecordError> {
    let header = BatchHeader::read(batch)?;
    let checked = batch.get(CHECKED_FROM..header.size());
    let checked = checked.ok_or(RecordError::Truncated { wanted: header.size(), left: batch.len() })?;
    let computed = crc32c::crc32c(checked);
    if computed == header.crc {
        return Ok(());
    }
    Err(RecordError::Crc { stored: header.crc, computed })
}

/// Sets the offset of the first record.
///
/// # Panics
/// When `batch` is shorter than a header; so do the other functions that write.
pub fn set_base_offset(batch: &mut [u8], base_offset: i64) {
    write(batch, 0, &base_offset.to_be_bytes());
}

/// Sets the epoch of the leader that appends the batch.
pub fn set_leader_epoch(batch: &mut [u8], leader_epoch: i32) {
    write(batch, LEADER_EPOCH_AT, &leader_epoch.to_be_bytes());
}

/// Gives every record the time `now_ms` (Unix milliseconds) at which it was appended, for topics with
/// `message.timestamp.type=LogAppendTime`. Computes the CRC anew; `batch` is the whole batch and nothing else.
pub fn set_max_timestamp_log_append(batch: &mut [u8], now_ms: i64) {
    assert!(batch.len() >= HEADER_BYTES, "a batch has a header");
    // The flag lies in the low byte of the attributes.
    batch[CHECKED_FROM + 1] |= LOG_APPEND_TIME as u8;
    write(batch, MAX_TIMESTAMP_AT, &now_ms.to_be_bytes());
    set_crc(batch);
}

/// Computes the CRC of a whole batch.
pub(super) fn set_crc(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[CHECKED_FROM..]);
    write(batch, CRC_AT, &crc.to_be_bytes());
}

fn write(batch: &mut [u8], at: usize, field: &[u8]) {
    assert!(batch.len() >= HEADER_BYTES, "a batch has a header");
    batch[at..at + field.len()].copy_from_slice(field);
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, Codec, TimestampType};
    use super::*;

    #[test]
    fn patched_fields_are_read_back_and_the_crc_holds() {
        let mut builder = Builder::new(Codec::None);
        builder.push(5, Some(b"k"), Some(b"v"), &[]);
        let mut batch = builder.build().to_vec();
        set_base_offset(&mut batch, 1 << 40);
        set_leader_epoch(&mut batch, 9);
        assert_eq!(verify_crc(&batch), Ok(()));
        set_max_timestamp_log_append(&mut batch, 77);
        assert_eq!(verify_crc(&batch), Ok(()));
        let header = BatchHeader::read(&batch).expect("a header");
        assert_eq!((header.base_offset, header.partition_leader_epoch), (1 << 40, 9));
        assert_eq!((header.max_timestamp, header.timestamp_type()), (77, TimestampType::LogAppendTime));
    }

    #[test]
    fn one_changed_bit_is_noticed() {
        let mut builder = Builder::new(Codec::None);
        builder.push(5, None, Some(b"value"), &[]);
        let batch = builder.build();
        for at in CRC_AT..batch.len() {
            let mut changed = batch.to_vec();
            changed[at] ^= 1;
            assert!(matches!(verify_crc(&changed), Err(RecordError::Crc { .. })), "byte {at}");
        }
        assert!(matches!(verify_crc(&batch[..batch.len() - 1]), Err(RecordError::Truncated { .. })));
    }
}
