//! Compaction of one log: which segments, what stays of them, and the new segments in the place of the old ones.
//! Does not own: which records stay (`keys`), when it runs (`background`).
//!
//! Invariants:
//! 1. Only closed segments are touched: all that is in them is durable, and raft-committed (truncation never reaches them).
//! 2. New segments are written beside the old ones as `.cleaned`, and flushed. Then, with the maintenance permit and no
//!    reader in the log: renamed to `.<generation>.swap`, the checkpoint of that generation saved, old ones
//!    removed, the new renamed over the first.
//!    A start removes what is of a later generation than its checkpoint, and finishes what is not.
//! 3. A segment keeps its last batch, if only its header, so that a walk through it ends where it ended before.

use std::path::{Path, PathBuf};

use runtime::disk::{self, DirEntry};

use crate::config::LogConfig;
use crate::error::StorageError;
use crate::log::handle::{Log, LogInner};
use crate::log::keys::{self, LastOffsets, Tombstones};
use crate::log::shrink;
use crate::open_files::Kind;
use crate::segment::cursor::Cursor;
use crate::segment::index::OffsetEntry;
use crate::segment::index::TimeEntry;
use crate::segment::index_files;
use crate::segment::meta::{RELATIVE_MAX, Segment};
use crate::segment::writer::SegmentWriter;
use crate::storage::Storage;

/// Ends the names of files that are being written.
pub(crate) const CLEANED_SUFFIX: &str = ".cleaned";
/// Ends the names of files that are to take the place of others.
pub(crate) const SWAP_SUFFIX: &str = ".swap";

/// A segment's files; the one that tells whether a swap is finished comes last.
const KINDS: [Kind; 4] = [Kind::Index, Kind::TimeIndex, Kind::RaftIndex, Kind::Log];

/// A segment written anew, not in its place yet.
pub(crate) struct Cleaned {
    old: Vec<Segment>,
    new: Segment,
}

/// Closed segments that a pass may compact, if it is worth one.
fn cleanable(segments: &[Segment], compacted_to: i64, config: &LogConfig, now_ms: i64) -> Vec<Segment> {
    let Some((_active, closed)) = segments.split_last() else { return Vec::new() };
    let lag = config.min_compaction_lag_ms;
    let ready = |segment: &&Segment| lag <= 0 || now_ms.saturating_sub(segment.max_timestamp) >= lag;
    let ready: Vec<Segment> = closed.iter().take_while(ready).copied().collect();
    let bytes: u64 = ready.iter().map(|segment| segment.bytes).sum();
    let dirty = ready.iter().filter(|segment| segment.next_offset > compacted_to);
    let dirty: u64 = dirty.map(|segment| segment.bytes).sum();
    let worth_it = dirty > 0 && dirty as f64 / bytes as f64 > config.min_cleanable_dirty_ratio;
    if worth_it { ready } else { Vec::new() }
}

/// Puts segments together that fit into one, so that small ones do not pile up.
fn groups(segments: &[Segment], config: &LogConfig) -> Vec<Vec<Segment>> {
    let fits = |group: &[Segment], next: &Segment| {
        let Some(first) = group.first() else { return true };
        let all = || group.iter().chain([next]);
        let bytes: u64 = all().map(|segment| segment.bytes).sum();
        let entries: u64 = all().map(|segment| u64::from(segment.index_entries) + 1).sum();
        let times: u64 = all().map(|segment| u64::from(segment.time_entries) + 1).sum();
        bytes <= config.segment_bytes.min(RELATIVE_MAX.unsigned_abs())
            && entries * OffsetEntry::BYTES as u64 <= config.segment_index_bytes
            && times * TimeEntry::BYTES as u64 <= config.segment_index_bytes
            && next.next_offset - first.base_offset <= RELATIVE_MAX
    };
    let mut groups: Vec<Vec<Segment>> = Vec::new();
    for segment in segments {
        match groups.last_mut() {
            Some(group) if fits(group, segment) => group.push(*segment),
            _ => groups.push(vec![*segment]),
        }
    }
    groups
}

/// `path` with an ending, while it is being written.
fn cleaned(path: &Path) -> PathBuf {
    with_suffix(path, CLEANED_SUFFIX)
}

