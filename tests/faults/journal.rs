//! Reads journal files from outside, as docs/storage-format.md describes them: where their blocks are.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

const BLOCK_BYTES: usize = 4096;
const HEADER_BYTES: usize = 64;

/// One journal block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) file: PathBuf,
    /// Position in the file.
    pub(crate) position: usize,
    pub(crate) payload_bytes: usize,
    pub(crate) sequence: u64,
    pub(crate) entries: u32,
}

/// All files below a directory whose names end so.
pub(crate) fn files_below(directory: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else if entry.file_name().to_string_lossy().ends_with(ending) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// All blocks of the journals below a data directory, in the order of their sequence numbers.
pub(crate) fn blocks(data: &Path) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    for file in files_below(data, ".journal")? {
        let bytes = fs::read(&file)?;
        let mut position = 0;
        while let Some(header) = bytes.get(position..position + HEADER_BYTES) {
            if header.starts_with(b"MJBK") {
                let payload_bytes = usize::try_from(u32_at(header, 12)?)?;
                let sequence = u64::from(u32_at(header, 32)?) | u64::from(u32_at(header, 36)?) << 32;
                let entries = u32_at(header, 48)?;
                blocks.push(Block { file: file.clone(), position, payload_bytes, sequence, entries });
                position += (HEADER_BYTES + payload_bytes).next_multiple_of(BLOCK_BYTES);
            } else {
                position += BLOCK_BYTES;
            }
        }
    }
    blocks.sort_by_key(|block| block.sequence);
    ensure!(!blocks.is_empty(), "no journal blocks below {}", data.display());
    Ok(blocks)
}

fn u32_at(header: &[u8], at: usize) -> Result<u32> {
    let bytes = header.get(at..at + 4).context("a header is long enough")?;
    Ok(u32::from_le_bytes(bytes.try_into()?))
}

/// Changes one byte of a file.
pub(crate) fn flip(file: &Path, position: usize) -> Result<()> {
    let mut bytes = fs::read(file)?;
    let byte = bytes.get_mut(position).context("the file is too short")?;
    *byte ^= 0x40;
    fs::write(file, bytes).with_context(|| format!("writing {}", file.display()))
}
