//! Journal blocks as bytes (docs/storage-format.md, section 2.1). Pure.
//! Owns: the header, its CRC, telling a block of this journal from anything else. Does not own: the order of blocks (`scan`).

use crate::journal::entry::Entry;

/// Every block is a multiple of this, and starts at a multiple of this.
pub(crate) const BLOCK_BYTES: usize = runtime::disk::BLOCK_BYTES;
/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 64;
/// Version written, and the highest that is read.
pub(crate) const VERSION: u16 = 1;

const MAGIC: [u8; 4] = *b"MJBK";
const CRC_FROM: usize = 12;

/// What is the same in all blocks of one journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalIdentity {
    pub(crate) shard: u16,
    pub(crate) journal_id: [u8; 16],
}

/// A block's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) sequence: u64,
    pub(crate) first_entry: u64,
    pub(crate) entry_count: u32,
    pub(crate) payload_bytes: u32,
    /// Byte position in its file.
    pub(crate) position: u64,
    pub(crate) slot: u16,
    /// How many blocks right before this one hold the same entries: they need not be there.
    pub(crate) repeats: u16,
}

impl BlockHeader {
    /// Bytes of the whole block in its file.
    pub(crate) fn block_bytes(&self) -> u64 {
        block_bytes_for(self.payload_bytes as usize) as u64
    }

    /// Number that follows the block's last entry.
    pub(crate) fn next_entry(&self) -> u64 {
        self.first_entry.saturating_add(u64::from(self.entry_count))
    }
}

/// Bytes of a block with this much payload.
pub(crate) fn block_bytes_for(payload_bytes: usize) -> usize {
    (HEADER_BYTES + payload_bytes).next_multiple_of(BLOCK_BYTES)
}

/// What stands at a block boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A whole block of this journal, in its place.
    Block(BlockHeader),
    /// A whole block of this journal that belongs elsewhere: a misdirected write.
    Misplaced(BlockHeader),
    /// A block of this journal in a version that this build does not know.
    Newer(u16),
    /// The header says that the block ends beyond the bytes given.
    Longer(u64),
    /// Anything else: zeros, the inside of a block, a torn or damaged block.
    Nothing,
}

/// Writes header and entries into `out`, which is zeroed and long enough ([`block_bytes_for`]).
pub(crate) fn encode(identity: &JournalIdentity, header: &BlockHeader, entries: &[Entry], out: &mut [u8]) {
    assert_eq!(out.len() as u64, header.block_bytes(), "the buffer is exactly one block");
    assert!(header.position.is_multiple_of(BLOCK_BYTES as u64));
    let (head, mut body) = out.split_at_mut(HEADER_BYTES);
    for entry in entries {
        entry.encode(&mut body);
    }
    let position =
        u32::try_from(header.position / BLOCK_BYTES as u64).expect("journal files are smaller than 16 TiB");
    head[0..4].copy_from_slice(&MAGIC);
    head[4..6].copy_from_slice(&VERSION.to_le_bytes());
    head[6..8].copy_from_slice(&identity.shard.to_le_bytes());
    head[12..16].copy_from_slice(&header.payload_bytes.to_le_bytes());
    head[16..32].copy_from_slice(&identity.journal_id);
    head[32..40].copy_from_slice(&header.sequence.to_le_bytes());
    head[40..48].copy_from_slice(&header.first_entry.to_le_bytes());
    head[48..52].copy_from_slice(&header.entry_count.to_le_bytes());
    head[52..56].copy_from_slice(&position.to_le_bytes());
    head[56..58].copy_from_slice(&header.slot.to_le_bytes());
    head[58..60].copy_from_slice(&header.repeats.to_le_bytes());
    let crc = crc32c::crc32c(&out[CRC_FROM..HEADER_BYTES + header.payload_bytes as usize]);
    out[8..12].copy_from_slice(&crc.to_le_bytes());
}

