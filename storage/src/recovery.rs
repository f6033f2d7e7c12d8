//! Opening a shard's directory: checkpoint, journal, segments, replay (docs/storage-format.md, section 1).
//! Does not own: which journal blocks count (`journal::order`), the state that entries are applied to (`log::state`).
//!
//! Invariants:
//! 1. Nothing durable is left out silently: damage refuses the start, or is given up by `repair` and reported.
//! 2. Replay is idempotent: a crash during recovery changes nothing but how far the next one gets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use protocol::Uuid;
use protocol::record::BatchHeader;
use runtime::disk::{self, DirEntry};
use runtime::task::Queue;

use crate::checkpoint::{self, Checkpoint, Loaded, LogCheckpoint};
use crate::config::{LogConfig, PartitionId, StorageConfig, Vote};
use crate::error::StorageError;
use crate::failure::Failure;
use crate::journal::block::{BlockHeader, JournalIdentity};
use crate::journal::entry::{Change, Entry};
use crate::journal::files::path_of;
use crate::journal::open::{self, Opened};
use crate::journal::order::Known;
use crate::leader_epochs::LeaderEpochs;
use crate::log::state::LogState;
use crate::log::{Log, LogInner, compact, names};
use crate::open_files::Kind;
use crate::producer::Producers;
use crate::sabotage::{self, Sabotage};
use crate::segment::cursor::Cursor;
use crate::shared::{PARTITIONS, Shared};
use crate::snapshot;
use crate::storage::Storage;

/// Ends the names of files that were being written.
const UNFINISHED: [&str; 3] = [".tmp", compact::CLEANED_SUFFIX, compact::SWAP_SUFFIX];

/// What recovery did, for the log of the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Logs found.
    pub logs: usize,
    /// Journal blocks replayed.
    pub blocks: usize,
    /// Journal entries applied.
    pub entries: u64,
    /// Bytes of batches put back into memory or segments.
    pub bytes: u64,
    /// What was lost and given up because `repair` was asked for, in words. Empty without it.
    pub given_up: Vec<String>,
    /// What was found and did no harm, in words.
    pub findings: Vec<String>,
}

/// Opens the directory.
pub(crate) async fn open(config: StorageConfig) -> Result<(Storage, RecoveryReport), StorageError> {
    config.check()?;
    let partitions = config.dir.join(PARTITIONS);
    disk::create_dir_all(&partitions).await.map_err(StorageError::during("create", &partitions))?;
    // Names that an earlier process made or changed must be durable before they are relied on.
    let parent = config.dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    for dir in [parent, Some(&config.dir), Some(&partitions)].into_iter().flatten() {
        disk::sync_dir(dir).await.map_err(StorageError::during("flush", dir))?;
    }
    let mut report = RecoveryReport::default();
    let checkpoint = match checkpoint::load(&config.dir).await? {
        Loaded::Valid(checkpoint, finding) => {
            report.findings.extend(finding);
            *checkpoint
        }
        Loaded::None => fresh(&config).await?,
    };
    if checkpoint.shard != config.shard {
        return Err(StorageError::WrongShard {
            path: config.dir,
            found: checkpoint.shard,
            expected: config.shard,
        });
    }
    let failure = Rc::new(Failure::default());
    let identity = JournalIdentity { shard: checkpoint.shard, journal_id: checkpoint.journal_id };
    let known =
        Known { replay_from_block: checkpoint.replay_from_block, durable_block: checkpoint.durable_block };
    let closed_at = checkpoint.closed_at;
    let opened =
        open::open(&config, identity, known, closed_at, checkpoint.next_entry, Rc::clone(&failure)).await?;
    report.given_up.extend(opened.given_up.iter().cloned());
    report.blocks = opened.replay.len();
    let shared = Rc::new(Shared::new(config, Rc::clone(&opened.journal), failure));
    let generation = checkpoint.generation;
    let mut recovery = Recovery::new(Rc::clone(&shared), report, generation);
    recovery.attach(checkpoint).await?;
    recovery.replay(&opened).await?;
    let (logs, report) = recovery.finish();
    opened.repeat_last().await?;
    shared.measure_space().await?;
    shared.recovering.set(false);
    let storage = Storage::new(Rc::clone(&shared), logs, generation);
    // Not all of the checkpoint that was read need be durable, and a journal that was closed is open again.
    for (_, log) in storage.logs() {
        if !log.0.state.borrow().unflushed.is_empty() {
            log.0.write_snapshot().await?;
        }
    }
    storage.flush_all().await?;
    storage.save(None).await?;
    runtime::task::spawn_in(Queue::Request, opened.journal.run_flusher());
    if !report.given_up.is_empty() {
        // The hole stays in the journal: the next start must not need what lies behind it.
        storage.checkpoint().await?;
    }
    Ok((storage, report))
}

