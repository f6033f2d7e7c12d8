//! Dirty batches into segments, in large aligned writes, off the acknowledgement path; flushing segments for a checkpoint.
//! Does not own: when this happens (`background`), what the checkpoint says (`checkpoint`).
//!
//! Invariants:
//! 1. Only batches whose journal entry is durable are written.
//! 2. Runs under the maintenance permit: nothing else changes the log's files or the end of its segments meanwhile.
//! 3. It never waits for a journal that has stalled: the checkpoint that would free a file may be what it is part of.
//! 4. A failed write leaves the batches dirty and the segment as it was: it is written again at the same place.

use std::path::Path;

use bytes::Bytes;
use runtime::disk::{self, AlignedBuf, BLOCK_BYTES, File};

use crate::error::StorageError;
use crate::journal::entry::{Change, Entry};
use crate::log::handle::LogInner;
use crate::log::names;
use crate::log::state::{Cached, Step};
use crate::open_files::Kind;
use crate::segment::index_files::{self, Pending};
use crate::segment::meta::Segment;
use crate::snapshot;

/// Bytes of one segment write at most.
const WRITE_BYTES_MAX: u64 = 4 << 20;
/// Bytes of one request to the device: a flush of the journal waits for what the device is at.
const PIECE_BYTES: usize = 128 << 10;
/// Index entries that wait in memory for the next write of the index files.
const PENDING_ENTRIES_MAX: usize = 512;

impl LogInner {
    /// Writes every dirty batch with an entry up to `durable`.
    pub(crate) async fn write_segments(&self, durable: u64) -> Result<(), StorageError> {
        let may_journal = !self.shared.recovering.get();
        loop {
            let step = self.state.borrow().next_step(durable, WRITE_BYTES_MAX, may_journal);
            match step {
                None => return Ok(()),
                Some(Step::Roll) => self.roll().await?,
                Some(Step::Write(batches)) => match self.write(&batches).await {
                    // Deleted meanwhile.
                    Err(StorageError::UnknownLog(_)) => return Ok(()),
                    other => other?,
                },
            }
            runtime::task::yield_if_needed().await;
        }
    }

    /// Closes the last segment, if there is one, and begins another where the dirty batches begin.
    async fn roll(&self) -> Result<(), StorageError> {
        self.make_directory().await?;
        let last = self.state.borrow().segments.last().copied();
        if let Some(last) = last {
            let mut closed = last;
            let mut pending = self.state.borrow().pending.clone();
            pending.times.extend(closed.add_time_entry());
            self.write_index_files(&closed, &pending).await?;
            let file = self.shared.files.get(&Kind::Log.path(&self.dir, last.base_offset)).await?;
            self.cut(&file, last.bytes).await?;
            let mut state = self.state.borrow_mut();
            state.pending = Pending::default();
            if let Some(last) = state.segments.last_mut() {
                *last = closed;
            }
        }
        let (base_offset, last_index) = self.state.borrow().written_end();
        let path = Kind::Log.path(&self.dir, base_offset);
        self.shared.spare(&path);
        self.shared.files.create(&path).await?;
        let mut state = self.state.borrow_mut();
        state.segments.push(Segment::empty(base_offset, last_index + 1));
        state.unflushed.names = true;
        Ok(())
    }

