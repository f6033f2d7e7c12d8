//! Looking at a shard's checkpoint and journal without opening them: what a start would find, changing nothing.
//! Does not own: segments (their batches can be checked by whoever reads Kafka's format), what is done about damage.
//!
//! For a stopped node, hence with plain blocking reads. Invariant: what is called damage here makes a start lose a safety copy
//! or refuse; what is called harmless a start mends by itself.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::checkpoint::{self, Checkpoint};
use crate::envelope::{self, EnvelopeError};
use crate::journal::block::{self, BLOCK_BYTES, BlockHeader, Found, HEADER_BYTES, JournalIdentity};
use crate::journal::entry::Entry;
use crate::journal::files;
use crate::journal::order::{self, Damage, Known};

/// A shard directory's checkpoint and journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shard {
    /// The copies of the checkpoint that are there.
    pub checkpoints: Vec<CheckpointFile>,
    /// The files of the journal, by slot.
    pub journal: Vec<JournalFile>,
    /// What is not as it should be.
    pub findings: Vec<Finding>,
}

/// One copy of the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointFile {
    /// The file.
    pub path: PathBuf,
    /// What it says; `None` when it is damaged.
    pub content: Option<CheckpointContent>,
    /// Whether a start uses this one.
    pub counts: bool,
}

/// A checkpoint in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointContent {
    /// The shard.
    pub shard: u16,
    /// Rises by one with each checkpoint.
    pub generation: u64,
    /// No earlier journal block is needed.
    pub replay_from_block: u64,
    /// Highest block known durable.
    pub durable_block: u64,
    /// Number that follows the last durable entry.
    pub next_entry: u64,
    /// Whether the storage was closed in order: the journal is not needed then.
    pub closed: bool,
    /// Number of logs.
    pub logs: usize,
}

/// One file of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalFile {
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Blocks that are whole, those of former uses of the file included.
    pub blocks: u64,
    /// Of these, how many a start replays.
    pub replayed_blocks: u64,
    /// Entries of the blocks that a start replays.
    pub entries: u64,
    /// Numbers of the first and last of these entries.
    pub entry_numbers: Option<(u64, u64)>,
}

/// Something that is not as it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, or the directory where it is missing.
    pub path: PathBuf,
    /// Byte position.
    pub position: u64,
    /// What it is.
    pub what: String,
    /// False for what a power cut leaves and a start mends without loss.
    pub damage: bool,
}

/// Whether this is a shard's directory.
pub fn is_shard(dir: &Path) -> bool {
    let names = checkpoint::FILES.into_iter().chain([files::DIRECTORY]);
    names.into_iter().any(|name| dir.join(name).exists())
}

/// Looks at a shard's directory.
///
/// # Errors
/// A file cannot be read.
pub fn shard(dir: &Path) -> io::Result<Shard> {
    let mut shard = Shard::default();
    let Some(checkpoint) = shard.read_checkpoints(dir)? else {
        shard.tell(dir, 0, "there is no checkpoint that can be read: a start is refused".to_owned(), true);
        return Ok(shard);
    };
    let identity = JournalIdentity { shard: checkpoint.shard, journal_id: checkpoint.journal_id };
    let known =
        Known { replay_from_block: checkpoint.replay_from_block, durable_block: checkpoint.durable_block };
    shard.read_journal(&dir.join(files::DIRECTORY), identity, known)?;
    Ok(shard)
}

/// What the walk through the files of a journal met.
#[derive(Default)]
struct Walk {
    found: Vec<BlockHeader>,
    misplaced: Vec<u64>,
    /// Where something stands that begins as a block but is none, by the sequence that it claims.
    broken: BTreeMap<u64, (PathBuf, u64)>,
}

impl Shard {
    fn tell(&mut self, path: &Path, position: u64, what: String, damage: bool) {
        self.findings.push(Finding { path: path.to_owned(), position, what, damage });
    }

    /// Reads both copies; gives the one that counts.
    fn read_checkpoints(&mut self, dir: &Path) -> io::Result<Option<Checkpoint>> {
        let mut newest: Option<(usize, Checkpoint)> = None;
        for name in checkpoint::FILES {
            let path = dir.join(name);
            let bytes = match fs::read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            let content = match envelope::open::<Checkpoint>(checkpoint::MAGIC, &bytes) {
                Ok(found) => {
                    let content = CheckpointContent::of(&found);
                    if newest.as_ref().is_none_or(|(_, newest)| newest.generation < found.generation) {
                        newest = Some((self.checkpoints.len(), found));
                    }
                    Some(content)
                }
                Err(EnvelopeError::Version(version)) => {
                    self.tell(&path, 0, newer(version, envelope::VERSION), true);
                    None
                }
                Err(error) => {
                    self.tell(&path, 0, error.to_string(), true);
                    None
                }
            };
            self.checkpoints.push(CheckpointFile { path, content, counts: false });
        }
        let Some((at, checkpoint)) = newest else { return Ok(None) };
        if let Some(file) = self.checkpoints.get_mut(at) {
            file.counts = true;
        }
        Ok(Some(checkpoint))
    }

