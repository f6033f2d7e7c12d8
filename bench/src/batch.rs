//! Batches out of record numbers, and values out of batches. Owns the keys and the sequence numbers of an idempotent
//! producer.
//!
//! 1. An idempotent producer's batches of a partition are made in the order they are sent: each continues the sequence
//!    of the one before.

use std::sync::Arc;

use bytes::Bytes;
use protocol::messages::{FetchRequest, Message};
use protocol::record::{Builder, Codec, Producer, RecordError, RecordIter};
use runtime::time;

use crate::error::BenchError;
use crate::options::{Compression, Keys};
use crate::payload::Stamp;
use crate::plan::ProducePlan;

/// Largest batch that is read, decompressed.
const UNPACKED_BYTES_MAX: usize = 256 << 20;

/// Makes the batches of one connection.
pub(crate) struct BatchMaker {
    plan: Arc<ProducePlan>,
    producer: Option<(i64, i16)>,
    /// Next sequence number, by partition.
    sequences: Vec<i32>,
}

impl BatchMaker {
    pub(crate) fn new(plan: &Arc<ProducePlan>) -> Self {
        BatchMaker { producer: None, sequences: vec![0; plan.partitions as usize], plan: Arc::clone(plan) }
    }

    /// Makes every batch one of an idempotent producer (KIP-98).
    pub(crate) fn be_idempotent(&mut self, producer_id: i64, producer_epoch: i16) {
        self.producer = Some((producer_id, producer_epoch));
    }

    /// A batch of the records with these numbers, for `partition`.
    pub(crate) fn make(&mut self, partition: u32, numbers: &[u64]) -> Bytes {
        let mut builder = Builder::new(codec(self.plan.load.compression));
        if let Some((id, epoch)) = self.producer {
            let base_sequence = self.next_sequence(partition, numbers.len());
            builder = builder.producer(Producer { id, epoch, base_sequence });
        }
        let timestamp = time::wall_ms();
        for n in numbers {
            let key = self.key(*n);
            builder.push(timestamp, key.as_ref().map(<[u8; 8]>::as_slice), Some(&self.value(*n)), &[]);
        }
        builder.build()
    }

    fn key(&self, n: u64) -> Option<[u8; 8]> {
        match self.plan.load.keys {
            Keys::None => None,
            Keys::Sequence => Some(n.to_be_bytes()),
        }
    }

    fn value(&self, n: u64) -> Bytes {
        match self.plan.run_id {
            None => self.plan.payloads.value(n),
            Some(run_id) => {
                self.plan.payloads.stamped(n, Stamp { run_id, due_ns: self.plan.schedule.due_ns(n) })
            }
        }
    }

    /// The sequence number of a batch of `records`; it wraps to 0, as Kafka's does.
    fn next_sequence(&mut self, partition: u32, records: usize) -> i32 {
        let next = &mut self.sequences[partition as usize];
        let first = *next;
        *next = (i64::from(first) + records as i64).rem_euclid(1 << 31) as i32;
        first
    }
}

fn codec(compression: Compression) -> Codec {
    match compression {
        Compression::None => Codec::None,
        Compression::Gzip => Codec::Gzip,
        Compression::Snappy => Codec::Snappy,
        Compression::Lz4 => Codec::Lz4,
        Compression::Zstd => Codec::Zstd,
    }
}

/// Calls `each` with offset and value of every record of a batch.
pub(crate) fn for_each_value(batch: &Bytes, mut each: impl FnMut(i64, &[u8])) -> Result<(), BenchError> {
    let malformed =
        |error: RecordError| BenchError::Malformed { request: FetchRequest::NAME, reason: error.to_string() };
    for record in RecordIter::of_batch(batch, UNPACKED_BYTES_MAX).map_err(malformed)? {
        let record = record.map_err(malformed)?;
        each(record.offset, record.value.as_deref().unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ProduceOptions;
    use protocol::record::{BatchHeader, verify_crc};

    fn plan(change: impl FnOnce(&mut ProduceOptions), run_id: Option<u64>) -> Arc<ProducePlan> {
        let mut options = ProduceOptions::new("127.0.0.1:9092", "t");
        change(&mut options);
        Arc::new(ProducePlan::new(&options.load, 2, 0, run_id))
    }

    #[test]
    fn stamps_come_back_out_of_every_codec() {
        for compression in
            [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd]
        {
            let plan = plan(|options| options.load.compression = compression, Some(77));
            let batch = BatchMaker::new(&plan).make(0, &[4, 6]);
            verify_crc(&batch).unwrap();
            let mut seen = Vec::new();
            for_each_value(&batch, |offset, value| seen.push((offset, Stamp::read(value).unwrap()))).unwrap();
            let stamp = |due_ns| Stamp { run_id: 77, due_ns };
            assert_eq!(seen, [(0, stamp(4_000_000)), (1, stamp(6_000_000))], "{compression:?}");
        }
    }

    #[test]
    fn sequences_of_a_partition_go_on_and_wrap() {
        let mut maker = BatchMaker::new(&plan(|_| {}, None));
        maker.be_idempotent(9, 1);
        let sequence = |batch: &Bytes| BatchHeader::read(batch).unwrap().base_sequence;
        assert_eq!(sequence(&maker.make(0, &[0, 2, 4])), 0);
        assert_eq!(sequence(&maker.make(1, &[1])), 0);
        assert_eq!(sequence(&maker.make(0, &[6])), 3);
        maker.sequences[0] = i32::MAX;
        assert_eq!(sequence(&maker.make(0, &[8])), i32::MAX);
        assert_eq!(sequence(&maker.make(0, &[10])), 0);
    }

    #[test]
    fn keys_are_the_numbers_when_asked_for() {
        let batch = BatchMaker::new(&plan(|options| options.load.keys = Keys::Sequence, None)).make(0, &[3]);
        let record = RecordIter::of_batch(&batch, 1 << 20).unwrap().next().unwrap().unwrap();
        assert_eq!(record.key.as_deref(), Some(3u64.to_be_bytes().as_slice()));
        assert_eq!(record.value.unwrap().len(), 1024);
    }
}
