//! The bytes of a file as shared blocks; a block that nobody wrote is absent and reads as zeros.

use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};

use crate::disk::BLOCK_BYTES;

pub(crate) const BLOCK: u64 = BLOCK_BYTES as u64;

/// One block; `None` is zeros.
pub(crate) type Block = Option<Rc<[u8; BLOCK_BYTES]>>;

/// Makes a block of `bytes`, which are one block long.
pub(crate) fn block_of(bytes: &[u8]) -> Block {
    let bytes: &[u8; BLOCK_BYTES] = bytes.try_into().expect("blocks are cut to size");
    bytes.iter().any(|byte| *byte != 0).then(|| Rc::new(*bytes))
}

/// Cuts `bytes`, whole blocks, into blocks.
pub(crate) fn blocks_of(bytes: &[u8]) -> Vec<Block> {
    bytes.chunks_exact(BLOCK_BYTES).map(block_of).collect()
}

/// A copy of a block's bytes.
pub(crate) fn bytes_of(block: &Block) -> [u8; BLOCK_BYTES] {
    block.as_ref().map_or([0; BLOCK_BYTES], |block| **block)
}

/// A file's bytes: whole blocks in which everything past the length is zero.
#[derive(Clone, Default)]
pub(crate) struct Blocks {
    len: u64,
    present: BTreeMap<u64, Rc<[u8; BLOCK_BYTES]>>,
}

impl Blocks {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn get(&self, index: u64) -> Block {
        self.present.get(&index).cloned()
    }

    /// Replaces block `index` and extends the file to hold it.
    pub(crate) fn put(&mut self, index: u64, block: Block) {
        match block {
            Some(block) => drop(self.present.insert(index, block)),
            None => drop(self.present.remove(&index)),
        }
        self.len = self.len.max((index + 1) * BLOCK);
    }

    /// Cuts, with zeros behind the cut, or extends with zeros.
    pub(crate) fn set_len(&mut self, len: u64) {
        if len < self.len {
            drop(self.present.split_off(&len.div_ceil(BLOCK)));
            let kept = (len % BLOCK) as usize;
            if let Some(last) = self.present.get_mut(&(len / BLOCK)) {
                let mut bytes = **last;
                bytes[kept..].fill(0);
                *last = Rc::new(bytes);
            }
        }
        self.len = len;
    }

    /// Reads a range, shorter at the end of the file.
    pub(crate) fn read(&self, position: u64, len: usize) -> Bytes {
        let end = position.saturating_add(len as u64).min(self.len);
        let mut bytes = BytesMut::with_capacity(end.saturating_sub(position) as usize);
        let mut next = position;
        while next < end {
            let skip = (next % BLOCK) as usize;
            let take = (BLOCK_BYTES - skip).min((end - next) as usize);
            match self.present.get(&(next / BLOCK)) {
                Some(block) => bytes.extend_from_slice(&block[skip..skip + take]),
                None => bytes.resize(bytes.len() + take, 0),
            }
            next += take as u64;
        }
        bytes.freeze()
    }
}