    /// Writes batches to the end of the last segment, with the block that it ends in.
    async fn write(&self, batches: &[Cached]) -> Result<(), StorageError> {
        let segment = *self.state.borrow().segments.last().expect("a step writes to a segment");
        let path = Kind::Log.path(&self.dir, segment.base_offset);
        let io = |action| StorageError::during(action, &path);
        let file = self.shared.files.get(&path).await?;
        let inside = usize::try_from(segment.bytes % BLOCK_BYTES as u64).expect("smaller than a block");
        let start = segment.bytes - inside as u64;
        let mut before = Bytes::new();
        if inside > 0 {
            before = file.read_at(start, inside).await.map_err(io("read"))?;
            if before.len() != inside {
                return Err(StorageError::corrupt(&path, start, "the segment is shorter than its batches"));
            }
            if !self.journal_tail(&segment, start, before.clone()).await? {
                // The block stays as it is.
                return self.roll().await;
            }
        }
        self.state.borrow_mut().begin_write(segment.base_offset);
        write_in_pieces(&file, start, &before, batches).await.map_err(io("write"))?;
        if self.state.borrow().deleted.is_some() {
            // Deleted meanwhile: its batches left the cache already.
            return Ok(());
        }
        self.state.borrow_mut().written(batches);
        for batch in batches {
            self.shared.cache.clean(self.this.clone(), batch.base_offset, batch.bytes.len());
        }
        self.shared.cache.evict();
        self.shared.relief.notify_all();
        let waiting = self.state.borrow().pending.offsets.len();
        if waiting >= PENDING_ENTRIES_MAX { self.write_pending_index().await } else { Ok(()) }
    }

    /// Puts the last block's durable bytes into the journal before the block is written again: a power cut may spoil all of it.
    /// False when the journal has stalled.
    async fn journal_tail(
        &self,
        segment: &Segment,
        position: u64,
        block: Bytes,
    ) -> Result<bool, StorageError> {
        let Some(end) = self.state.borrow().protected_tail().filter(|end| *end > position) else {
            return Ok(true);
        };
        if self.shared.journal.files.stalled() {
            return Ok(false);
        }
        let durable = usize::try_from(end - position).unwrap_or(usize::MAX).min(block.len());
        self.check_exists()?;
        let change = Change::Tail { segment: segment.base_offset, position, bytes: block.slice(..durable) };
        let number = self.shared.journal.append(Entry { id: self.id, change }, None)?;
        if !self.shared.journal.durable_unless_stalled(number).await? {
            return Ok(false);
        }
        self.state.borrow_mut().protected = None;
        Ok(true)
    }

    /// Puts a block's bytes back that [`Change::Tail`] kept.
    /// One that ends elsewhere than the checkpointed segment belongs to another
    /// checkpoint: writing the block for it would risk durable bytes that it does not have.
    pub(crate) async fn restore_tail(
        &self,
        base_offset: i64,
        position: u64,
        bytes: &[u8],
    ) -> Result<(), StorageError> {
        if self.segment(base_offset).is_none_or(|segment| segment.bytes != position + bytes.len() as u64) {
            return Ok(());
        }
        let path = Kind::Log.path(&self.dir, base_offset);
        let file = self.shared.files.get(&path).await?;
        let block = file.read_at(position, BLOCK_BYTES).await.map_err(StorageError::during("read", &path))?;
        let len = file.len().await.map_err(StorageError::during("inspect", &path))?;
        let end = len.max(position + bytes.len() as u64);
        let mut buf = AlignedBuf::zeroed(bytes.len().max(block.len()).next_multiple_of(BLOCK_BYTES));
        buf[..block.len()].copy_from_slice(&block);
        buf[..bytes.len()].copy_from_slice(bytes);
        file.write_at(position, buf).await.map_err(StorageError::during("write", &path))?;
        self.cut(&file, end).await?;
        file.sync_data().await.map_err(StorageError::during("flush", &path))
    }

    /// Makes everything written durable, with its names. Ends files at their exact length.
    pub(crate) async fn flush_segments(&self) -> Result<(), StorageError> {
        match self.write_pending_index().await {
            // Derived, and rebuilt when it lacks entries.
            Err(error) if error.is_no_space() => {}
            other => other?,
        }
        let (segments, snapshot) = {
            let unflushed = &self.state.borrow().unflushed;
            (unflushed.segments.clone(), unflushed.snapshot)
        };
        for base_offset in segments {
            let Some(segment) = self.segment(base_offset) else { continue };
            let file = self.shared.files.get(&Kind::Log.path(&self.dir, base_offset)).await?;
            self.cut(&file, segment.bytes).await?;
            self.sync(&file).await?;
        }
        if let Some(offset) = snapshot {
            let file = self.shared.files.get(&Kind::Producers.path(&self.dir, offset)).await?;
            self.sync(&file).await?;
        }
        let names = self.state.borrow().unflushed.names;
        if names {
            self.sync_dir(&self.dir).await?;
        }
        self.state.borrow_mut().unflushed = Default::default();
        Ok(())
    }