/// Makes the first checkpoint of a new directory. A directory with journal blocks or logs but without a checkpoint is not new.
async fn fresh(config: &StorageConfig) -> Result<Checkpoint, StorageError> {
    let partitions = config.dir.join(PARTITIONS);
    let listing = disk::read_dir(&partitions).await.map_err(StorageError::during("list", &partitions))?;
    if let Some(entry) = listing.first() {
        let path = partitions.join(&entry.name);
        return Err(StorageError::corrupt(&path, 0, "there are logs here but no checkpoint"));
    }
    let mut journal_id = [0; 16];
    runtime::random::fill(&mut journal_id);
    let checkpoint = Checkpoint {
        shard: config.shard,
        journal_id,
        generation: 1,
        replay_from_block: 1,
        durable_block: 0,
        next_entry: 1,
        closed_at: None,
        logs: Vec::new(),
    };
    checkpoint::save(&config.dir, &checkpoint).await?;
    Ok(checkpoint)
}

struct Recovery {
    shared: Rc<Shared>,
    /// Of the checkpoint.
    generation: u64,
    logs: BTreeMap<PartitionId, Replayed>,
    /// Logs that entries name and nobody knows: deleted further on, or damage. With the place of the first entry.
    unknown: BTreeMap<PartitionId, (PathBuf, u64)>,
    /// Directories of logs, by name.
    directories: BTreeSet<String>,
    /// Logs that lost entries, which `repair` gives up from there on.
    gaps: BTreeSet<PartitionId>,
    report: RecoveryReport,
}

struct Replayed {
    log: Log,
    applied_entry: u64,
}

impl Recovery {
    fn new(shared: Rc<Shared>, report: RecoveryReport, generation: u64) -> Self {
        Self {
            shared,
            generation,
            logs: BTreeMap::new(),
            unknown: BTreeMap::new(),
            directories: BTreeSet::new(),
            gaps: BTreeSet::new(),
            report,
        }
    }

    /// Takes over the logs of the checkpoint.
    async fn attach(&mut self, checkpoint: Checkpoint) -> Result<(), StorageError> {
        let mut unsaved = Some(checkpoint.clone());
        let partitions = self.shared.partitions_dir();
        let listing = disk::read_dir(&partitions).await.map_err(StorageError::during("list", &partitions))?;
        let (deleted, directories): (BTreeSet<_>, BTreeSet<_>) = listing
            .into_iter()
            .map(|entry| entry.name)
            .partition(|name| name.ends_with(names::DELETED_SUFFIX));
        self.directories = directories;
        self.shared.doomed.borrow_mut().extend(deleted.iter().map(|name| partitions.join(name)));
        for known in checkpoint.logs {
            let id = PartitionId { topic_id: Uuid::from_bytes(known.topic_id), partition: known.partition };
            let directory = names::directory(&known.topic, known.partition)?;
            // Renamed, hence deleted, after this checkpoint; its last entry in the journal says so, too.
            let is_deleted = deleted.contains(&names::deleted(&directory, id));
            if is_deleted {
                continue;
            }
            let exists = self.directories.contains(&directory);
            let applied_entry = known.applied_entry;
            let dir = partitions.join(directory);
            if exists {
                self.finish_swaps(&dir, &known, &mut unsaved).await?;
            }
            let log = self.restore(id, known, dir, exists).await?;
            self.logs.insert(id, Replayed { log, applied_entry });
            runtime::task::yield_if_needed().await;
        }
        Ok(())
    }

