//! Snappy as the Java library frames it: a header, then blocks that each have a length in front.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `82 53 4e 41 50 50 59 00` |
//! | 4 | version, 1 |
//! | 4 | lowest version that can read it, 1 |
//! | 4 + n | length n of a block, and the block in raw snappy; repeated |
//!
//! Some clients send one raw block without the frame. Kafka accepts it, and so does this.

use super::Failure;

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const VERSIONS_BYTES: usize = 8;
/// Uncompressed bytes of a block, as the Java library writes them.
const BLOCK_BYTES: usize = 32 * 1024;

pub(super) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&1u32.to_be_bytes());
    out.extend_from_slice(&1u32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in bytes.chunks(BLOCK_BYTES) {
        let compressed = encoder.compress_vec(block).expect("32 KiB is a snappy block");
        out.extend_from_slice(&(compressed.len() as u32).to_be_bytes());
        out.extend_from_slice(&compressed);
    }
    out
}

pub(super) fn decompress(bytes: &[u8], limit_bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    let Some(framed) = bytes.strip_prefix(&MAGIC) else {
        block(bytes, limit_bytes, &mut out)?;
        return Ok(out);
    };
    let cut_off = || Failure::Corrupt("frame is cut off".to_owned());
    let mut rest = framed.get(VERSIONS_BYTES..).ok_or_else(cut_off)?;
    while let Some((length, tail)) = rest.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        let (compressed, tail) = tail.split_at_checked(length).ok_or_else(cut_off)?;
        block(compressed, limit_bytes, &mut out)?;
        rest = tail;
    }
    if rest.is_empty() { Ok(out) } else { Err(cut_off()) }
}

/// Appends one decompressed block to `out`.
fn block(compressed: &[u8], limit_bytes: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    let corrupt = |error: snap::Error| Failure::Corrupt(error.to_string());
    let length = snap::raw::decompress_len(compressed).map_err(corrupt)?;
    // The longest copy takes three bytes and makes 64: whoever claims more lies, and gets no memory.
    if length > compressed.len().saturating_mul(32) {
        return Err(Failure::Corrupt("block claims more than it can hold".to_owned()));
    }
    if length > limit_bytes - out.len() {
        return Err(Failure::Limit);
    }
    let start = out.len();
    out.resize(start + length, 0);
    let written = snap::raw::Decoder::new().decompress(compressed, &mut out[start..]).map_err(corrupt)?;
    out.truncate(start + written);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decompressed(bytes: &[u8]) -> Option<Vec<u8>> {
        decompress(bytes, 1 << 20).ok()
    }

    #[test]
    fn a_raw_block_without_the_frame_is_accepted() {
        let raw = snap::raw::Encoder::new().compress_vec(b"hello hello hello").expect("a block");
        assert_eq!(decompressed(&raw).as_deref(), Some(b"hello hello hello".as_slice()));
    }

    #[test]
    fn the_frame_is_the_java_librarys() {
        let framed = compress(&[1; BLOCK_BYTES + 1]);
        assert_eq!(framed[..16], [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(decompressed(&framed), Some(vec![1; BLOCK_BYTES + 1]));
        assert_eq!(decompressed(&compress(&[])), Some(Vec::new()));
    }

    #[test]
    fn lying_lengths_are_errors() {
        let mut framed = compress(b"abc");
        framed[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(decompressed(&framed), None);
        // A raw block that claims 1 MiB in three bytes.
        assert_eq!(decompressed(&[0x80, 0x80, 0x40]), None);
    }
}
