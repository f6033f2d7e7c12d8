//! [`Builder`]: makes a batch out of records.

use bytes::Bytes;

use super::header::{CONTROL, HEADER_BYTES, LENGTH_PREFIX_BYTES, MAGIC, NO_TIMESTAMP, TRANSACTIONAL};
use super::{BatchHeader, Codec, compression, patch};
use crate::wire::varint;

/// The idempotent or transactional producer that a batch comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Its id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// Sequence number of the first record; −1 in control batches.
    pub base_sequence: i32,
}

/// Gathers records and makes one batch of them, with base offset 0 and leader epoch −1, as a producer sends it.
#[derive(Clone, Debug)]
pub struct Builder {
    codec: Codec,
    producer: Producer,
    attributes: i16,
    base_timestamp: i64,
    max_timestamp: i64,
    count: i32,
    records: Vec<u8>,
    /// One record, until its length is known.
    scratch: Vec<u8>,
}

impl Builder {
    /// An empty batch whose records will be compressed by `codec`.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            producer: Producer { id: -1, epoch: -1, base_sequence: -1 },
            attributes: codec.id().into(),
            base_timestamp: NO_TIMESTAMP,
            max_timestamp: NO_TIMESTAMP,
            count: 0,
            records: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Names the producer.
    #[must_use]
    pub fn producer(mut self, producer: Producer) -> Self {
        self.producer = producer;
        self
    }

    /// Makes the batch part of a transaction.
    #[must_use]
    pub fn transactional(mut self) -> Self {
        self.attributes |= TRANSACTIONAL;
        self
    }

    /// Makes the records control records ([`super::control`]).
    #[must_use]
    pub fn control(mut self) -> Self {
        self.attributes |= CONTROL;
        self
    }

    /// Adds a record; `timestamp` is in Unix milliseconds, headers are pairs of name and value.
    ///
    /// # Panics
    /// When a length, or the number of records, is over `i32::MAX`.
    pub fn push(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        if self.count == 0 {
            self.base_timestamp = timestamp;
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let record = &mut self.scratch;
        record.clear();
        record.push(0);
        put_varint(record, varint::zigzag_i64(timestamp.wrapping_sub(self.base_timestamp)));
        put_varint(record, varint::zigzag_i32(self.count).into());
        put_bytes(record, key);
        put_bytes(record, value);
        put_len(record, headers.len());
        for (key, value) in headers {
            put_bytes(record, Some(key));
            put_bytes(record, *value);
        }
        put_len(&mut self.records, self.scratch.len());
        self.records.extend_from_slice(&self.scratch);
        self.count = self.count.checked_add(1).expect("fewer than 2^31 records in a batch");
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True without records.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the batch if it is not compressed.
    pub fn size(&self) -> usize {
        HEADER_BYTES + self.records.len()
    }

    /// The batch.
    ///
    /// # Panics
    /// Without records, which no batch may be; or over 2 GiB of them.
    pub fn build(self) -> Bytes {
        assert!(self.count > 0, "a batch has a record");
        let body = compression::compress(self.codec, &self.records);
        let size = HEADER_BYTES + body.len();
        let batch_length = i32::try_from(size - LENGTH_PREFIX_BYTES).expect("a batch is under 2 GiB");
        let header = BatchHeader {
            base_offset: 0,
            batch_length,
            partition_leader_epoch: -1,
            magic: MAGIC,
            crc: 0,
            attributes: self.attributes,
            last_offset_delta: self.count - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: self.producer.id,
            producer_epoch: self.producer.epoch,
            base_sequence: self.producer.base_sequence,
            record_count: self.count,
        };
        let mut batch = Vec::with_capacity(size);
        batch.extend_from_slice(&header.to_bytes());
        batch.extend_from_slice(&body);
        patch::set_crc(&mut batch);
        batch.into()
    }
}

pub(super) fn put_varint(out: &mut Vec<u8>, value: u64) {
    let (bytes, len) = varint::encode_u64(value);
    out.extend_from_slice(&bytes[..len]);
}

pub(super) fn put_len(out: &mut Vec<u8>, len: usize) {
    let len = i32::try_from(len).expect("a length under 2^31");
    put_varint(out, varint::zigzag_i32(len).into());
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            put_len(out, bytes.len());
            out.extend_from_slice(bytes);
        }
        None => put_varint(out, varint::zigzag_i32(-1).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RecordIter, verify_crc};
    use super::*;

    #[test]
    fn header_says_what_was_built() {
        let producer = Producer { id: 5, epoch: 2, base_sequence: 10 };
        let mut builder = Builder::new(Codec::Zstd).producer(producer).transactional();
        assert!(builder.is_empty());
        for timestamp in [50, 40, 60] {
            builder.push(timestamp, None, Some(&[7; 100]), &[]);
        }
        assert_eq!(builder.len(), 3);
        let batch = builder.build();
        assert_eq!(verify_crc(&batch), Ok(()));
        let header = BatchHeader::read(&batch).expect("a header");
        assert_eq!(header.size(), batch.len());
        assert_eq!((header.base_timestamp, header.max_timestamp), (50, 60));
        assert_eq!((header.record_count, header.last_offset_delta), (3, 2));
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (5, 2, 10));
        assert_eq!((header.base_offset, header.partition_leader_epoch), (0, -1));
        assert!(header.is_transactional() && !header.is_control());
        assert_eq!(RecordIter::of_batch(&batch, 1 << 20).expect("records").count(), 3);
    }

    #[test]
    fn size_is_exact_without_compression() {
        let mut builder = Builder::new(Codec::None);
        builder.push(i64::MAX, Some(b"key"), None, &[(b"a", Some(b"b"))]);
        builder.push(i64::MIN, Some(&[0; 1000]), None, &[]);
        let size = builder.size();
        assert_eq!(builder.build().len(), size);
    }
}
