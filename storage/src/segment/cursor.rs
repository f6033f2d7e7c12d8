//! Walks the record batches of a segment file, in large reads, checking each batch's CRC.
//! Does not own: where to start (`index`), what the batches mean.
//!
//! Invariant: a batch is returned only if it lies wholly below the end given, its CRC is right, and its offsets rise.

use std::path::PathBuf;

use bytes::Bytes;
use protocol::record::{self, BatchHeader, HEADER_BYTES};
use runtime::disk::File;

use crate::error::StorageError;

/// Bytes read at once, unless a batch is larger.
const READ_BYTES: u64 = 512 << 10;

/// A batch and where it lies.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
    pub(crate) bytes: Bytes,
}

/// A walk through a segment's batches.
pub(crate) struct Cursor {
    file: File,
    path: PathBuf,
    chunk: Bytes,
    position: u64,
    end: u64,
    next_offset: i64,
}

impl Cursor {
    /// Walks from `position`, where a batch with offsets ≥ `min_offset` begins, up to `end`.
    pub(crate) fn new(file: File, position: u64, end: u64, min_offset: i64) -> Self {
        let path = file.path().to_owned();
        Self { file, path, chunk: Bytes::new(), position, end, next_offset: min_offset }
    }

    /// The next batch, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Located>, StorageError> {
        if self.position >= self.end {
            return Ok(None);
        }
        self.fill(HEADER_BYTES as u64).await?;
        let header = BatchHeader::read(&self.chunk).map_err(|error| self.damage(error))?;
        let size = header.size();
        if size as u64 > self.end - self.position {
            return Err(self.damage("the batch is longer than the segment"));
        }
        self.fill(size as u64).await?;
        let bytes = self.chunk.split_to(size);
        record::verify_crc(&bytes).map_err(|error| self.damage(error))?;
        if header.base_offset < self.next_offset || header.last_offset() < header.base_offset {
            return Err(self
                .damage(format!("offset {} where {} or more is due", header.base_offset, self.next_offset)));
        }
        let located = Located { position: self.position, header, bytes };
        self.next_offset = header.next_offset();
        self.position += size as u64;
        Ok(Some(located))
    }

    /// Has at least `wanted` bytes at hand.
    async fn fill(&mut self, wanted: u64) -> Result<(), StorageError> {
        if self.chunk.len() as u64 >= wanted {
            return Ok(());
        }
        let left = self.end - self.position;
        let len = usize::try_from(wanted.max(READ_BYTES).min(left)).unwrap_or(usize::MAX);
        let chunk = self.file.read_at(self.position, len).await;
        self.chunk = chunk.map_err(StorageError::during("read", &self.path))?;
        if (self.chunk.len() as u64) < wanted {
            return Err(self.damage("the segment is shorter than its batches"));
        }
        Ok(())
    }

    fn damage(&self, what: impl ToString) -> StorageError {
        StorageError::corrupt(&self.path, self.position, what.to_string())
    }
}
