//! Record batches for the tests of this crate.

use bytes::Bytes;
use protocol::record::{self, BatchHeader, Builder, Codec, Producer};

/// A batch of `records` records with values of `value_bytes`, and timestamps from `timestamp` on.
pub(crate) fn batch(
    records: i32,
    value_bytes: usize,
    timestamp: i64,
    producer: Option<Producer>,
) -> (BatchHeader, Bytes) {
    let mut builder = Builder::new(Codec::None);
    if let Some(producer) = producer {
        builder = builder.producer(producer);
    }
    for n in 0..records {
        builder.push(timestamp + i64::from(n), None, Some(&vec![b'v'; value_bytes]), &[]);
    }
    let bytes = builder.build();
    let header = BatchHeader::read(&bytes).expect("a built batch is valid");
    (header, bytes)
}

/// A batch as it is kept at `base_offset`.
pub(crate) fn batch_at(base_offset: i64, records: i32, value_bytes: usize) -> Vec<u8> {
    let (_, bytes) = batch(records, value_bytes, 1000, None);
    let mut bytes = bytes.to_vec();
    record::set_base_offset(&mut bytes, base_offset);
    bytes
}

/// The header of a producer's batch at `base_offset`.
pub(crate) fn header(id: i64, epoch: i16, base_sequence: i32, records: i32, base_offset: i64) -> BatchHeader {
    let (header, _) = batch(records, 1, 1_000_000, Some(Producer { id, epoch, base_sequence }));
    BatchHeader { base_offset, ..header }
}
