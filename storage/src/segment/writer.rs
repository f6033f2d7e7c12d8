//! Writes a segment anew, batch by batch, beside the one that it will replace.
//! Does not own: which batches (`log::compact`), the swap.
//!
//! Invariant: nothing is relied on before `finish` and a flush.

use std::path::PathBuf;

use protocol::record::BatchHeader;
use runtime::disk::{AlignedBuf, BLOCK_BYTES, File};

use crate::error::StorageError;
use crate::segment::index_files::Pending;
use crate::segment::meta::{Added, Segment};

/// Bytes of one write.
const WRITE_BYTES: usize = 128 << 10;

/// A segment that is being written.
pub(crate) struct SegmentWriter {
    file: File,
    path: PathBuf,
    gathered: Vec<u8>,
    /// Where `gathered` begins: a multiple of the block size.
    position: u64,
    segment: Segment,
    entries: Pending,
    interval_bytes: u64,
}

impl SegmentWriter {
    /// Writes `segment`, empty so far, to `file`.
    pub(crate) fn new(file: File, segment: Segment, interval_bytes: u64) -> Self {
        let path = file.path().to_owned();
        let (gathered, entries) = (Vec::new(), Pending::default());
        Self { file, path, gathered, position: 0, segment, entries, interval_bytes }
    }

    /// Adds a batch, with its raft index, or one before it but behind that of the batch before.
    pub(crate) async fn push(&mut self, bytes: &[u8], index: u64) -> Result<(), StorageError> {
        let header = BatchHeader::read(bytes)
            .map_err(|error| StorageError::corrupt(&self.path, self.position, error.to_string()))?;
        let new = self.segment.add(&Added::of(&header, index), self.interval_bytes);
        self.entries.offsets.extend(new.offset);
        self.entries.times.extend(new.time);
        self.gathered.extend_from_slice(bytes);
        let whole = self.gathered.len() / BLOCK_BYTES * BLOCK_BYTES;
        if whole >= WRITE_BYTES { self.write(whole).await } else { Ok(()) }
    }

    /// Writes the rest, ends the file, and tells the closed segment and its index entries.
    pub(crate) async fn finish(mut self) -> Result<(File, Segment, Pending), StorageError> {
        self.entries.times.extend(self.segment.add_time_entry());
        self.write(self.gathered.len()).await?;
        self.file.set_len(self.segment.bytes).await.map_err(StorageError::during("cut", &self.path))?;
        Ok((self.file, self.segment, self.entries))
    }

    async fn write(&mut self, len: usize) -> Result<(), StorageError> {
        if len == 0 {
            return Ok(());
        }
        let mut buf = AlignedBuf::zeroed(len.next_multiple_of(BLOCK_BYTES));
        buf[..len].copy_from_slice(&self.gathered[..len]);
        self.file.write_at(self.position, buf).await.map_err(StorageError::during("write", &self.path))?;
        self.gathered.drain(..len);
        self.position += len as u64;
        Ok(())
    }
}