/// Looks at the bytes from a block boundary on.
pub(crate) fn find(identity: &JournalIdentity, slot: u16, position: u64, bytes: &[u8]) -> Found {
    let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else { return Found::Nothing };
    if head[0..4] != MAGIC || head[16..32] != identity.journal_id {
        return Found::Nothing;
    }
    let version = u16::from_le_bytes(array(&head[4..]));
    if version > VERSION {
        return Found::Newer(version);
    }
    let header = BlockHeader {
        payload_bytes: u32::from_le_bytes(array(&head[12..])),
        sequence: u64::from_le_bytes(array(&head[32..])),
        first_entry: u64::from_le_bytes(array(&head[40..])),
        entry_count: u32::from_le_bytes(array(&head[48..])),
        position: u64::from(u32::from_le_bytes(array(&head[52..]))) * BLOCK_BYTES as u64,
        slot: u16::from_le_bytes(array(&head[56..])),
        repeats: u16::from_le_bytes(array(&head[58..])),
    };
    let crc = u32::from_le_bytes(array(&head[8..]));
    let shard = u16::from_le_bytes(array(&head[6..]));
    let Some(covered) = bytes.get(CRC_FROM..HEADER_BYTES + header.payload_bytes as usize) else {
        return Found::Longer(header.block_bytes());
    };
    if version == 0 || shard != identity.shard || crc32c::crc32c(covered) != crc {
        return Found::Nothing;
    }
    if header.slot != slot || header.position != position {
        Found::Misplaced(header)
    } else {
        Found::Block(header)
    }
}

/// The sequence that bytes claim which begin as a block of this journal does, whole or not.
pub(crate) fn claimed_sequence(identity: &JournalIdentity, bytes: &[u8]) -> Option<u64> {
    let head = bytes.first_chunk::<HEADER_BYTES>()?;
    let ours = head[0..4] == MAGIC && head[16..32] == identity.journal_id;
    ours.then(|| u64::from_le_bytes(array(&head[32..])))
}

/// The first `N` bytes of a slice that is known to be longer.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("fields lie inside the header")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PartitionId;
    use crate::journal::entry::Change;
    use proptest::prelude::*;
    use protocol::Uuid;

    const IDENTITY: JournalIdentity = JournalIdentity { shard: 3, journal_id: [7; 16] };

    fn block(payload: usize) -> (BlockHeader, Vec<u8>) {
        let id = PartitionId { topic_id: Uuid::from_bytes([1; 16]), partition: 0 };
        let entry =
            Entry { id, change: Change::Append { index: 1, term: 0, batch: vec![9; payload].into() } };
        let payload_bytes = entry.encoded_bytes() as u32;
        let header = BlockHeader {
            sequence: 5,
            first_entry: 10,
            entry_count: 1,
            payload_bytes,
            position: 8192,
            slot: 2,
            repeats: 0,
        };
        let mut out = vec![0; block_bytes_for(payload_bytes as usize)];
        encode(&IDENTITY, &header, &[entry], &mut out);
        (header, out)
    }

    #[test]
    fn found_in_its_place_only() {
        let (header, bytes) = block(5000);
        assert_eq!(find(&IDENTITY, 2, 8192, &bytes), Found::Block(header));
        assert_eq!(find(&IDENTITY, 2, 4096, &bytes), Found::Misplaced(header));
        assert_eq!(find(&IDENTITY, 1, 8192, &bytes), Found::Misplaced(header));
        assert_eq!(find(&IDENTITY, 2, 8192, &bytes[..4096]), Found::Longer(8192));
        let other = JournalIdentity { journal_id: [8; 16], ..IDENTITY };
        assert_eq!(find(&other, 2, 8192, &bytes), Found::Nothing);
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_noticed(payload in 0usize..9000, at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let (header, mut bytes) = block(payload);
            let covered = HEADER_BYTES + header.payload_bytes as usize;
            bytes[at.index(covered)] ^= 1 << bit;
            prop_assert_ne!(find(&IDENTITY, 2, 8192, &bytes), Found::Block(header));
        }

        #[test]
        fn hostile_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            if let Some(head) = bytes.first_chunk_mut::<32>() {
                head[0..4].copy_from_slice(&MAGIC);
                head[16..32].copy_from_slice(&IDENTITY.journal_id);
            }
            let _ = find(&IDENTITY, 0, 0, &bytes);
        }
    }
}
