//! Offsets by timestamp, as Kafka's ListOffsets answers them: the first record with a timestamp at or after one asked for,
//! and the record with the largest (KIP-734).
//! Does not own: the high watermark; callers cut answers off there.

use bytes::Bytes;
use protocol::record::{BatchHeader, RecordIter};

use crate::error::{ReadError, StorageError};
use crate::log::handle::{Log, LogInner};
use crate::open_files::Kind;
use crate::segment::cursor::Cursor;
use crate::segment::meta::Segment;

/// Largest decompressed batch that is looked into; of a larger one the whole batch is the answer.
const LOOK_INSIDE_BYTES_MAX: usize = 64 << 20;

/// Offset, timestamp and leader epoch of a record.
type Found = (i64, i64, i32);

impl Log {
    /// The first record, at or after the log start offset, whose timestamp is at least `timestamp` (Unix milliseconds):
    /// its offset, timestamp and leader epoch.
    ///
    /// # Errors
    /// The batches to look into cannot be read.
    pub async fn find_by_timestamp(&self, timestamp: i64) -> Result<Option<Found>, ReadError> {
        let _reading = self.0.readers.acquire(1).await;
        let (segments, dirty, log_start) = self.0.candidates()?;
        for segment in segments.iter().filter(|segment| segment.max_timestamp >= timestamp) {
            let index = self.0.index(segment).await?;
            let position = index.position_of(index.offset_before(timestamp));
            let mut cursor = self.0.cursor(segment, position).await?;
            while let Some(batch) = cursor.next().await? {
                if let Some(found) = look(&batch.header, &batch.bytes, log_start, |t| t >= timestamp) {
                    return Ok(Some(found));
                }
                runtime::task::yield_if_needed().await;
            }
        }
        Ok(dirty.iter().find_map(|(header, bytes)| look(header, bytes, log_start, |t| t >= timestamp)))
    }

    /// The first record with the largest timestamp: its offset, timestamp and leader epoch (KIP-734).
    ///
    /// # Errors
    /// The batch to look into cannot be read.
    pub async fn max_timestamp(&self) -> Result<Option<Found>, ReadError> {
        let _reading = self.0.readers.acquire(1).await;
        let (segments, dirty, log_start) = self.0.candidates()?;
        let in_segments = segments.iter().rev().max_by_key(|segment| segment.max_timestamp);
        let in_memory = dirty.iter().rev().max_by_key(|(header, _)| header.max_timestamp);
        if let Some((header, bytes)) = in_memory
            && in_segments.is_none_or(|segment| segment.max_timestamp < header.max_timestamp)
        {
            return Ok(look(header, bytes, log_start, |t| t == header.max_timestamp));
        }
        let Some(segment) = in_segments else { return Ok(None) };
        let index = self.0.index(segment).await?;
        let relative = u64::try_from(segment.max_timestamp_offset - segment.base_offset).unwrap_or(0);
        let mut cursor = self.0.cursor(segment, index.position_of(relative)).await?;
        while let Some(batch) = cursor.next().await? {
            if batch.header.last_offset() >= segment.max_timestamp_offset {
                let wanted = batch.header.max_timestamp;
                return Ok(look(&batch.header, &batch.bytes, log_start, |t| t == wanted));
            }
        }
        Ok(None)
    }
}

impl LogInner {
    /// Segments that reach beyond the log start offset, dirty batches with their headers, and that offset.
    #[allow(clippy::type_complexity)]
    fn candidates(&self) -> Result<(Vec<Segment>, Vec<(BatchHeader, Bytes)>, i64), ReadError> {
        let state = self.state.borrow();
        if state.deleted.is_some() {
            return Err(ReadError::Deleted);
        }
        let kept = |segment: &&Segment| segment.next_offset > state.log_start;
        let segments = state.segments.iter().filter(kept).copied().collect();
        let dirty = state
            .dirty()
            .filter_map(|batch| Some((BatchHeader::read(&batch.bytes).ok()?, batch.bytes.clone())));
        Ok((segments, dirty.collect(), state.log_start))
    }

    async fn cursor(&self, segment: &Segment, position: u64) -> Result<Cursor, StorageError> {
        let file = self.shared.files.get(&Kind::Log.path(&self.dir, segment.base_offset)).await?;
        Ok(Cursor::new(file, position, segment.bytes, segment.base_offset))
    }
}

/// The first record of a batch, at or after `log_start`, whose timestamp is wanted.
fn look(header: &BatchHeader, bytes: &Bytes, log_start: i64, wanted: impl Fn(i64) -> bool) -> Option<Found> {
    if header.is_control() || header.last_offset() < log_start || !wanted(header.max_timestamp) {
        return None;
    }
    let epoch = header.partition_leader_epoch;
    let whole_batch = Some((header.base_offset.max(log_start), header.max_timestamp, epoch));
    let Ok(records) = RecordIter::of_batch(bytes, LOOK_INSIDE_BYTES_MAX) else { return whole_batch };
    for record in records {
        match record {
            Ok(record) if record.offset >= log_start && wanted(record.timestamp) => {
                return Some((record.offset, record.timestamp, epoch));
            }
            Ok(_) => {}
            Err(_) => return whole_batch,
        }
    }
    None
}