    /// Writes a snapshot of the producers as of the end of the segments, if they may have changed.
    pub(crate) async fn write_snapshot(&self) -> Result<(), StorageError> {
        let (end, before, producers) = {
            let state = self.state.borrow();
            let (end, _) = state.written_end();
            if state.snapshot_offset == end || (state.snapshot_offset < 0 && state.producers.is_empty()) {
                return Ok(());
            }
            (end, state.snapshot_offset, state.producers.to_snapshot(end))
        };
        let now = if producers.is_empty() {
            -1
        } else {
            let path = Kind::Producers.path(&self.dir, end);
            self.shared.spare(&path);
            snapshot::write(&path, producers).await?;
            end
        };
        if before >= 0 {
            self.shared.doomed.borrow_mut().push(Kind::Producers.path(&self.dir, before));
        }
        let mut state = self.state.borrow_mut();
        state.snapshot_offset = now;
        state.unflushed.snapshot = (now >= 0).then_some(now);
        state.unflushed.names |= now >= 0;
        Ok(())
    }

    /// Makes the log's directory when its first batch is to be written.
    async fn make_directory(&self) -> Result<(), StorageError> {
        if self.state.borrow().directory_made {
            return Ok(());
        }
        let metadata = self.dir.join(names::METADATA);
        if disk::exists(&self.dir).await {
            let found = disk::read_file(&metadata).await.unwrap_or_default();
            if !names::is_metadata_of(&found, self.id.topic_id) {
                self.move_stray_away().await?;
            }
        }
        disk::create_dir_all(&self.dir).await.map_err(StorageError::during("create", &self.dir))?;
        self.write_metadata(&metadata).await?;
        self.shared.partitions_made.set(true);
        self.state.borrow_mut().directory_made = true;
        Ok(())
    }

    /// Says in the directory whose it is. Not flushed: whoever finds it damaged moves the directory away at most.
    async fn write_metadata(&self, path: &Path) -> Result<(), StorageError> {
        let text = names::metadata(self.id.topic_id);
        let mut buf = AlignedBuf::zeroed(BLOCK_BYTES);
        buf[..text.len()].copy_from_slice(text.as_bytes());
        let file = self.shared.files.create(path).await?;
        file.write_at(0, buf).await.map_err(StorageError::during("write", path))?;
        self.cut(&file, text.len() as u64).await
    }

    /// A directory with our name that is not ours holds nothing that the journal or a checkpoint knows of. It is kept.
    async fn move_stray_away(&self) -> Result<(), StorageError> {
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy();
        let stray = self.shared.partitions_dir().join(names::stray(&name, runtime::time::wall_ms()));
        tracing::warn!(from = %self.dir.display(), to = %stray.display(), "moves a stray directory away");
        disk::rename(&self.dir, &stray).await.map_err(StorageError::during("rename", &self.dir))
    }

    /// Writes the index files anew that a reader found damaged. Where the segment itself is damaged they stay as they are:
    /// readers get the error.
    pub(crate) async fn repair_indexes(&self) -> Result<(), StorageError> {
        loop {
            let Some(base_offset) = self.state.borrow_mut().damaged_indexes.pop() else { return Ok(()) };
            match self.repair_index(base_offset).await {
                Err(error @ StorageError::Corrupt { .. }) => {
                    tracing::error!(%error, "index cannot be rebuilt")
                }
                other => other?,
            }
        }
    }