    fn read_journal(&mut self, dir: &Path, identity: JournalIdentity, known: Known) -> io::Result<()> {
        let mut slots = Vec::new();
        for entry in fs::read_dir(dir)? {
            slots.extend(entry?.file_name().to_str().and_then(files::slot_of));
        }
        slots.sort_unstable();
        let mut walk = Walk::default();
        for slot in &slots {
            let path = files::path_of(dir, *slot);
            let bytes = Bytes::from(fs::read(&path)?);
            let before = walk.found.len();
            self.walk_file(&path, *slot, identity, &bytes, &mut walk);
            let blocks = (walk.found.len() - before) as u64;
            self.journal.push(JournalFile {
                path,
                bytes: bytes.len() as u64,
                blocks,
                ..JournalFile::default()
            });
        }
        let ordered = order::order(walk.found, &walk.misplaced, known);
        for damage in &ordered.damage {
            let (path, position) = place_of(damage, &walk.broken, dir);
            self.tell(&path, position, order::describe(damage, ordered.last_sequence), true);
        }
        if let Some((path, position)) = walk.broken.get(&(ordered.last_sequence + 1)) {
            let what = format!(
                "journal block {} was being written when the node ended, and was acknowledged to nobody: the next start cuts it off",
                ordered.last_sequence + 1
            );
            self.tell(path, *position, what, false);
        }
        for header in &ordered.replay {
            self.count_entries(dir, header)?;
        }
        Ok(())
    }

    fn walk_file(
        &mut self,
        path: &Path,
        slot: u16,
        identity: JournalIdentity,
        bytes: &Bytes,
        walk: &mut Walk,
    ) {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= HEADER_BYTES) {
            let position = at as u64;
            at += BLOCK_BYTES;
            match block::find(&identity, slot, position, rest) {
                Found::Block(header) => {
                    at += usize::try_from(header.block_bytes()).unwrap_or(usize::MAX) - BLOCK_BYTES;
                    walk.found.push(header);
                }
                Found::Misplaced(header) => {
                    let what = format!("journal block {} stands in a wrong place", header.sequence);
                    self.tell(path, position, what, true);
                    walk.misplaced.push(header.sequence);
                }
                Found::Newer(version) => self.tell(path, position, newer(version, block::VERSION), true),
                Found::Longer(_) | Found::Nothing => {
                    if let Some(sequence) = block::claimed_sequence(&identity, rest) {
                        walk.broken.insert(sequence, (path.to_owned(), position));
                    }
                }
            }
        }
    }

    /// Counts what a start replays from this block.
    fn count_entries(&mut self, dir: &Path, header: &BlockHeader) -> io::Result<()> {
        let path = files::path_of(dir, header.slot);
        let mut payload = read_payload(&path, header)?;
        for _ in 0..header.entry_count {
            if let Err(error) = Entry::decode(&mut payload) {
                self.tell(&path, header.position, format!("journal entry: {error}"), true);
                break;
            }
        }
        let Some(file) = self.journal.iter_mut().find(|file| file.path == path) else { return Ok(()) };
        file.replayed_blocks += 1;
        if header.entry_count > 0 {
            let last = header.next_entry() - 1;
            file.entries += u64::from(header.entry_count);
            file.entry_numbers = match file.entry_numbers {
                Some((first, end)) => Some((first.min(header.first_entry), end.max(last))),
                None => Some((header.first_entry, last)),
            };
        }
        Ok(())
    }
}

impl CheckpointContent {
    fn of(checkpoint: &Checkpoint) -> Self {
        Self {
            shard: checkpoint.shard,
            generation: checkpoint.generation,
            replay_from_block: checkpoint.replay_from_block,
            durable_block: checkpoint.durable_block,
            next_entry: checkpoint.next_entry,
            closed: checkpoint.closed_at.is_some(),
            logs: checkpoint.logs.len(),
        }
    }
}

/// Where a missing block is: where something claims to be it, or else behind the block before it.
fn place_of(damage: &Damage, broken: &BTreeMap<u64, (PathBuf, u64)>, dir: &Path) -> (PathBuf, u64) {
    if let Some((_, place)) = broken.range(damage.first..=damage.last).next() {
        return place.clone();
    }
    damage.place(dir)
}

fn read_payload(path: &Path, header: &BlockHeader) -> io::Result<Bytes> {
    use std::os::unix::fs::FileExt;
    let mut payload = vec![0; header.payload_bytes as usize];
    fs::File::open(path)?.read_exact_at(&mut payload, header.position + HEADER_BYTES as u64)?;
    Ok(Bytes::from(payload))
}

fn newer(found: u16, known: u16) -> String {
    format!("format version {found}, and this build reads up to {known}")
}
