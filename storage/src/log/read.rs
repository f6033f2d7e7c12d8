//! Reads by offset: from memory where possible, else one contiguous read of a segment.
//!
//! Invariants:
//! 1. The tail is always in memory: a reader that keeps up never touches the disk.
//! 2. Damage is an error for whoever asks for what is damaged, never an empty answer; the batches around it are served.

use bytes::Bytes;
use protocol::record::{BatchHeader, HEADER_BYTES};

use crate::error::{ReadError, StorageError};
use crate::log::handle::{Log, LogInner};
use crate::log::select::{self, Selected, Wanted};
use crate::log::state::LogState;
use crate::open_files::Kind;
use crate::segment::index::{OffsetEntry, SegmentIndex};
use crate::segment::index_files::{self, Pending};
use crate::segment::meta::Segment;

/// Read beyond the bytes wanted: the index leads to a batch up to this much before the one wanted.
const SLACK_BYTES: usize = 8 << 10;

/// Batches as they are kept.
#[derive(Debug, Clone, Default)]
pub struct ReadResult {
    /// Whole batches, in order; how they are split into chunks means nothing.
    pub chunks: Vec<Bytes>,
    /// Sum of the chunks' lengths.
    pub bytes: usize,
    /// Offset that follows the last batch; the offset asked for when there is none.
    pub next_offset: i64,
}

impl Log {
    /// Reads whole batches, the first of which contains `from` (or follows it, in a compacted log), none of which reaches
    /// `limit_offset`: up to `bytes_max`, and with `min_one_batch` at least one batch whatever its size (KIP-74).
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] when `from` is outside of the log, [`ReadError::Storage`] when the range is damaged.
    pub async fn read(
        &self,
        from: i64,
        bytes_max: usize,
        limit_offset: i64,
        min_one_batch: bool,
    ) -> Result<ReadResult, ReadError> {
        let mut wanted = Wanted { from, limit: limit_offset, bytes_max, min_one_batch };
        let mut reading = None;
        loop {
            let place = self.0.state.borrow().find(&wanted, from)?;
            let segment = match place {
                Place::Memory(result) => return Ok(result),
                Place::Segment(segment) if reading.is_some() => segment,
                Place::Segment(_) => {
                    // The wait may have been for compaction to put another segment there.
                    reading = Some(self.0.readers.acquire(1).await);
                    continue;
                }
            };
            if let Some(result) = self.0.read_segment(&segment, &wanted).await? {
                return Ok(ReadResult {
                    next_offset: if result.bytes == 0 { from } else { result.next_offset },
                    ..result
                });
            }
            // Nothing is left in the rest of this segment.
            wanted.from = segment.next_offset;
        }
    }
}

impl ReadResult {
    fn starts_after(&self, offset: i64) -> bool {
        let first = self.chunks.first().and_then(|chunk| BatchHeader::read(chunk).ok());
        first.is_some_and(|first| first.base_offset > offset)
    }
}

enum Place {
    Memory(ReadResult),
    Segment(Segment),
}

impl LogState {
    /// Where the batch is that contains `wanted.from`; `asked` is where the reader began.
    fn find(&self, wanted: &Wanted, asked: i64) -> Result<Place, ReadError> {
        if self.deleted.is_some() {
            return Err(ReadError::Deleted);
        }
        if asked < self.log_start || asked > self.next_offset {
            return Err(ReadError::OutOfRange {
                offset: asked,
                log_start_offset: self.log_start,
                log_end_offset: self.next_offset,
            });
        }
        let cached_from = self.cached.front().map_or(self.next_offset, |first| first.base_offset);
        if wanted.from >= wanted.limit {
            return Ok(Place::Memory(ReadResult { next_offset: asked, ..ReadResult::default() }));
        }
        if wanted.from < cached_from {
            // The segment that starts at or below the offset, unless it ends below: then the one after it.
            let at = self.segments.partition_point(|segment| segment.next_offset <= wanted.from);
            if let Some(segment) = self.segments.get(at) {
                return Ok(Place::Segment(*segment));
            }
        }
        Ok(Place::Memory(self.read_cached(wanted, asked)))
    }

    fn read_cached(&self, wanted: &Wanted, asked: i64) -> ReadResult {
        let first = self.cached.partition_point(|batch| batch.last_offset < wanted.from);
        let mut result = ReadResult { next_offset: asked, ..ReadResult::default() };
        for batch in self.cached.iter().skip(first) {
            let too_much = result.bytes + batch.bytes.len() > wanted.bytes_max;
            let first_allowed = result.chunks.is_empty() && wanted.min_one_batch;
            if batch.last_offset >= wanted.limit || (too_much && !first_allowed) {
                break;
            }
            result.bytes += batch.bytes.len();
            result.next_offset = batch.last_offset + 1;
            result.chunks.push(batch.bytes.clone());
        }
        result
    }
}