    async fn repair_index(&self, base_offset: i64) -> Result<(), StorageError> {
        let Some(segment) = self.segment(base_offset) else { return Ok(()) };
        let (interval, last) = {
            let state = self.state.borrow();
            (state.config.index_interval_bytes, state.segments.last().map(|last| last.base_offset))
        };
        let shared = &*self.shared;
        let closed = last != Some(base_offset);
        let (index, walked) =
            index_files::rebuild(&shared.files, &shared.indexes, &self.dir, &segment, interval, closed)
                .await?;
        let all = Pending { offsets: index.offsets.clone(), times: index.times.clone() };
        let path_of = |kind: Kind| kind.path(&self.dir, base_offset);
        index_files::write(&shared.files, path_of, &walked, (0, 0), &all).await?;
        shared.indexes.forget(&Kind::Log.path(&self.dir, base_offset));
        let mut state = self.state.borrow_mut();
        if !closed {
            state.pending = Pending::default();
        }
        if let Some(known) = state.segments.iter_mut().find(|known| known.base_offset == base_offset) {
            *known = walked;
        }
        Ok(())
    }

    async fn write_pending_index(&self) -> Result<(), StorageError> {
        let (segment, pending) = {
            let state = self.state.borrow();
            let Some(segment) = state.segments.last().copied() else { return Ok(()) };
            (segment, state.pending.clone())
        };
        if pending.is_empty() {
            return Ok(());
        }
        self.write_index_files(&segment, &pending).await?;
        self.state.borrow_mut().pending = Pending::default();
        Ok(())
    }

    /// Writes `pending`, the last entries that `segment` counts.
    async fn write_index_files(&self, segment: &Segment, pending: &Pending) -> Result<(), StorageError> {
        let written = (
            segment.index_entries
                - u32::try_from(pending.offsets.len()).expect("fewer than the segment counts"),
            segment.time_entries - u32::try_from(pending.times.len()).expect("fewer than the segment counts"),
        );
        let path_of = |kind: Kind| kind.path(&self.dir, segment.base_offset);
        index_files::write(&self.shared.files, path_of, segment, written, pending).await
    }

    async fn cut(&self, file: &File, bytes: u64) -> Result<(), StorageError> {
        file.set_len(bytes).await.map_err(StorageError::during("cut", file.path()))
    }

    /// As final as a failed flush of the journal: what was written may be gone, and a retry would not tell.
    pub(super) async fn sync(&self, file: &File) -> Result<(), StorageError> {
        let synced = file.sync_data().await.map_err(StorageError::during("flush", file.path()));
        synced.map_err(|error| self.fatal(error))
    }

    pub(super) async fn sync_dir(&self, dir: &Path) -> Result<(), StorageError> {
        let synced = disk::sync_dir(dir).await.map_err(StorageError::during("flush", dir));
        synced.map_err(|error| self.fatal(error))
    }

    /// Fails the shard for good: a failed flush is never retried, not even on a full disk.
    fn fatal(&self, error: StorageError) -> StorageError {
        self.shared.failure.set(error.clone());
        error
    }

    fn segment(&self, base_offset: i64) -> Option<Segment> {
        self.state.borrow().segments.iter().find(|segment| segment.base_offset == base_offset).copied()
    }
}

/// Writes what `before` and the batches hold, one after the other, at `position`.
async fn write_in_pieces(
    file: &File,
    mut position: u64,
    before: &[u8],
    batches: &[Cached],
) -> std::io::Result<()> {
    let mut left = before.len() + batches.iter().map(|batch| batch.bytes.len()).sum::<usize>();
    let piece = |left: usize| AlignedBuf::zeroed(left.next_multiple_of(BLOCK_BYTES).min(PIECE_BYTES));
    let (mut buf, mut at) = (piece(left), 0);
    for mut part in std::iter::once(before).chain(batches.iter().map(|batch| &batch.bytes[..])) {
        while !part.is_empty() {
            let (now, rest) = part.split_at(part.len().min(buf.len() - at));
            buf[at..at + now.len()].copy_from_slice(now);
            (at, part, left) = (at + now.len(), rest, left - now.len());
            if at == PIECE_BYTES && left > 0 {
                file.write_at(position, std::mem::replace(&mut buf, piece(left))).await?;
                (position, at) = (position + PIECE_BYTES as u64, 0);
            }
        }
    }
    file.write_at(position, buf).await
}
