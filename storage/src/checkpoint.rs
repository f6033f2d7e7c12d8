//! The checkpoint: how far each log's segments can be relied on, and what is small (docs/storage-format.md, section 3).
//! Does not own: when it is taken (`background`), what follows from it (`recovery`).
//!
//! Invariant: both copies hold the same, and the journal and files that they supersede go only when both are durable.

use std::path::{Path, PathBuf};

use rkyv::{Archive, Deserialize, Serialize};
use runtime::disk;

use crate::envelope::{self, EnvelopeError};
use crate::error::StorageError;
use crate::segment::meta::Segment;

/// In front of every checkpoint.
pub(crate) const MAGIC: [u8; 4] = *b"MCKP";
/// The two copies.
pub(crate) const FILES: [&str; 2] = ["checkpoint.a", "checkpoint.b"];

/// Everything that is not in the journal from `replay_from_block` on.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) shard: u16,
    pub(crate) journal_id: [u8; 16],
    pub(crate) generation: u64,
    pub(crate) replay_from_block: u64,
    pub(crate) durable_block: u64,
    pub(crate) next_entry: u64,
    /// Slot and position at which the journal goes on, if it was closed: it need not be searched then.
    pub(crate) closed_at: Option<(u16, u64)>,
    pub(crate) logs: Vec<LogCheckpoint>,
}

/// One log in a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Archive, Serialize, Deserialize)]
pub(crate) struct LogCheckpoint {
    pub(crate) topic_id: [u8; 16],
    pub(crate) partition: i32,
    pub(crate) topic: String,
    pub(crate) log_start: i64,
    /// Entries of this log up to this number are contained.
    pub(crate) applied_entry: u64,
    /// Term, node, whether raft-committed.
    pub(crate) vote: Option<(u64, i64, bool)>,
    pub(crate) next_offset: i64,
    pub(crate) last_index: u64,
    pub(crate) leader_epochs: Vec<(i32, i64)>,
    /// −1 when no producer is known.
    pub(crate) snapshot_offset: i64,
    pub(crate) segments: Vec<Segment>,
}

/// What the two copies say.
pub(crate) enum Loaded {
    /// No checkpoint was ever written here.
    None,
    /// The newest valid one, and what is wrong with the other, in words.
    Valid(Box<Checkpoint>, Option<String>),
}

/// Reads both copies.
pub(crate) async fn load(dir: &Path) -> Result<Loaded, StorageError> {
    let mut newest: Option<Checkpoint> = None;
    let mut problem = None;
    let mut missing = 0;
    for name in FILES {
        let path = dir.join(name);
        if !disk::exists(&path).await {
            missing += 1;
            continue;
        }
        let bytes = disk::read_file(&path).await.map_err(StorageError::during("read", &path))?;
        match envelope::open::<Checkpoint>(MAGIC, &bytes) {
            Ok(found) if newest.as_ref().is_none_or(|newest| newest.generation < found.generation) => {
                newest = Some(found);
            }
            Ok(_) => {}
            Err(EnvelopeError::Version(found)) => {
                return Err(StorageError::UnsupportedVersion { path, found, known: envelope::VERSION });
            }
            Err(error) => problem = Some((path, error)),
        }
    }
    match (newest, problem) {
        (Some(checkpoint), problem) => {
            let words =
                problem.map(|(path, error)| format!("{}: {error}; the other copy was used", path.display()));
            Ok(Loaded::Valid(Box::new(checkpoint), words))
        }
        (None, Some((path, error))) => Err(StorageError::corrupt(&path, 0, error.to_string())),
        (None, None) => {
            debug_assert_eq!(missing, FILES.len());
            Ok(Loaded::None)
        }
    }
}

/// Writes both copies, one after the other.
pub(crate) async fn save(dir: &Path, checkpoint: &Checkpoint) -> Result<(), StorageError> {
    let bytes = envelope::seal(MAGIC, checkpoint);
    for name in FILES {
        let path: PathBuf = dir.join(name);
        disk::write_file_atomic(&path, &bytes).await.map_err(StorageError::during("write", &path))?;
    }
    Ok(())
}