/// `path` with an ending, from before the checkpoint of this generation on.
fn swap(path: &Path, generation: u64) -> PathBuf {
    with_suffix(path, &format!(".{generation}{SWAP_SUFFIX}"))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Kind, offset and generation of a file that waits for its place.
fn swap_of_name(name: &str) -> Option<(Kind, i64, u64)> {
    let (name, generation) = name.strip_suffix(SWAP_SUFFIX)?.rsplit_once('.')?;
    let (kind, offset) = Kind::of_name(name)?;
    Some((kind, offset, generation.parse().ok()?))
}

/// What a start must rename: files named by the checkpoint of this generation that are not in their places yet.
pub(crate) fn unfinished(
    listing: &[DirEntry],
    segments: &[Segment],
    generation: u64,
) -> Vec<(String, Kind, i64)> {
    let mut found: Vec<_> = listing
        .iter()
        .filter_map(|entry| {
            let (kind, offset, of) = swap_of_name(&entry.name)?;
            let named = segments.iter().find(|segment| segment.base_offset == offset)?;
            let fits = of <= generation && (kind != Kind::Log || entry.len == named.bytes);
            fits.then(|| (entry.name.clone(), kind, offset))
        })
        .collect();
    found.sort_by_key(|(_, kind, offset)| (*offset, KINDS.iter().position(|other| other == kind)));
    found
}

impl Storage {
    /// One pass over every log that is compacted.
    pub(crate) async fn compact_once(&self) -> Result<(), StorageError> {
        for (_, log) in self.logs() {
            if self.0.shared.is_stopping() {
                return Ok(());
            }
            match self.compact(&log).await {
                // Removed meanwhile, by deletion or retention.
                Err(StorageError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error @ StorageError::Corrupt { .. }) => {
                    tracing::error!(%error, ?log, "is compacted no more until the next start");
                    log.0.state.borrow_mut().uncompactable = true;
                }
                other => other?,
            }
            runtime::task::yield_if_needed().await;
        }
        Ok(())
    }

    async fn compact(&self, log: &Log) -> Result<(), StorageError> {
        let now_ms = runtime::time::wall_ms();
        let (segments, from, config) = {
            let state = log.0.state.borrow();
            let known = state.config_known && state.config.cleanup_policy.compacts();
            if !known || state.uncompactable || state.deleted.is_some() {
                return Ok(());
            }
            let segments = cleanable(&state.segments, state.compacted_to, &state.config, now_ms);
            (segments, state.compacted_to, state.config.clone())
        };
        if segments.is_empty() {
            return Ok(());
        }
        let last = log.0.last_offsets(&segments, from).await?;
        let reached: Vec<_> =
            segments.into_iter().take_while(|segment| segment.base_offset < last.end).collect();
        for group in groups(&reached, &config) {
            let first = group.first().map_or(0, |first| first.base_offset);
            let done = match log.0.rewrite(group, &last, &config, now_ms).await {
                Ok(None) => Ok(true),
                // Apart from this task: it may be cancelled, and a swap must not be left in its middle.
                Ok(Some(cleaned)) => {
                    let (storage, log) = (self.clone(), log.clone());
                    let swap = runtime::task::spawn(async move { storage.swap(&log, &cleaned).await });
                    swap.await.unwrap_or(Ok(false))
                }
                Err(error) => Err(error),
            };
            log.0.remove_cleaned(first).await;
            if !done? {
                return Ok(());
            }
        }
        log.0.state.borrow_mut().compacted_to = last.end;
        Ok(())
    }

    /// Puts a cleaned segment in the place of the old ones; false when these have changed, or the storage ends.
    async fn swap(&self, log: &Log, cleaned: &Cleaned) -> Result<bool, StorageError> {
        let shared = &self.0.shared;
        let _permit = shared.maintenance.acquire(1).await;
        if shared.refusing.get() || shared.is_stopping() {
            return Ok(false);
        }
        self.write_all().await?;
        let _no_reader = log.0.readers.acquire(u64::MAX).await;
        if !log.0.still_has(&cleaned.old) || shared.space.is_full() {
            return Ok(false);
        }
        let generation = self.next_generation();
        // From the first rename on, what a checkpoint says and what the files hold must not part: any failure is final.
        let swapped = async {
            log.0.rename(cleaned, self::cleaned, |path| swap(path, generation)).await?;
            log.0.replace(cleaned);
            self.save(None).await?;
            // First, so that no offset is ever found in two segments.
            shrink::remove(shared, log.0.superseded(cleaned)).await;
            log.0.rename(cleaned, |path| swap(path, generation), Path::to_owned).await
        };
        if let Err(error) = swapped.await {
            shared.failure.set(error.clone());
            return Err(error);
        }
        Ok(true)
    }
}

impl LogInner {
    /// The last offset of each key in the records from `from` on, as far as the budget reaches.
    async fn last_offsets(&self, segments: &[Segment], from: i64) -> Result<LastOffsets, StorageError> {
        let seeds = [runtime::random::u64(), runtime::random::u64()];
        let mut last = LastOffsets::new(self.shared.config.compaction_keys_max, from, seeds);
        for segment in segments.iter().filter(|segment| segment.next_offset > from) {
            let mut cursor = self.walk(segment).await?;
            while let Some(batch) = cursor.next().await? {
                last.add(&batch);
                if last.is_full() {
                    return Ok(last);
                }
                self.go_on().await?;
            }
        }
        Ok(last)
    }

    /// A pause for others, unless the storage ends.
    async fn go_on(&self) -> Result<(), StorageError> {
        runtime::task::yield_if_needed().await;
        let ends = self.shared.refusing.get() || self.shared.is_stopping();
        if ends { Err(StorageError::Closed) } else { Ok(()) }
    }

    async fn walk(&self, segment: &Segment) -> Result<Cursor, StorageError> {
        let file = self.shared.files.get(&Kind::Log.path(&self.dir, segment.base_offset)).await?;
        Ok(Cursor::new(file, 0, segment.bytes, segment.base_offset))
    }

    /// Writes what stays of `old` into one new segment, flushed; `None` when all stays as it is.
    async fn rewrite(
        &self,
        old: Vec<Segment>,
        last: &LastOffsets,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<Option<Cleaned>, StorageError> {
        let (Some(first), Some(end)) = (old.first(), old.last().map(|segment| segment.next_offset)) else {
            return Ok(None);
        };
        let name = |kind: Kind| cleaned(&kind.path(&self.dir, first.base_offset));
        let file = self.shared.files.create(&name(Kind::Log)).await?;
        let empty = Segment::empty(first.base_offset, first.first_index);
        let mut writer = SegmentWriter::new(file, empty, config.index_interval_bytes);
        let tombstones = Tombstones { now_ms, retention_ms: config.delete_retention_ms };
        let (mut changed, mut index) = (old.len() > 1, first.first_index);
        for segment in &old {
            let mut cursor = self.walk(segment).await?;
            while let Some(batch) = cursor.next().await? {
                let needed = batch.header.next_offset() == end || self.is_last_of_producer(&batch.header);
                let kept = keys::filter(&batch, last, tombstones, needed);
                changed |= kept.as_ref() != Some(&batch.bytes);
                if let Some(bytes) = kept {
                    writer.push(&bytes, index).await?;
                    index += 1;
                }
                self.go_on().await?;
            }
        }
        let (file, new, entries) = writer.finish().await?;
        if !changed || new.bytes > RELATIVE_MAX.unsigned_abs() {
            return Ok(None);
        }
        assert_eq!(new.next_offset, end, "the last batch stays");
        self.sync(&file).await?;
        index_files::write(&self.shared.files, &name, &new, (0, 0), &entries).await?;
        Ok(Some(Cleaned { old, new }))
    }

    /// Whether the batch holds what is remembered longest of an idempotent producer: its last sequence.
    fn is_last_of_producer(&self, header: &protocol::record::BatchHeader) -> bool {
        header.has_producer_id()
            && self.state.borrow().producers.last_offset(header.producer_id) == Some(header.last_offset())
    }

    /// Whether the log still has these segments, one after the other, just as they were.
    fn still_has(&self, old: &[Segment]) -> bool {
        let state = self.state.borrow();
        let closed = state.segments.split_last().map_or(&[][..], |(_active, closed)| closed);
        state.deleted.is_none() && !state.cut_unsaved && closed.windows(old.len()).any(|window| window == old)
    }

    /// Takes the new segment for the old ones, in memory.
    fn replace(&self, cleaned: &Cleaned) {
        let mut state = self.state.borrow_mut();
        let first = cleaned.new.base_offset;
        let at = state.segments.partition_point(|segment| segment.base_offset < first);
        state.segments.splice(at..at + cleaned.old.len(), [cleaned.new]);
        for old in &cleaned.old {
            state.damaged_indexes.retain(|base_offset| *base_offset != old.base_offset);
            state.unindexable.remove(&old.base_offset);
            self.shared.indexes.forget(&Kind::Log.path(&self.dir, old.base_offset));
        }
    }

    /// Files of the old segments that have no successor of the same name.
    fn superseded(&self, cleaned: &Cleaned) -> Vec<PathBuf> {
        let others = cleaned.old.iter().skip(1);
        others.flat_map(|old| KINDS.map(|kind| kind.path(&self.dir, old.base_offset))).collect()
    }

    /// Renames the files of the new segment, and flushes their names.
    async fn rename(
        &self,
        cleaned: &Cleaned,
        from: impl Fn(&Path) -> PathBuf,
        to: impl Fn(&Path) -> PathBuf,
    ) -> Result<(), StorageError> {
        let written = |kind: &Kind| match kind {
            Kind::Index | Kind::RaftIndex => cleaned.new.index_entries > 0,
            Kind::TimeIndex => cleaned.new.time_entries > 0,
            Kind::Log | Kind::Producers => true,
        };
        for kind in KINDS.iter().filter(|kind| written(kind)) {
            let path = kind.path(&self.dir, cleaned.new.base_offset);
            let (from, to) = (from(&path), to(&path));
            self.shared.files.forget(&from);
            self.shared.files.forget(&to);
            disk::rename(&from, &to).await.map_err(StorageError::during("rename", &from))?;
        }
        self.sync_dir(&self.dir).await
    }

    /// Removes what a pass wrote and did not use.
    async fn remove_cleaned(&self, base_offset: i64) {
        for kind in KINDS {
            let path = cleaned(&kind.path(&self.dir, base_offset));
            self.shared.files.forget(&path);
            // Not there, as a rule; what stays is removed by the next start.
            let _ = disk::remove_file(&path).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(base_offset: i64, bytes: u64) -> Segment {
        Segment {
            bytes,
            next_offset: base_offset + 10,
            max_timestamp: base_offset,
            ..Segment::empty(base_offset, 1)
        }
    }

    #[test]
    fn a_pass_takes_closed_segments_when_enough_is_dirty() {
        let segments = [segment(0, 100), segment(10, 100), segment(20, 100)];
        let config = LogConfig::default();
        let bases = |compacted_to, config: &LogConfig| {
            let found = cleanable(&segments, compacted_to, config, 1000);
            found.iter().map(|segment| segment.base_offset).collect::<Vec<_>>()
        };
        assert_eq!(bases(0, &config), [0, 10]);
        assert_eq!(bases(10, &config), [0; 0], "half is not more than half");
        assert_eq!(bases(20, &LogConfig { min_cleanable_dirty_ratio: 0.0, ..config.clone() }), [0; 0]);
        assert_eq!(bases(0, &LogConfig { min_compaction_lag_ms: 995, ..config }), [0]);
    }

    #[test]
    fn small_segments_are_put_together() {
        let segments = [segment(0, 60), segment(10, 40), segment(20, 100), segment(1 << 40, 1)];
        let config = LogConfig { segment_bytes: 150, ..LogConfig::default() };
        let sizes: Vec<_> = groups(&segments, &config).iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1, 1]);
    }

    #[test]
    fn a_start_finishes_what_its_checkpoint_names() {
        let path = Kind::Log.path(Path::new("/l"), 7);
        let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
        let index = Kind::TimeIndex.path(Path::new("/l"), 7);
        let names = [swap(&path, 4), swap(&index, 4), cleaned(&path), path];
        let listing = names.map(|path| DirEntry { name: name(&path), is_dir: false, len: 1 });
        let kinds = |segments: &[Segment], generation| {
            let found = unfinished(&listing, segments, generation);
            found.into_iter().map(|(_, kind, offset)| (kind, offset)).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&[segment(7, 1)], 4), [(Kind::TimeIndex, 7), (Kind::Log, 7)]);
        assert_eq!(kinds(&[segment(7, 2)], 4), [(Kind::TimeIndex, 7)], "another length");
        assert_eq!(kinds(&[segment(7, 1)], 3), []);
        assert_eq!(kinds(&[segment(8, 1)], 9), []);
    }
}
