//! A batch compressed anew, where the topic's `compression.type` is not the producer's. Pure.

use bytes::Bytes;
use protocol::record::validate::Refusal;
use protocol::record::{BatchHeader, Builder, Codec, Producer, RecordHeader, RecordIter};

/// The same records in another codec; offsets, timestamps, producer and sequence stay.
pub(super) fn recompress(
    header: &BatchHeader,
    batch: &Bytes,
    codec: Codec,
    limit_bytes: usize,
) -> Result<(Bytes, BatchHeader), Refusal> {
    let mut builder = Builder::new(codec);
    if header.has_producer_id() {
        builder = builder.producer(Producer {
            id: header.producer_id,
            epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
        });
    }
    for record in RecordIter::of_batch(batch, limit_bytes)? {
        let record = record?;
        let headers: Vec<RecordHeader> = record.headers().collect();
        let headers: Vec<_> = headers.iter().map(|h| (h.key.as_ref(), h.value.as_deref())).collect();
        builder.push(record.timestamp, record.key.as_deref(), record.value.as_deref(), &headers);
    }
    let batch = builder.build();
    let header = BatchHeader::read(&batch)?;
    Ok((batch, header))
}
