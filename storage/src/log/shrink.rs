//! A log gets shorter: log start offset, retention by time and size, raft truncation, removal.
//! Does not own: when retention runs (`background`).
//!
//! Invariants:
//! 1. The change is durable in the journal before anybody sees it, and files go only after a checkpoint without them.
//! 2. Retention removes whole segments, oldest first, never a batch that is not in a segment.

use runtime::disk;

use crate::config::LogConfig;
use crate::error::StorageError;
use crate::journal::entry::{Change, Entry};
use crate::log::handle::{Log, LogInner};
use crate::log::names;
use crate::log::state::LogState;
use crate::open_files::Kind;
use crate::segment::cursor::Cursor;
use crate::segment::index_files::{self, Pending};
use crate::segment::meta::Segment;

impl Log {
    /// Raises the log start offset (DeleteRecords, KIP-107). Lower than it is: nothing happens.
    ///
    /// # Errors
    /// The storage failed. `offset` must not be above the durable end offset: it is lowered to that.
    pub async fn set_log_start_offset(&self, offset: i64) -> Result<(), StorageError> {
        self.0.raise_log_start(offset).await
    }
}

/// First offset that retention keeps: whole segments go while they are too old, or while the log without them is still too
/// large. Pure.
fn retained_from(
    segments: &[Segment],
    log_bytes: u64,
    log_start: i64,
    config: &LogConfig,
    now_ms: i64,
) -> i64 {
    let mut start = log_start;
    let mut bytes = log_bytes;
    for segment in segments {
        let below_start = segment.next_offset <= log_start;
        let deletes = config.cleanup_policy.deletes();
        let old = config.retention_ms >= 0
            && segment.max_timestamp >= 0
            && now_ms.saturating_sub(segment.max_timestamp) > config.retention_ms;
        let rest = bytes - segment.bytes;
        let large = u64::try_from(config.retention_bytes).is_ok_and(|limit| rest >= limit);
        if !(below_start || (deletes && (old || large))) {
            break;
        }
        bytes = rest;
        start = start.max(segment.next_offset);
    }
    start
}

impl LogInner {
    async fn raise_log_start(&self, offset: i64) -> Result<(), StorageError> {
        let offset = offset.min(self.durable.get());
        if offset <= self.state.borrow().log_start {
            return Ok(());
        }
        self.check_exists()?;
        let entry = Entry { id: self.id, change: Change::LogStart { offset } };
        let number = self.shared.journal.append(entry, None)?;
        self.shared.journal.durable(number).await?;
        self.state.borrow_mut().apply_log_start(offset);
        Ok(())
    }

    /// Raises the log start to where retention wants it. Not under the maintenance permit: a stalled journal makes this wait
    /// for a checkpoint.
    pub(crate) async fn retain(&self, now_ms: i64) -> Result<(), StorageError> {
        let start = {
            let state = self.state.borrow();
            if !state.config_known || state.segments.is_empty() {
                return Ok(());
            }
            retained_from(&state.segments, state.size_bytes(), state.log_start, &state.config, now_ms)
        };
        match self.raise_log_start(start).await {
            // Deleted meanwhile.
            Err(StorageError::UnknownLog(_)) => Ok(()),
            other => other,
        }
    }

    /// Takes the segments below the log start away; under the maintenance permit.
    pub(crate) fn drop_segments_below_start(&self) {
        let gone = {
            let mut state = self.state.borrow_mut();
            if state.deleted.is_some() {
                return;
            }
            let log_start = state.log_start;
            let count = state.segments.partition_point(|segment| segment.next_offset <= log_start);
            if count == state.segments.len() {
                // The last segment goes too, and with it what waits for its index files.
                state.pending = Pending::default();
            }
            state.segments.drain(..count).collect::<Vec<_>>()
        };
        for segment in &gone {
            self.doom(segment);
        }
    }

    /// Lets a segment's files go at the next checkpoint.
    fn doom(&self, segment: &Segment) {
        let mut state = self.state.borrow_mut();
        state.unflushed.segments.retain(|base_offset| *base_offset != segment.base_offset);
        state.unindexable.remove(&segment.base_offset);
        drop(state);
        self.shared.indexes.forget(&Kind::Log.path(&self.dir, segment.base_offset));
        let mut doomed = self.shared.doomed.borrow_mut();
        for kind in [Kind::Log, Kind::Index, Kind::TimeIndex, Kind::RaftIndex] {
            doomed.push(kind.path(&self.dir, segment.base_offset));
        }
    }

