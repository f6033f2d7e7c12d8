//! Index files of a segment: writing new entries, reading them back, rebuilding them from the segment.
//! Does not own: their bytes (`index`), which batches are indexed (`meta`).
//!
//! Invariant: an index is derived. Whatever is wrong with its files, it is rebuilt, never trusted over the segment.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;
use runtime::disk::{AlignedBuf, BLOCK_BYTES};

use crate::error::StorageError;
use crate::open_files::{Kind, OpenFiles};
use crate::segment::cursor::Cursor;
use crate::segment::index::{self, OffsetEntry, SegmentIndex, TimeEntry};
use crate::segment::meta::{Added, Segment};

/// Indexes kept in memory; each is up to some hundred KiB.
const LOADED_MAX: usize = 32;

/// Entries made since the index files were last written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending {
    pub(crate) offsets: Vec<OffsetEntry>,
    pub(crate) times: Vec<TimeEntry>,
}

impl Pending {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.offsets.is_empty() && self.times.is_empty()
    }
}

/// Indexes read lately, by the path of their segment.
#[derive(Default)]
pub(crate) struct LoadedIndexes(RefCell<VecDeque<Loaded>>);

struct Loaded {
    path: Rc<Path>,
    /// The segment as it was then: an index that has grown since is read again.
    segment: Segment,
    index: Rc<SegmentIndex>,
}

impl LoadedIndexes {
    fn get(&self, path: &Path, segment: &Segment) -> Option<Rc<SegmentIndex>> {
        let mut loaded = self.0.borrow_mut();
        let at = loaded.iter().position(|known| *known.path == *path)?;
        let entry = loaded.remove(at)?;
        let counts = |segment: &Segment| (segment.index_entries, segment.time_entries);
        if counts(&entry.segment) != counts(segment) {
            return None;
        }
        let index = Rc::clone(&entry.index);
        loaded.push_front(entry);
        Some(index)
    }

    fn put(&self, path: &Path, segment: &Segment, index: &Rc<SegmentIndex>) {
        let mut loaded = self.0.borrow_mut();
        loaded.push_front(Loaded { path: path.into(), segment: *segment, index: Rc::clone(index) });
        loaded.truncate(LOADED_MAX);
    }

    /// Forgets what lies at or below `path`.
    pub(crate) fn forget(&self, path: &Path) {
        self.0.borrow_mut().retain(|known| !known.path.starts_with(path));
    }
}

/// The index of a segment from memory or from its files, `pending` entries included; `None` when it must be rebuilt.
pub(crate) async fn load(
    files: &OpenFiles,
    loaded: &LoadedIndexes,
    dir: &Path,
    segment: &Segment,
    pending: Pending,
) -> Option<Rc<SegmentIndex>> {
    let path = Kind::Log.path(dir, segment.base_offset);
    if let Some(index) = loaded.get(&path, segment) {
        return Some(index);
    }
    let mut written = *segment;
    written.index_entries = written.index_entries.checked_sub(u32::try_from(pending.offsets.len()).ok()?)?;
    written.time_entries = written.time_entries.checked_sub(u32::try_from(pending.times.len()).ok()?)?;
    let mut index = read(files, dir, &written).await?;
    index.offsets.extend(pending.offsets);
    index.times.extend(pending.times);
    let index = Rc::new(index);
    loaded.put(&path, segment, &index);
    Some(index)
}

/// Makes the index of a segment again by walking its batches, and keeps it in memory. `closed` segments end their time
/// index with their largest timestamp. Also tells the segment as the walk found it.
pub(crate) async fn rebuild(
    files: &OpenFiles,
    loaded: &LoadedIndexes,
    dir: &Path,
    segment: &Segment,
    interval_bytes: u64,
    closed: bool,
) -> Result<(Rc<SegmentIndex>, Segment), StorageError> {
    let path = Kind::Log.path(dir, segment.base_offset);
    let mut cursor = Cursor::new(files.get(&path).await?, 0, segment.bytes, segment.base_offset);
    let mut walked = Segment::empty(segment.base_offset, segment.first_index);
    let mut index = SegmentIndex::default();
    let mut raft_index = segment.first_index;
    while let Some(batch) = cursor.next().await? {
        let new = walked.add(&Added::of(&batch.header, raft_index), interval_bytes);
        index.offsets.extend(new.offset);
        index.times.extend(new.time);
        raft_index += 1;
        runtime::task::yield_if_needed().await;
    }
    if closed {
        index.times.extend(walked.add_time_entry());
    }
    tracing::warn!(segment = %path.display(), "index was missing or damaged, and is rebuilt");
    let index = Rc::new(index);
    loaded.forget(&path);
    loaded.put(&path, segment, &index);
    Ok((index, walked))
}