    /// Brings compacted segments into their places that the checkpoint names already. Both copies of it must name them before.
    async fn finish_swaps(
        &self,
        dir: &Path,
        known: &LogCheckpoint,
        unsaved: &mut Option<Checkpoint>,
    ) -> Result<(), StorageError> {
        let listing = disk::read_dir(dir).await.map_err(StorageError::during("list", dir))?;
        let swaps = compact::unfinished(&listing, &known.segments, self.generation);
        if swaps.is_empty() {
            return Ok(());
        }
        if let Some(checkpoint) = unsaved.take() {
            checkpoint::save(&self.shared.config.dir, &checkpoint).await?;
        }
        for (name, kind, offset) in swaps {
            let (from, to) = (dir.join(name), kind.path(dir, offset));
            disk::rename(&from, &to).await.map_err(StorageError::during("rename", &from))?;
        }
        disk::sync_dir(dir).await.map_err(StorageError::during("flush", dir))
    }

    /// A log as the checkpoint has it.
    async fn restore(
        &mut self,
        id: PartitionId,
        known: LogCheckpoint,
        dir: PathBuf,
        exists: bool,
    ) -> Result<Log, StorageError> {
        let mut state = LogState::new(Rc::new(LogConfig::default()), false);
        state.log_start = known.log_start;
        state.next_offset = known.next_offset;
        state.last_index = known.last_index;
        state.segments = known.segments;
        state.directory_made = exists && !state.segments.is_empty();
        state.epochs = LeaderEpochs::from_entries(known.leader_epochs);
        state.snapshot_offset = known.snapshot_offset;
        state.vote = known.vote.map(|(term, node, committed)| Vote { term, node, committed });
        let mut listing = Vec::new();
        if exists {
            listing = disk::read_dir(&dir).await.map_err(StorageError::during("list", &dir))?;
        }
        self.check_segments(&dir, &listing, &mut state).await?;
        // Without segments of ours in it, the directory may be that of a deleted log of the same name, not yet renamed.
        let metadata = disk::read_file(&dir.join(names::METADATA)).await.unwrap_or_default();
        if !state.segments.is_empty() || names::is_metadata_of(&metadata, id.topic_id) {
            self.tidy(&dir, &listing, &state).await?;
        }
        state.saved();
        let log = Log::new(id, known.topic, dir, &self.shared, state);
        if known.snapshot_offset >= 0 {
            let path = Kind::Producers.path(&log.0.dir, known.snapshot_offset);
            let snapshot = snapshot::read(&path).await;
            if snapshot.is_none() {
                self.report.findings.push(format!("{}: producers are read from the log", path.display()));
            }
            rebuild_producers(&log.0, snapshot.map(|producers| (producers, known.snapshot_offset))).await?;
        }
        Ok(log)
    }

    /// Every segment must be there, at least as long as the checkpoint says.
    async fn check_segments(
        &mut self,
        dir: &Path,
        listing: &[DirEntry],
        state: &mut LogState,
    ) -> Result<(), StorageError> {
        let len_of = |base_offset: i64| {
            let path = Kind::Log.path(dir, base_offset);
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (path, listing.iter().find(|entry| entry.name == name).map(|entry| entry.len))
        };
        let mut kept = Vec::new();
        for segment in &state.segments {
            let (path, len) = len_of(segment.base_offset);
            if len.is_some_and(|len| len >= segment.bytes) {
                kept.push(*segment);
                continue;
            }
            let what = match len {
                None => "the segment is missing".to_owned(),
                Some(len) => format!("the segment has {len} bytes of {}", segment.bytes),
            };
            if !self.shared.config.repair {
                return Err(StorageError::corrupt(&path, len.unwrap_or(0), what));
            }
            self.report.given_up.push(format!(
                "{}: {what}; offsets {} to {} are lost",
                path.display(),
                segment.base_offset,
                segment.next_offset - 1
            ));
            if let Some(rest) = self.readable_front(&path, segment).await? {
                kept.push(rest);
            }
        }
        state.segments = kept;
        Ok(())
    }

    /// What can still be read of a segment that is too short.
    async fn readable_front(
        &self,
        path: &Path,
        segment: &crate::segment::meta::Segment,
    ) -> Result<Option<crate::segment::meta::Segment>, StorageError> {
        use crate::segment::meta::{Added, Segment};
        if !disk::exists(path).await {
            return Ok(None);
        }
        let file = self.shared.files.get(path).await?;
        let mut cursor = Cursor::new(file, 0, segment.bytes, segment.base_offset);
        let mut walked = Segment::empty(segment.base_offset, segment.first_index);
        let mut index = segment.first_index;
        // The index is made anew at the first read: these counts fit no file.
        while let Ok(Some(batch)) = cursor.next().await {
            walked.add(&Added::of(&batch.header, index), u64::MAX);
            index += 1;
        }
        // The offsets that follow keep their place: the hole is read over, as one left by compaction.
        Ok((walked.bytes > 0).then_some(walked))
    }