    /// How the log looks when it ends with raft index `index`; `None` when it does already. Reads, changes nothing.
    pub(crate) async fn cut_after(&self, index: u64) -> Result<Option<Cut>, StorageError> {
        let (last_index, (_, written_index), segments, interval) = {
            let state = self.state.borrow();
            let segments = state.segments.clone();
            (state.last_index, state.written_end(), segments, state.config.index_interval_bytes)
        };
        if index >= last_index {
            return Ok(None);
        }
        if index >= written_index {
            return Ok(Some(Cut { index, segments: None }));
        }
        let next_first =
            segments.iter().map(|segment| segment.first_index).find(|first_index| *first_index > index);
        let mut kept: Vec<_> =
            segments.into_iter().take_while(|segment| segment.first_index <= index).collect();
        // A segment that ends there stays as it is. Only there may a compacted one be cut, whose batches do not tell indexes.
        let ends_there = next_first.is_some_and(|first| first == index + 1);
        if let Some(last) = kept.last_mut().filter(|_| !ends_there) {
            let file = self.shared.files.get(&Kind::Log.path(&self.dir, last.base_offset)).await?;
            let known = self.index(last).await?;
            let (position, relative) = known.position_of_index(index - last.first_index);
            let mut cursor = Cursor::new(file, position, last.bytes, last.base_offset);
            for _ in relative..=index - last.first_index {
                let Some(batch) = cursor.next().await? else { break };
                last.bytes = batch.position + batch.header.size() as u64;
            }
            let shared = &*self.shared;
            let closed = false;
            let (_, walked) =
                index_files::rebuild(&shared.files, &shared.indexes, &self.dir, last, interval, closed)
                    .await?;
            *last = walked;
        }
        Ok(Some(Cut { index, segments: Some(kept) }))
    }

    /// Cuts the log in memory. What was cut from segments is overwritten only after the next checkpoint.
    pub(crate) fn apply_cut(&self, cut: Cut) {
        let mut state = self.state.borrow_mut();
        let removed = state.cut(cut);
        let end = state.next_offset;
        if state.snapshot_offset > end {
            // It speaks of batches that are gone; the next checkpoint writes another.
            self.shared.doomed.borrow_mut().push(Kind::Producers.path(&self.dir, state.snapshot_offset));
            state.snapshot_offset = -1;
        }
        drop(state);
        for (bytes, dirty) in removed {
            self.shared.cache.remove(bytes, dirty);
        }
        self.shared.indexes.forget(&self.dir);
        self.durable.truncate(end);
    }

    /// Refuses journal entries behind the one that deletes the log: replay would not know whose they are.
    pub(crate) fn check_exists(&self) -> Result<(), StorageError> {
        match self.state.borrow().deleted {
            Some(_) => Err(StorageError::UnknownLog(self.id)),
            None => Ok(()),
        }
    }

    /// Takes all batches out of memory: the log is deleted. Entries before `entry` need not be replayed any more.
    pub(crate) fn mark_deleted(&self, entry: u64) {
        let mut state = self.state.borrow_mut();
        let first_needed = state.first_needed_entry().unwrap_or(entry).min(entry);
        (state.next_offset, state.last_index) = state.written_end();
        state.deleted = Some(first_needed);
        let clean = std::mem::take(&mut state.clean);
        let cached = std::mem::take(&mut state.cached);
        state.dirty_bytes = 0;
        drop(state);
        for (at, batch) in cached.iter().enumerate() {
            self.shared.cache.remove(batch.bytes.len(), at >= clean);
        }
    }

    /// Renames a deleted log's directory out of the way. Its contents go after the next checkpoint.
    pub(crate) async fn rename_deleted(&self) -> Result<(), StorageError> {
        // Without segments of ours in it, the directory may be that of another log of the same name.
        let made = self.state.borrow().directory_made;
        let metadata = disk::read_file(&self.dir.join(names::METADATA)).await.unwrap_or_default();
        if !made && !names::is_metadata_of(&metadata, self.id.topic_id) {
            return Ok(());
        }
        self.shared.files.forget(&self.dir);
        self.shared.indexes.forget(&self.dir);
        self.shared.doomed.borrow_mut().retain(|path| !path.starts_with(&self.dir));
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy();
        let to = self.shared.partitions_dir().join(names::deleted(&name, self.id));
        disk::rename(&self.dir, &to).await.map_err(StorageError::during("rename", &self.dir))?;
        let parent = self.shared.partitions_dir();
        disk::sync_dir(&parent).await.map_err(StorageError::during("flush", &parent))?;
        self.shared.doomed.borrow_mut().push(to);
        Ok(())
    }
}