/// The index as its files have it; `None` when they are missing or no index of this segment.
async fn read(files: &OpenFiles, dir: &Path, segment: &Segment) -> Option<SegmentIndex> {
    let counts = (segment.index_entries, segment.time_entries);
    if counts == (0, 0) {
        return Some(SegmentIndex::default());
    }
    let offsets = segment.index_entries as usize * OffsetEntry::BYTES;
    let index = read_front(files, dir, Kind::Index, segment, offsets).await?;
    let times = segment.time_entries as usize * TimeEntry::BYTES;
    let timeindex = read_front(files, dir, Kind::TimeIndex, segment, times).await?;
    let rix = match offsets {
        0 => Bytes::copy_from_slice(&index::rix_header(segment.first_index)),
        _ => read_front(files, dir, Kind::RaftIndex, segment, offsets + index::RIX_HEADER_BYTES).await?,
    };
    SegmentIndex::parse(&index, &timeindex, &rix, segment.first_index, counts, segment.bytes)
}

async fn read_front(
    files: &OpenFiles,
    dir: &Path,
    kind: Kind,
    segment: &Segment,
    len: usize,
) -> Option<Bytes> {
    if len == 0 {
        return Some(Bytes::new());
    }
    let file = files.get(&kind.path(dir, segment.base_offset)).await.ok()?;
    file.read_at(0, len).await.ok()
}

/// Writes `pending` behind the `written` entries of the three files at these paths.
pub(crate) async fn write(
    files: &OpenFiles,
    path_of: impl Fn(Kind) -> PathBuf,
    segment: &Segment,
    written: (u32, u32),
    pending: &Pending,
) -> Result<(), StorageError> {
    if !pending.offsets.is_empty() {
        let at = u64::from(written.0) * OffsetEntry::BYTES as u64;
        let entries: Vec<u8> = pending.offsets.iter().flat_map(|entry| entry.to_index()).collect();
        write_at(files, &path_of(Kind::Index), at, &entries).await?;
        let entries = pending.offsets.iter().flat_map(|entry| entry.to_rix());
        let (at, entries): (u64, Vec<u8>) = match written.0 {
            0 => (0, index::rix_header(segment.first_index).into_iter().chain(entries).collect()),
            _ => (at + index::RIX_HEADER_BYTES as u64, entries.collect()),
        };
        write_at(files, &path_of(Kind::RaftIndex), at, &entries).await?;
    }
    if !pending.times.is_empty() {
        let at = u64::from(written.1) * TimeEntry::BYTES as u64;
        let entries: Vec<u8> = pending.times.iter().flat_map(|entry| entry.to_timeindex()).collect();
        write_at(files, &path_of(Kind::TimeIndex), at, &entries).await?;
    }
    Ok(())
}

/// Writes bytes at any position by writing whole blocks, and ends the file behind them.
async fn write_at(files: &OpenFiles, path: &Path, position: u64, bytes: &[u8]) -> Result<(), StorageError> {
    let io = |action| StorageError::during(action, path);
    let file = files.create(path).await?;
    let inside = usize::try_from(position % BLOCK_BYTES as u64).expect("smaller than a block");
    let start = position - inside as u64;
    let mut buf = AlignedBuf::zeroed((inside + bytes.len()).next_multiple_of(BLOCK_BYTES));
    if inside > 0 {
        let before = file.read_at(start, inside).await.map_err(io("read"))?;
        buf[..before.len()].copy_from_slice(&before);
    }
    buf[inside..inside + bytes.len()].copy_from_slice(bytes);
    file.write_at(start, buf).await.map_err(io("write"))?;
    file.set_len(position + bytes.len() as u64).await.map_err(io("cut"))
}