    /// Removes files that no checkpoint names: written after it, and about to be written again, or left over from before it.
    async fn tidy(&self, dir: &Path, listing: &[DirEntry], state: &LogState) -> Result<(), StorageError> {
        let mut swaps_gone = false;
        for entry in listing {
            let named = match Kind::of_name(&entry.name) {
                Some((Kind::Producers, offset)) => offset == state.snapshot_offset,
                Some((_, offset)) => state.segments.iter().any(|segment| segment.base_offset == offset),
                None => !UNFINISHED.iter().any(|suffix| entry.name.ends_with(suffix)),
            };
            if !named {
                let path = dir.join(&entry.name);
                disk::remove_file(&path).await.map_err(StorageError::during("remove", &path))?;
                swaps_gone |= entry.name.ends_with(compact::SWAP_SUFFIX);
            }
        }
        if swaps_gone {
            // One that comes back after a power cut would be taken for what a later checkpoint of its generation names.
            disk::sync_dir(dir).await.map_err(StorageError::during("flush", dir))?;
        }
        let Some(last) = state.segments.last() else { return Ok(()) };
        let path = Kind::Log.path(dir, last.base_offset);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if listing.iter().any(|entry| entry.name == name && entry.len > last.bytes) {
            let file = self.shared.files.get(&path).await?;
            file.set_len(last.bytes).await.map_err(StorageError::during("cut", &path))?;
        }
        Ok(())
    }

    /// Applies the journal's entries in order.
    async fn replay(&mut self, opened: &Opened) -> Result<(), StorageError> {
        let mut last_number = 0;
        for block in &opened.replay {
            let entries = opened.read_block(block).await?;
            for (number, entry) in (block.first_entry..).zip(entries) {
                // A repeated block brings nothing new.
                if number > last_number {
                    self.apply(number, entry, block).await?;
                    last_number = number;
                }
            }
            if self.shared.cache.pressed() {
                for replayed in self.logs.values() {
                    replayed.log.0.write_segments(self.shared.journal.durable_entry()).await?;
                }
            }
            runtime::task::yield_if_needed().await;
        }
        if let Some((id, (path, position))) = self.unknown.pop_first() {
            let what = format!("entries of log {id}, which was never created");
            if !self.shared.config.repair {
                return Err(StorageError::corrupt(&path, position, what));
            }
            self.report.given_up.push(what);
        }
        Ok(())
    }

    async fn apply(&mut self, number: u64, entry: Entry, block: &BlockHeader) -> Result<(), StorageError> {
        let Entry { id, change } = entry;
        let place = || {
            (
                path_of(&self.shared.config.dir.join(crate::journal::files::DIRECTORY), block.slot),
                block.position,
            )
        };
        let Some(replayed) = self.logs.get(&id) else {
            match change {
                Change::Create { topic } => return self.create(id, &topic, place()),
                Change::Delete => {
                    self.unknown.remove(&id);
                }
                _ => {
                    self.unknown.entry(id).or_insert_with(place);
                }
            }
            return Ok(());
        };
        if number <= replayed.applied_entry || self.gaps.contains(&id) && !matches!(change, Change::Delete) {
            return Ok(());
        }
        let log = replayed.log.clone();
        self.report.entries += 1;
        match change {
            Change::Create { .. } => {}
            Change::Append { index, batch, .. } => {
                if let Err(what) = log.0.replay_batch(number, index, batch.clone()) {
                    let (path, position) = place();
                    return self.gap(id, &path, position, what);
                }
                self.report.bytes += batch.len() as u64;
            }
            Change::Vote(vote) => log.0.state.borrow_mut().vote = Some(vote),
            Change::Tail { segment, position, bytes } => {
                log.0.restore_tail(segment, position, &bytes).await?
            }
            Change::LogStart { offset } => log.0.state.borrow_mut().apply_log_start(offset),
            Change::TruncateAfter { index } => {
                if let Some(cut) = log.0.cut_after(index).await? {
                    let reaches_segments = cut.reaches_segments();
                    log.0.apply_cut(cut);
                    if reaches_segments {
                        rebuild_producers(&log.0, None).await?;
                    }
                }
            }
            Change::Delete => {
                log.0.mark_deleted(number);
                log.0.rename_deleted().await?;
                self.logs.remove(&id);
                self.gaps.remove(&id);
            }
        }
        Ok(())
    }

