//! Journal entries as bytes (docs/storage-format.md, section 2.2). Pure.
//! Owns: the layout of an entry. Does not own: blocks, files, what an entry does to a log.

use bytes::{Buf, Bytes};
use protocol::Uuid;

use crate::config::{PartitionId, Vote};

/// Bytes in front of each entry's payload.
pub(crate) const ENTRY_HEADER_BYTES: usize = 48;

const KIND_APPEND: u8 = 1;
const KIND_VOTE: u8 = 2;
const KIND_TRUNCATE: u8 = 3;
const KIND_LOG_START: u8 = 5;
const KIND_CREATE: u8 = 6;
const KIND_DELETE: u8 = 7;
const KIND_TAIL: u8 = 9;

/// One change of one log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: PartitionId,
    pub(crate) change: Change,
}

/// What an entry changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// A record batch, as kept.
    Append { index: u64, term: u64, batch: Bytes },
    /// A raft vote.
    Vote(Vote),
    /// Entries after `index` are gone.
    TruncateAfter { index: u64 },
    /// The log start offset rises.
    LogStart { offset: i64 },
    /// The log begins.
    Create { topic: Bytes },
    /// The log ends.
    Delete,
    /// Durable bytes of a segment from `position` on, about to be written again with more behind them in the same block.
    Tail { segment: i64, position: u64, bytes: Bytes },
}

/// Why bytes are no entry. Behind a correct CRC this means a newer format or a bug, never a torn write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EntryError {
    #[error("entry ends beyond its block")]
    Short,
    #[error("unknown entry kind {0}")]
    Kind(u8),
    #[error("entry of kind {0} has a malformed payload")]
    Payload(u8),
}

impl Entry {
    /// Bytes that this entry takes in a block.
    pub(crate) fn encoded_bytes(&self) -> usize {
        ENTRY_HEADER_BYTES
            + match &self.change {
                Change::Append { batch, .. } => batch.len(),
                Change::Tail { bytes, .. } => bytes.len(),
                Change::Vote(_) => 16,
                Change::LogStart { .. } => 8,
                Change::Create { topic } => topic.len(),
                Change::TruncateAfter { .. } | Change::Delete => 0,
            }
    }

    /// Appends the entry to `out`.
    pub(crate) fn encode(&self, out: &mut impl bytes::BufMut) {
        let mut small = [0u8; 16];
        let (kind, index, term, payload): (u8, u64, u64, &[u8]) = match &self.change {
            Change::Append { index, term, batch } => (KIND_APPEND, *index, *term, batch),
            Change::Vote(vote) => {
                small[..8].copy_from_slice(&vote.node.to_le_bytes());
                small[8] = u8::from(vote.committed);
                (KIND_VOTE, 0, vote.term, &small)
            }
            Change::TruncateAfter { index } => (KIND_TRUNCATE, *index, 0, &[]),
            Change::LogStart { offset } => {
                small[..8].copy_from_slice(&offset.to_le_bytes());
                (KIND_LOG_START, 0, 0, &small[..8])
            }
            Change::Create { topic } => (KIND_CREATE, 0, 0, topic),
            Change::Delete => (KIND_DELETE, 0, 0, &[]),
            Change::Tail { segment, position, bytes } => {
                (KIND_TAIL, segment.cast_unsigned(), *position, bytes)
            }
        };
        out.put_u32_le(u32::from(kind));
        out.put_u32_le(u32::try_from(payload.len()).expect("a journal file is smaller than 4 GiB"));
        out.put_slice(self.id.topic_id.as_bytes());
        out.put_i32_le(self.id.partition);
        out.put_u32_le(0);
        out.put_u64_le(index);
        out.put_u64_le(term);
        out.put_slice(payload);
    }

    /// Takes one entry off the front of a block's payload, without copying its batch.
    pub(crate) fn decode(input: &mut Bytes) -> Result<Self, EntryError> {
        if input.len() < ENTRY_HEADER_BYTES {
            return Err(EntryError::Short);
        }
        let kind = input.get_u8();
        let reserved = [input.get_u8(), input.get_u8(), input.get_u8()];
        let payload_bytes = input.get_u32_le() as usize;
        let mut topic_id = [0; 16];
        input.copy_to_slice(&mut topic_id);
        let id = PartitionId { topic_id: Uuid::from_bytes(topic_id), partition: input.get_i32_le() };
        let reserved_too = input.get_u32_le();
        let index = input.get_u64_le();
        let term = input.get_u64_le();
        if input.len() < payload_bytes {
            return Err(EntryError::Short);
        }
        if reserved != [0; 3] || reserved_too != 0 {
            return Err(EntryError::Kind(kind));
        }
        let mut payload = input.split_to(payload_bytes);
        let expect =
            |bytes: usize| if payload_bytes == bytes { Ok(()) } else { Err(EntryError::Payload(kind)) };
        let change = match kind {
            KIND_APPEND => Change::Append { index, term, batch: payload },
            KIND_VOTE => {
                expect(16)?;
                Change::Vote(Vote { term, node: payload.get_i64_le(), committed: payload.get_u8() != 0 })
            }
            KIND_TRUNCATE => Change::TruncateAfter { index },
            KIND_LOG_START => {
                expect(8)?;
                Change::LogStart { offset: payload.get_i64_le() }
            }
            KIND_CREATE => Change::Create { topic: payload },
            KIND_DELETE => Change::Delete,
            KIND_TAIL => Change::Tail { segment: index.cast_signed(), position: term, bytes: payload },
            other => return Err(EntryError::Kind(other)),
        };
        Ok(Self { id, change })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (any::<u64>(), any::<u64>(), proptest::collection::vec(any::<u8>(), 0..64))
                .prop_map(|(index, term, batch)| Change::Append { index, term, batch: batch.into() }),
            (any::<u64>(), any::<bool>(), any::<i64>())
                .prop_map(|(term, committed, node)| Change::Vote(Vote { term, committed, node })),
            any::<u64>().prop_map(|index| Change::TruncateAfter { index }),
            any::<i64>().prop_map(|offset| Change::LogStart { offset }),
            "[a-z]{1,20}".prop_map(|topic| Change::Create { topic: topic.into() }),
            Just(Change::Delete),
            (any::<i64>(), any::<u64>(), proptest::collection::vec(any::<u8>(), 0..64)).prop_map(
                |(segment, position, bytes)| Change::Tail { segment, position, bytes: bytes.into() }
            ),
        ]
    }

    proptest! {
        #[test]
        fn round_trip(topic_id in any::<[u8; 16]>(), partition in any::<i32>(), change in change()) {
            let entry = Entry { id: PartitionId { topic_id: Uuid::from_bytes(topic_id), partition }, change };
            let mut out = Vec::new();
            entry.encode(&mut out);
            prop_assert_eq!(out.len(), entry.encoded_bytes());
            let mut input = Bytes::from(out);
            prop_assert_eq!(Entry::decode(&mut input), Ok(entry));
            prop_assert!(input.is_empty());
        }

        #[test]
        fn hostile_bytes_end_in_an_error_or_an_entry(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Entry::decode(&mut Bytes::from(bytes));
        }
    }
}
