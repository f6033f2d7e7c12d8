//! The envelope of our small files: magic, version, CRC, length in front of an rkyv archive (docs/storage-format.md, section 3).
//! Pure: bytes in, bytes out. Archives are read with checked access only.

use rkyv::api::high::{HighDeserializer, HighSerializer, HighValidator};
use rkyv::rancor::Error as ArchiveError;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Deserialize, Serialize};

/// Version written, and the highest that is read.
pub(crate) const VERSION: u16 = 1;
/// Bytes in front of the archive.
const HEADER_BYTES: usize = 16;
const CRC_FROM: usize = 12;

/// Why a small file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvelopeError {
    #[error("the magic number is wrong")]
    Magic,
    #[error("format version {0} is newer than this build")]
    Version(u16),
    #[error("the file is too short")]
    Short,
    #[error("the checksum is wrong")]
    Crc,
    #[error("the archive is malformed")]
    Archive,
}

/// Puts `value` into an envelope.
pub(crate) fn seal<T>(magic: [u8; 4], value: &T) -> Vec<u8>
where
    T: for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, ArchiveError>>,
{
    let archive = rkyv::to_bytes::<ArchiveError>(value).expect("archiving into memory cannot fail");
    let mut out = Vec::with_capacity(HEADER_BYTES + archive.len());
    out.extend_from_slice(&magic);
    out.extend_from_slice(&u32::from(VERSION).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&u32::try_from(archive.len()).expect("a small file").to_le_bytes());
    out.extend_from_slice(&archive);
    let crc = crc32c::crc32c(&out[CRC_FROM..]);
    out[8..12].copy_from_slice(&crc.to_le_bytes());
    out
}

/// Takes a value out of its envelope. Bytes behind it are ignored.
pub(crate) fn open<T>(magic: [u8; 4], bytes: &[u8]) -> Result<T, EnvelopeError>
where
    T: Archive,
    T::Archived: for<'a> rkyv::bytecheck::CheckBytes<HighValidator<'a, ArchiveError>>
        + Deserialize<T, HighDeserializer<ArchiveError>>,
{
    let (head, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(EnvelopeError::Short)?;
    let [m0, m1, m2, m3, v0, v1, z0, z1, c0, c1, c2, c3, l0, l1, l2, l3] = *head;
    if [m0, m1, m2, m3] != magic {
        return Err(EnvelopeError::Magic);
    }
    let version = u16::from_le_bytes([v0, v1]);
    let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let payload = rest.get(..len).ok_or(EnvelopeError::Short)?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&[l0, l1, l2, l3]), payload);
    if crc != u32::from_le_bytes([c0, c1, c2, c3]) {
        return Err(EnvelopeError::Crc);
    }
    if version == 0 || version > VERSION || [z0, z1] != [0, 0] {
        return Err(EnvelopeError::Version(version));
    }
    let mut aligned = AlignedVec::<16>::with_capacity(len);
    aligned.extend_from_slice(payload);
    rkyv::from_bytes::<T, ArchiveError>(&aligned).map_err(|_| EnvelopeError::Archive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAGIC: [u8; 4] = *b"TEST";

    #[test]
    fn round_trip_with_padding_behind() {
        let mut bytes = seal(MAGIC, &vec![1u64, 2, 3]);
        bytes.resize(4096, 0);
        assert_eq!(open::<Vec<u64>>(MAGIC, &bytes), Ok(vec![1, 2, 3]));
        assert_eq!(open::<Vec<u64>>(*b"OTHR", &bytes), Err(EnvelopeError::Magic));
    }

    proptest! {
        #[test]
        fn damage_is_noticed(at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut bytes = seal(MAGIC, &vec![String::from("abc"), String::from("a longer string than fits inline")]);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(open::<Vec<String>>(MAGIC, &bytes).is_err());
        }

        #[test]
        fn hostile_archives_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = MAGIC.to_vec();
            bytes.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
            bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&payload);
            let crc = crc32c::crc32c(&bytes[12..]);
            bytes[8..12].copy_from_slice(&crc.to_le_bytes());
            let _ = open::<Vec<String>>(MAGIC, &bytes);
        }
    }
}
