//! A shard's checkpoint and journal in the report of an inspection.
//!
//! Does not own: reading them (`storage::inspect`).

use std::io;
use std::path::Path;

use serde::Serialize;
use storage::inspect::{self, CheckpointFile, Finding, JournalFile};

/// What a shard's directory holds beside segments.
#[derive(Debug, Serialize)]
pub(crate) struct Shard {
    /// Directory below the inspected one.
    pub(crate) directory: String,
    pub(crate) checkpoints: Vec<Checkpoint>,
    pub(crate) journal: Vec<Journal>,
}

/// One copy of the checkpoint.
#[derive(Debug, Serialize)]
pub(crate) struct Checkpoint {
    file: String,
    /// Whether a start uses this copy.
    counts: bool,
    /// Null for a damaged copy.
    content: Option<Content>,
}

/// What a checkpoint says.
#[derive(Debug, Serialize)]
struct Content {
    shard: u16,
    generation: u64,
    replay_from_block: u64,
    durable_block: u64,
    next_entry: u64,
    closed: bool,
    logs: usize,
}

/// One journal file.
#[derive(Debug, Serialize)]
pub(crate) struct Journal {
    file: String,
    size_bytes: u64,
    /// Whole blocks, old ones included.
    blocks: u64,
    /// Those that the next start replays, and their entries.
    replayed_blocks: u64,
    replayed_entries: u64,
    first_entry: Option<u64>,
    last_entry: Option<u64>,
}

impl Shard {
    /// Looks at a shard's directory.
    pub(crate) fn inspect(path: &Path, directory: String) -> io::Result<(Shard, Vec<Finding>)> {
        let found = inspect::shard(path)?;
        let checkpoints = found.checkpoints.iter().map(Checkpoint::new).collect();
        let journal = found.journal.iter().map(Journal::new).collect();
        Ok((Shard { directory, checkpoints, journal }, found.findings))
    }

    /// Whether the next start finds something in the journal that is in no segment yet.
    pub(crate) fn replays(&self) -> bool {
        self.journal.iter().any(|file| file.replayed_entries > 0)
    }

    pub(crate) fn text(&self) -> String {
        let checkpoints = self.checkpoints.iter().map(Checkpoint::text);
        let journal = self.journal.iter().map(Journal::text);
        let lines: Vec<String> = checkpoints.chain(journal).map(|line| format!("  {line}")).collect();
        std::iter::once(self.directory.clone()).chain(lines).collect::<Vec<_>>().join("\n")
    }
}

impl Checkpoint {
    fn new(found: &CheckpointFile) -> Checkpoint {
        let content = found.content.map(|content| Content {
            shard: content.shard,
            generation: content.generation,
            replay_from_block: content.replay_from_block,
            durable_block: content.durable_block,
            next_entry: content.next_entry,
            closed: content.closed,
            logs: content.logs,
        });
        Checkpoint { file: name(&found.path), counts: found.counts, content }
    }

    fn text(&self) -> String {
        let file = &self.file;
        let Some(content) = &self.content else { return format!("{file}: DAMAGED") };
        let use_ = if self.counts { ", the one that counts" } else { "" };
        let end = if content.closed { ", closed in order" } else { "" };
        format!(
            "{file}: generation {}, {} logs, replay from block {}, durable up to block {}{end}{use_}",
            content.generation, content.logs, content.replay_from_block, content.durable_block
        )
    }
}

impl Journal {
    fn new(found: &JournalFile) -> Journal {
        Journal {
            file: name(&found.path),
            size_bytes: found.bytes,
            blocks: found.blocks,
            replayed_blocks: found.replayed_blocks,
            replayed_entries: found.entries,
            first_entry: found.entry_numbers.map(|(first, _)| first),
            last_entry: found.entry_numbers.map(|(_, last)| last),
        }
    }

    fn text(&self) -> String {
        let Journal { file, size_bytes, blocks, replayed_blocks, replayed_entries, .. } = self;
        let numbers = match (self.first_entry, self.last_entry) {
            (Some(first), Some(last)) => format!(", entries {first} to {last}"),
            _ => String::new(),
        };
        format!(
            "{file}: {size_bytes} bytes, {blocks} blocks, to be replayed: {replayed_blocks} blocks, \
             {replayed_entries} entries{numbers}"
        )
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use protocol::Uuid;
    use protocol::record::{BatchHeader, Builder, Codec};
    use storage::{LogConfig, PartitionId, Storage, StorageConfig};

    use crate::inspection::{Inspection, inspect};
    use crate::output::Report;

    /// A data directory whose node was killed: a log was created, and ten batches were made durable, a block each.
    fn killed() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let shard = dir.path().join("shard-0");
        std::fs::create_dir(&shard).unwrap();
        runtime::shard::block_on_one(async move {
            let (storage, _) = Storage::open(StorageConfig::new(shard, 0)).await.unwrap();
            let id = PartitionId { topic_id: Uuid::from_u128(7), partition: 0 };
            let log = storage.create_log(id, "t", LogConfig::default()).await.unwrap();
            for _ in 0..10 {
                let mut builder = Builder::new(Codec::None);
                builder.push(1_000, None, Some(&[b'v'; 500]), &[]);
                let batch = builder.build();
                let header = BatchHeader::read(&batch).unwrap();
                let appended = log.append(batch, &header, 0).unwrap();
                log.durable(appended.ticket).await.unwrap();
            }
        });
        dir
    }

    fn flipped(at: impl Fn(&[usize]) -> usize) -> (Inspection, String) {
        let dir = killed();
        let path: PathBuf = dir.path().join("shard-0/journal/0000.journal");
        let mut bytes = std::fs::read(&path).unwrap();
        let boundaries = (0..bytes.len()).step_by(4096);
        let blocks: Vec<usize> = boundaries.filter(|at| bytes[*at..].starts_with(b"MJBK")).collect();
        let block = at(&blocks);
        bytes[block + 300] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        (inspect(dir.path()).unwrap(), format!("{}: at position {block}: ", path.display()))
    }

    #[test]
    fn checkpoint_and_journal_are_told_for_people_and_programs() {
        let dir = killed();
        let found = inspect(dir.path()).unwrap();
        assert_eq!((&found.damage, &found.harmless), (&Vec::new(), &Vec::new()));
        let text = found.text();
        for wanted in [
            "shard-0\n",
            "checkpoint.a: generation 2, 0 logs",
            "0000.journal: ",
            "11 entries, entries 1 to 11",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        let json = serde_json::to_value(&found).unwrap();
        let shard = &json["shards"][0];
        assert_eq!(shard["journal"][0]["replayed_entries"], 11);
        assert_eq!(shard["checkpoints"][0]["content"]["replay_from_block"], 1);
        assert_eq!(shard["checkpoints"][0]["counts"], true);
    }

    #[test]
    fn a_torn_tail_is_harmless() {
        let (found, place) = flipped(|blocks| *blocks.last().unwrap());
        assert_eq!((found.damage.len(), found.harmless.len()), (0, 1));
        assert!(found.harmless[0].starts_with(&place), "{:?}", found.harmless);
    }

    #[test]
    fn a_flipped_byte_in_the_middle_is_damage() {
        let (found, place) = flipped(|blocks| blocks[blocks.len() / 2]);
        assert_eq!((found.damage.len(), found.harmless.len()), (1, 0));
        assert!(found.damage[0].starts_with(&place), "{:?}", found.damage);
    }
}