    fn create(&mut self, id: PartitionId, topic: &[u8], place: (PathBuf, u64)) -> Result<(), StorageError> {
        let (path, position) = place;
        let topic = str::from_utf8(topic)
            .map_err(|_| StorageError::corrupt(&path, position, "a topic name is not UTF-8"))?;
        let dir = self.shared.partitions_dir().join(names::directory(topic, id.partition)?);
        let state = LogState::new(Rc::new(LogConfig::default()), false);
        let log = Log::new(id, topic.to_owned(), dir, &self.shared, state);
        self.report.entries += 1;
        self.logs.insert(id, Replayed { log, applied_entry: 0 });
        Ok(())
    }

    /// An entry does not follow the one before it in its log.
    fn gap(&mut self, id: PartitionId, path: &Path, position: u64, what: String) -> Result<(), StorageError> {
        if !self.shared.config.repair {
            return Err(StorageError::corrupt(path, position, format!("log {id}: {what}")));
        }
        self.report.given_up.push(format!("log {id}: {what}; what follows is given up"));
        self.gaps.insert(id);
        Ok(())
    }

    fn finish(mut self) -> (BTreeMap<PartitionId, Log>, RecoveryReport) {
        for replayed in self.logs.values() {
            let name = replayed.log.0.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.directories.remove(&name);
        }
        let mut report = self.report;
        let strangers = self.directories.iter();
        report
            .findings
            .extend(strangers.map(|name| format!("partitions/{name} belongs to no log and is left alone")));
        report.logs = self.logs.len();
        let logs: BTreeMap<_, _> = self.logs.into_iter().map(|(id, replayed)| (id, replayed.log)).collect();
        for log in logs.values() {
            let mut state = log.0.state.borrow_mut();
            if sabotage::is(Sabotage::ForgetProducerState) {
                state.producers = Producers::default();
            }
            log.0.durable.recover(state.next_offset);
        }
        (logs, report)
    }
}

impl LogInner {
    /// Puts a journalled batch back at the end of the log.
    fn replay_batch(&self, entry: u64, index: u64, batch: bytes::Bytes) -> Result<(), String> {
        let header = BatchHeader::read(&batch).map_err(|error| error.to_string())?;
        let mut state = self.state.borrow_mut();
        if index != state.last_index + 1 || header.base_offset != state.next_offset {
            return Err(format!(
                "raft index {index} at offset {} follows {} at {}",
                header.base_offset, state.last_index, state.next_offset
            ));
        }
        if header.size() != batch.len() || header.last_offset_delta < 0 {
            return Err("a batch has another size than its header says".to_owned());
        }
        self.shared.cache.add_dirty(batch.len());
        state.push(&header, index, entry, batch);
        Ok(())
    }
}

/// Makes the producer state again: from the state at an offset and the batches that follow it, or from all batches.
pub(crate) async fn rebuild_producers(
    log: &LogInner,
    known: Option<(Producers, i64)>,
) -> Result<(), StorageError> {
    let segments = log.state.borrow().segments.clone();
    let (mut producers, from) = known.unwrap_or_default();
    for segment in segments.iter().filter(|segment| segment.next_offset > from) {
        let file = log.shared.files.get(&Kind::Log.path(&log.dir, segment.base_offset)).await?;
        let mut cursor = Cursor::new(file, 0, segment.bytes, segment.base_offset);
        while let Some(batch) = cursor.next().await? {
            if batch.header.base_offset >= from {
                producers.apply(&batch.header, i64::MAX);
            }
            runtime::task::yield_if_needed().await;
        }
    }
    let mut state = log.state.borrow_mut();
    for batch in state.cached.iter().skip(state.clean) {
        if let Ok(header) = BatchHeader::read(&batch.bytes) {
            producers.apply(&header, batch.base_offset);
        }
    }
    state.producers = producers;
    Ok(())
}
