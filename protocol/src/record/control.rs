//! Control records: what brokers tell each other in the log, never shown to clients.
//!
//! The key is a version and a type, both `i16`. The value depends on the type; for the two that end a transaction
//! (KIP-98) it is a version (`i16`) and the coordinator epoch (`i32`).

use bytes::Bytes;

use super::{Builder, Codec, Producer, Record};
use crate::messages::{EndTxnMarker, Message};
use crate::wire::{Decoder, Encoder};

/// What a control record means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlType {
    /// The transaction was aborted.
    Abort,
    /// The transaction was committed.
    Commit,
    /// A new leader of a raft quorum.
    LeaderChange,
    /// The beginning of a snapshot.
    SnapshotHeader,
    /// The end of a snapshot.
    SnapshotFooter,
    /// The version of the raft protocol.
    RaftVersion,
    /// The voters of a raft quorum.
    RaftVoters,
}

impl ControlType {
    const ALL: [Self; 7] = [
        Self::Abort,
        Self::Commit,
        Self::LeaderChange,
        Self::SnapshotHeader,
        Self::SnapshotFooter,
        Self::RaftVersion,
        Self::RaftVoters,
    ];

    /// The number in the key.
    pub fn id(self) -> i16 {
        self as i16
    }

    /// The type of a control record, from its key; `None` for one that is not known.
    pub fn of(record: &Record) -> Option<Self> {
        let mut d = Decoder::new(record.key.clone()?);
        let version = d.i16().ok()?;
        let id = d.i16().ok()?;
        Self::ALL.into_iter().find(|known| version >= 0 && known.id() == id)
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTransaction {
    /// Committed, else aborted.
    pub committed: bool,
    /// Epoch of the coordinator that says so.
    pub coordinator_epoch: i32,
}

impl EndTransaction {
    /// The marker in a control record, `None` when it is another kind or not readable.
    pub fn of(record: &Record) -> Option<Self> {
        let committed = match ControlType::of(record)? {
            ControlType::Commit => true,
            ControlType::Abort => false,
            _ => return None,
        };
        let mut d = Decoder::new(record.value.clone()?);
        // Later versions may only add to the end.
        let version = d.i16().ok()?.min(EndTxnMarker::MAX_VERSION);
        let marker = EndTxnMarker::decode(&mut d, version).ok()?;
        Some(Self { committed, coordinator_epoch: marker.coordinator_epoch })
    }

    /// The control batch that ends the transaction of a producer, at `timestamp` (Unix milliseconds).
    pub fn batch(self, producer_id: i64, producer_epoch: i16, timestamp: i64) -> Bytes {
        let control_type = if self.committed { ControlType::Commit } else { ControlType::Abort };
        let mut key = Encoder::with_capacity(4);
        key.i16(0);
        key.i16(control_type.id());
        let mut value = Encoder::with_capacity(6);
        value.i16(EndTxnMarker::MAX_VERSION);
        let marker = EndTxnMarker { coordinator_epoch: self.coordinator_epoch };
        marker.encode(&mut value, EndTxnMarker::MAX_VERSION).expect("a marker without text always fits");
        let producer = Producer { id: producer_id, epoch: producer_epoch, base_sequence: -1 };
        let mut builder = Builder::new(Codec::None).producer(producer).transactional().control();
        builder.push(timestamp, Some(&key.into_bytes()), Some(&value.into_bytes()), &[]);
        builder.build()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchHeader, RecordIter};
    use super::*;

    #[test]
    fn markers_round_trip() {
        for committed in [false, true] {
            let marker = EndTransaction { committed, coordinator_epoch: 12 };
            let batch = marker.batch(4, 1, 99);
            let header = BatchHeader::read(&batch).expect("a header");
            assert!(header.is_control() && header.is_transactional());
            assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (4, 1, -1));
            let records: Vec<_> = RecordIter::of_batch(&batch, 0).expect("records").collect();
            let [Ok(record)] = records.as_slice() else { panic!("one record, not {records:?}") };
            assert_eq!(record.key.as_deref(), Some([0, 0, 0, u8::from(committed)].as_slice()));
            assert_eq!(record.value.as_deref(), Some([0, 0, 0, 0, 0, 12].as_slice()));
            assert_eq!(EndTransaction::of(record), Some(marker));
        }
    }

    #[test]
    fn other_records_are_no_markers() {
        let mut builder = Builder::new(Codec::None).control();
        builder.push(0, Some(&[0, 0, 0, 4]), Some(&[0; 6]), &[]);
        builder.push(0, Some(&[0, 0, 0, 1]), Some(&[0; 5]), &[]);
        builder.push(0, Some(&[0, 0, 0]), Some(&[0; 6]), &[]);
        builder.push(0, Some(&[0xff, 0xff, 0, 1]), None, &[]);
        for record in RecordIter::of_batch(&builder.build(), 0).expect("records") {
            assert_eq!(EndTransaction::of(&record.expect("a record")), None);
        }
    }
}
