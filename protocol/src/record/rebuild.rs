//! [`rebuild`]: a batch with some of its records, as compaction keeps it.
//! Does not own: which records stay.

use bytes::Bytes;

use super::builder::{put_bytes, put_len, put_varint};
use super::header::{CODEC_MASK, DELETE_HORIZON, HEADER_BYTES, LENGTH_PREFIX_BYTES};
use super::{BatchHeader, Record, RecordError, TimestampType, compression, patch};
use crate::wire::varint;

/// The batch with this header and only these of its records, compressed as it was. Offsets, producer, sequences and leader
/// epoch stay. A delete horizon (KIP-534: Unix milliseconds from which on tombstones may go) is set if given. Without records,
/// only the header is left, which keeps the batch's place and its producer's last sequence.
///
/// # Errors
/// The codec is not known.
///
/// # Panics
/// Over 2 GiB of records.
pub fn rebuild(
    header: &BatchHeader,
    records: &[Record],
    delete_horizon_ms: Option<i64>,
) -> Result<Bytes, RecordError> {
    let mut header = *header;
    if records.is_empty() {
        header.attributes &= !(CODEC_MASK | DELETE_HORIZON);
        header.base_timestamp = header.max_timestamp;
        return Ok(assemble(header, 0, &[]));
    }
    if let Some(horizon) = delete_horizon_ms {
        header.attributes |= DELETE_HORIZON;
        header.base_timestamp = horizon;
    }
    if header.timestamp_type() == TimestampType::CreateTime {
        header.max_timestamp =
            records.iter().map(|record| record.timestamp).max().unwrap_or(header.max_timestamp);
    }
    let (mut body, mut one) = (Vec::new(), Vec::new());
    for record in records {
        one.clear();
        one.push(0);
        let timestamp_delta = record.timestamp.wrapping_sub(header.base_timestamp);
        put_varint(&mut one, varint::zigzag_i64(timestamp_delta));
        let offset_delta = i32::try_from(record.offset.wrapping_sub(header.base_offset)).unwrap_or(i32::MAX);
        put_varint(&mut one, varint::zigzag_i32(offset_delta).into());
        put_bytes(&mut one, record.key.as_deref());
        put_bytes(&mut one, record.value.as_deref());
        put_len(&mut one, record.headers().count());
        for record_header in record.headers() {
            put_bytes(&mut one, Some(&record_header.key));
            put_bytes(&mut one, record_header.value.as_deref());
        }
        put_len(&mut body, one.len());
        body.extend_from_slice(&one);
    }
    let body = compression::compress(header.compression()?, &body);
    let count = i32::try_from(records.len()).expect("no more records than the batch had");
    Ok(assemble(header, count, &body))
}

fn assemble(header: BatchHeader, record_count: i32, body: &[u8]) -> Bytes {
    let size = HEADER_BYTES + body.len();
    let batch_length = i32::try_from(size - LENGTH_PREFIX_BYTES).expect("a batch is under 2 GiB");
    let header = BatchHeader { batch_length, record_count, ..header };
    let mut batch = Vec::with_capacity(size);
    batch.extend_from_slice(&header.to_bytes());
    batch.extend_from_slice(body);
    patch::set_crc(&mut batch);
    batch.into()
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, Codec, Producer, RecordIter, set_base_offset, verify_crc};
    use super::*;

    fn batch(codec: Codec) -> Bytes {
        let mut builder = Builder::new(codec).producer(Producer { id: 5, epoch: 2, base_sequence: 10 });
        builder.push(50, Some(b"a"), Some(b"1"), &[(b"h", Some(b"x")), (b"i", None)]);
        builder.push(90, Some(b"b"), None, &[]);
        builder.push(70, Some(b"c"), Some(b"3"), &[]);
        let mut bytes = builder.build().to_vec();
        set_base_offset(&mut bytes, 100);
        bytes.into()
    }

    fn records(batch: &Bytes) -> Vec<Record> {
        let records = RecordIter::of_batch(batch, 1 << 20).expect("a batch");
        records.map(|record| record.expect("a record")).collect()
    }

    #[test]
    fn records_that_stay_are_the_same() {
        for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            let batch = batch(codec);
            let (header, all) = (BatchHeader::read(&batch).expect("a header"), records(&batch));
            for horizon in [None, Some(1_000_000)] {
                let kept = [all[0].clone(), all[2].clone()];
                let rebuilt = rebuild(&header, &kept, horizon).expect("rebuilt");
                assert_eq!(verify_crc(&rebuilt), Ok(()));
                assert_eq!(records(&rebuilt), kept);
                let now = BatchHeader::read(&rebuilt).expect("a header");
                assert_eq!((now.base_offset, now.last_offset(), now.last_sequence()), (100, 102, 12));
                assert_eq!((now.record_count, now.max_timestamp), (2, 70));
                assert_eq!(now.delete_horizon_ms(), horizon);
                assert_eq!(now.compression(), Ok(codec));
                let again = rebuild(&now, &kept[..1], None).expect("rebuilt");
                assert_eq!(records(&again), kept[..1]);
                assert_eq!(BatchHeader::read(&again).expect("a header").delete_horizon_ms(), horizon);
            }
            let empty = rebuild(&header, &[], None).expect("rebuilt");
            assert_eq!((empty.len(), verify_crc(&empty)), (HEADER_BYTES, Ok(())));
            assert_eq!(records(&empty), []);
            let now = BatchHeader::read(&empty).expect("a header");
            assert_eq!((now.base_offset, now.last_offset(), now.last_sequence()), (100, 102, 12));
        }
    }
}
