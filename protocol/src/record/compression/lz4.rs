//! LZ4 frames, read block by block so that memory follows the input and not what a frame header asks for.
//!
//! The checksums that a frame may carry are passed over: the CRC of the batch covers the same bytes.

use std::io::{self, Write};

use lz4_flex::block::decompress_into_with_dict;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

use super::Failure;

const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
/// Most that a block may expand: a byte of match length stands for 255.
const EXPANSION_MAX: usize = 255;
/// How far back a match may point, into earlier blocks too.
const WINDOW_BYTES: usize = 64 * 1024;

const VERSION_MASK: u8 = 0xc0;
const VERSION: u8 = 0x40;
const INDEPENDENT: u8 = 0x20;
const BLOCK_CHECKSUMS: u8 = 0x10;
const CONTENT_SIZE: u8 = 0x08;
const DICTIONARY: u8 = 0x01;
/// In the length of a block: the block is not compressed.
const STORED: u32 = 1 << 31;

pub(super) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

pub(super) fn decompress(bytes: &[u8], limit_bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut input = Input(bytes);
    let mut out = Vec::new();
    let frame = Frame::read(&mut input)?;
    loop {
        let length = u32::from_le_bytes(input.take()?);
        if length == 0 {
            // What may follow, a checksum or another frame, Kafka's clients do not read either.
            return Ok(out);
        }
        let block = input.slice((length & !STORED) as usize)?;
        if length & STORED == 0 {
            frame.block(block, limit_bytes, &mut out)?;
        } else if block.len() > limit_bytes - out.len() {
            return Err(Failure::Limit);
        } else {
            out.extend_from_slice(block);
        }
        if frame.block_checksums {
            input.slice(4)?;
        }
    }
}

/// What the header of a frame says of its blocks.
struct Frame {
    block_bytes_max: usize,
    independent: bool,
    block_checksums: bool,
}

impl Frame {
    fn read(input: &mut Input<'_>) -> Result<Self, Failure> {
        if input.take()? != MAGIC {
            return Err(corrupt("not an LZ4 frame"));
        }
        let [flags, block_size] = input.take()?;
        if flags & VERSION_MASK != VERSION || flags & DICTIONARY != 0 {
            return Err(corrupt("LZ4 frame of an unknown version, or with a dictionary"));
        }
        let block_bytes_max = match block_size >> 4 & 7 {
            size @ 4..=7 => 1 << (8 + 2 * size),
            _ => return Err(corrupt("LZ4 frame with an unknown block size")),
        };
        if flags & CONTENT_SIZE != 0 {
            input.slice(8)?;
        }
        input.slice(1)?; // checksum of the header
        Ok(Self {
            block_bytes_max,
            independent: flags & INDEPENDENT != 0,
            block_checksums: flags & BLOCK_CHECKSUMS != 0,
        })
    }

    /// Appends one decompressed block to `out`.
    fn block(&self, block: &[u8], limit_bytes: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
        let start = out.len();
        let room = self.block_bytes_max.min(block.len().saturating_mul(EXPANSION_MAX));
        let left = limit_bytes - start;
        out.resize(start + room.min(left), 0);
        let (before, target) = out.split_at_mut(start);
        let dictionary = if self.independent { 0 } else { before.len().min(WINDOW_BYTES) };
        let dictionary = &before[before.len() - dictionary..];
        match decompress_into_with_dict(block, target, dictionary) {
            Ok(written) => {
                out.truncate(start + written);
                Ok(())
            }
            // Too small a target may mean the limit, where the block would have had more room without it.
            Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) if left < room => {
                Err(Failure::Limit)
            }
            Err(error) => Err(Failure::Corrupt(error.to_string())),
        }
    }
}

fn corrupt(reason: &str) -> Failure {
    Failure::Corrupt(reason.to_owned())
}

/// Takes bytes off the front.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let (head, tail) = self.0.split_first_chunk().ok_or_else(|| corrupt("LZ4 frame is cut off"))?;
        self.0 = tail;
        Ok(*head)
    }

    fn slice(&mut self, len: usize) -> Result<&'a [u8], Failure> {
        let (head, tail) = self.0.split_at_checked(len).ok_or_else(|| corrupt("LZ4 frame is cut off"))?;
        self.0 = tail;
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(info: FrameInfo, bytes: &[u8]) -> Vec<u8> {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(bytes).expect("to memory");
        encoder.finish().expect("to memory")
    }

    #[test]
    fn every_kind_of_frame_is_read() {
        let bytes: Vec<u8> = (0..400_000u32).map(|at| (at / 7 % 251) as u8).collect();
        for mode in [BlockMode::Independent, BlockMode::Linked] {
            for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max4MB] {
                let info = FrameInfo::new().block_mode(mode).block_size(size).block_checksums(true);
                let info = info.content_checksum(true).content_size(Some(bytes.len() as u64));
                let frame = encoded(info, &bytes);
                assert_eq!(decompress(&frame, bytes.len()).ok().as_ref(), Some(&bytes));
                assert!(matches!(decompress(&frame, bytes.len() - 1), Err(Failure::Limit)));
            }
        }
    }

    #[test]
    fn stored_blocks_are_read() {
        let mut noise = vec![0u8; 100_000];
        let mut state = 1u32;
        for byte in &mut noise {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
        let frame = compress(&noise).expect("to memory");
        assert!(frame.len() > noise.len());
        assert_eq!(decompress(&frame, noise.len()).ok(), Some(noise));
    }

    #[test]
    fn a_frame_without_an_end_is_cut_off() {
        let frame = compress(b"some bytes, some bytes").expect("to memory");
        for len in 0..frame.len() {
            assert!(matches!(decompress(&frame[..len], 100), Err(Failure::Corrupt(_))), "{len} bytes");
        }
    }
}