/// What is left of a log after a truncation.
pub(crate) struct Cut {
    /// Last raft index kept.
    index: u64,
    /// Segments kept, the last one shortened; `None` when they stay as they are.
    segments: Option<Vec<Segment>>,
}

impl Cut {
    /// Whether bytes that a checkpoint relies on are cut off.
    pub(crate) fn reaches_segments(&self) -> bool {
        self.segments.is_some()
    }
}

impl LogState {
    /// The log starts at `offset` now.
    pub(crate) fn apply_log_start(&mut self, offset: i64) {
        if offset > self.log_start {
            self.log_start = offset;
            self.epochs.truncate_start(offset);
        }
    }

    /// Cuts the log; returns size and dirtiness of the cached batches removed.
    fn cut(&mut self, cut: Cut) -> Vec<(usize, bool)> {
        let mut removed = Vec::new();
        while self.cached.back().is_some_and(|last| last.index > cut.index)
            && let Some(batch) = self.cached.pop_back()
        {
            let dirty = self.cached.len() >= self.clean;
            self.clean = self.clean.min(self.cached.len());
            if dirty {
                self.dirty_bytes -= batch.bytes.len() as u64;
            }
            removed.push((batch.bytes.len(), dirty));
        }
        if let Some(segments) = cut.segments {
            self.segments = segments;
            self.pending = Pending::default();
            let kept = &self.segments;
            self.unflushed.segments.retain(|base| kept.iter().any(|segment| segment.base_offset == *base));
            self.unindexable.clear();
            self.cut_unsaved = true;
        }
        self.last_index = cut.index;
        self.next_offset = match (self.cached.back(), self.segments.last()) {
            (Some(batch), _) => batch.last_offset + 1,
            (None, Some(segment)) => segment.next_offset,
            (None, None) => self.log_start,
        };
        self.epochs.truncate_end(self.next_offset);
        self.producers.truncate_end(self.next_offset);
        removed
    }
}

/// Every file of a log that no checkpoint or journal entry will ask for again.
pub(crate) async fn remove(shared: &crate::shared::Shared, doomed: Vec<std::path::PathBuf>) {
    for path in doomed {
        shared.files.forget(&path);
        let is_directory = path.to_string_lossy().ends_with(names::DELETED_SUFFIX);
        let result =
            if is_directory { disk::remove_dir_all(&path).await } else { disk::remove_file(&path).await };
        match result {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%error, path = %path.display(), "cannot remove a file that is needed no more");
            }
            _ => {}
        }
        runtime::task::yield_if_needed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CleanupPolicy;

    fn segment(base_offset: i64, max_timestamp: i64) -> Segment {
        Segment { bytes: 100, next_offset: base_offset + 10, max_timestamp, ..Segment::empty(base_offset, 1) }
    }

    #[test]
    fn retention_takes_whole_segments_from_the_front() {
        let segments = [segment(0, 1000), segment(10, 2000), segment(20, 1500)];
        let keep_all = LogConfig { retention_ms: -1, retention_bytes: -1, ..LogConfig::default() };
        let from = |config: &LogConfig, log_start, now| retained_from(&segments, 300, log_start, config, now);
        assert_eq!(from(&keep_all, 0, i64::MAX), 0);
        let by_time = LogConfig { retention_ms: 500, ..keep_all.clone() };
        assert_eq!(from(&by_time, 0, 1500), 0);
        assert_eq!(from(&by_time, 0, 1501), 10);
        assert_eq!(from(&by_time, 0, 2100), 10, "the second segment holds the third back");
        assert_eq!(from(&by_time, 0, 9999), 30);
        let by_size = LogConfig { retention_bytes: 150, ..keep_all.clone() };
        assert_eq!(from(&by_size, 0, 0), 10);
        assert_eq!(from(&LogConfig { retention_bytes: 0, ..keep_all.clone() }, 0, 0), 30);
        let compact = LogConfig { cleanup_policy: CleanupPolicy::Compact, ..by_time };
        assert_eq!(from(&compact, 0, 9999), 0);
        assert_eq!(from(&compact, 15, 9999), 15, "records deleted by request go in any case");
    }
}