impl LogInner {
    /// One contiguous read of a segment; `None` when nothing is left in it from the offset on.
    async fn read_segment(
        &self,
        segment: &Segment,
        wanted: &Wanted,
    ) -> Result<Option<ReadResult>, ReadError> {
        let relative = u64::try_from(wanted.from - segment.base_offset).unwrap_or(0);
        let (position, entry) = match self.index(segment).await {
            Ok(index) => (index.position_of(relative), index.entry_for(relative)),
            // There is no index, and damage keeps one from being made: what can be read is found without.
            Err(StorageError::Corrupt { .. }) => (0, None),
            Err(error) => return Err(error.into()),
        };
        let found = self.read_from(segment, position, wanted).await;
        // The index may have led astray: into the middle of a batch, or beyond the one wanted.
        let astray = match &found {
            Err(ReadError::Storage(StorageError::Corrupt { .. })) => true,
            // Compaction leaves holes, too: then the batch that the index names is where it says.
            Ok(Some(result)) if result.starts_after(wanted.from) => match entry {
                Some(entry) => !self.confirms(segment, entry).await?,
                None => true,
            },
            _ => false,
        };
        if position == 0 || !astray {
            return found;
        }
        match self.rebuild_index(segment).await {
            Ok(index) => self.read_from(segment, index.position_of(relative), wanted).await,
            // The segment is damaged, not its index.
            Err(damage @ StorageError::Corrupt { .. }) => found.and(Err(damage.into())),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the batch of this index entry is there.
    async fn confirms(&self, segment: &Segment, entry: OffsetEntry) -> Result<bool, StorageError> {
        let path = Kind::Log.path(&self.dir, segment.base_offset);
        let file = self.shared.files.get(&path).await?;
        let bytes = file.read_at(u64::from(entry.position), HEADER_BYTES).await;
        let header = BatchHeader::read(&bytes.map_err(StorageError::during("read", &path))?);
        let last_offset = segment.base_offset + i64::from(entry.offset);
        Ok(header.is_ok_and(|header| header.last_offset() == last_offset))
    }

    async fn read_from(
        &self,
        segment: &Segment,
        mut position: u64,
        wanted: &Wanted,
    ) -> Result<Option<ReadResult>, ReadError> {
        let path = Kind::Log.path(&self.dir, segment.base_offset);
        let file = self.shared.files.get(&path).await?;
        let mut len = wanted.bytes_max.saturating_add(SLACK_BYTES);
        while position < segment.bytes {
            let left = usize::try_from(segment.bytes - position).unwrap_or(usize::MAX);
            let stretch =
                file.read_at(position, len.min(left)).await.map_err(StorageError::during("read", &path))?;
            let corrupt = |at: usize, what: &str| StorageError::corrupt(&path, position + at as u64, what);
            if stretch.len() < len.min(left) {
                return Err(corrupt(stretch.len(), "the segment is shorter than its batches").into());
            }
            let damage = |damage: select::Damage| corrupt(damage.at, &damage.what);
            match select::select(&stretch, segment.base_offset..segment.next_offset, wanted)
                .map_err(damage)?
            {
                Selected::Range { start, end, next_offset } => {
                    let chunks = vec![stretch.slice(start..end)];
                    return Ok(Some(ReadResult { chunks, bytes: end - start, next_offset }));
                }
                Selected::Nothing => return Ok(Some(ReadResult::default())),
                Selected::Longer { start, bytes } => {
                    let more = segment.bytes.checked_sub(position + start as u64);
                    if more.is_none_or(|more| more > 0 && more < bytes as u64) {
                        return Err(corrupt(start, "the batch is longer than the segment").into());
                    }
                    position += start as u64;
                    len = bytes.max(len);
                }
            }
        }
        Ok(None)
    }

    /// The index of a segment.
    pub(crate) async fn index(&self, segment: &Segment) -> Result<std::rc::Rc<SegmentIndex>, StorageError> {
        let pending = {
            let state = self.state.borrow();
            match state.segments.last() {
                Some(last) if last.base_offset == segment.base_offset => state.pending.clone(),
                _ => Pending::default(),
            }
        };
        let shared = &*self.shared;
        match index_files::load(&shared.files, &shared.indexes, &self.dir, segment, pending).await {
            Some(index) => Ok(index),
            None => self.rebuild_index(segment).await,
        }
    }

    /// Makes the index again, in memory; its files follow in the background. A segment in which that met damage is not walked
    /// again for each reader who comes across it.
    pub(crate) async fn rebuild_index(
        &self,
        segment: &Segment,
    ) -> Result<std::rc::Rc<SegmentIndex>, StorageError> {
        let (interval, closed) = {
            let state = self.state.borrow();
            if let Some(damage) = state.unindexable.get(&segment.base_offset) {
                return Err(damage.clone());
            }
            let last = state.segments.last().map(|last| last.base_offset);
            (state.config.index_interval_bytes, last != Some(segment.base_offset))
        };
        let shared = &*self.shared;
        let rebuilt =
            index_files::rebuild(&shared.files, &shared.indexes, &self.dir, segment, interval, closed).await;
        let mut state = self.state.borrow_mut();
        if let Err(damage @ StorageError::Corrupt { .. }) = &rebuilt {
            state.unindexable.insert(segment.base_offset, damage.clone());
        }
        let rebuilt = rebuilt?;
        if !state.damaged_indexes.contains(&segment.base_offset) {
            state.damaged_indexes.push(segment.base_offset);
            shared.urge.notify_all();
        }
        Ok(rebuilt.0)
    }
}
