//! The errors of this crate: what an operator must handle, what an appender and a reader may meet.
//! Does not own: what clients see; `broker` maps these to Kafka error codes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A fault of storage that an operator must know of. Cheap to clone: every waiter of a failed flush gets it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StorageError {
    /// A read, write or flush failed. For journal writes and flushes this is final: nothing is retried.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb ("write", "flush").
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: Arc<std::io::Error>,
    },
    /// Bytes that were durable are damaged. Start is refused rather than serving a shorter log as if it were complete.
    #[error(
        "{} is damaged at position {position}: {what}. Nothing was cut off. Restore the file, or start once with \
         `repair` to keep what is still readable and to give up the rest",
        path.display()
    )]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Byte position of the damage.
        position: u64,
        /// What was found.
        what: String,
    },
    /// A file was written by a newer Millrace (docs/storage-format.md, section 6).
    #[error("{} has format version {found}, this build reads up to {known}: start the newer Millrace", path.display())]
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: u16,
        /// Highest version known here.
        known: u16,
    },
    /// The directory belongs to another shard.
    #[error("{} belongs to shard {found}, not to shard {expected}", path.display())]
    WrongShard {
        /// The shard directory.
        path: PathBuf,
        /// Shard in the file.
        found: u16,
        /// Shard that opened it.
        expected: u16,
    },
    /// The journal took no more entries: the storage is closing or closed.
    #[error("storage is closed")]
    Closed,
    /// The disk has less free space than is kept back; the entry may be tried again later.
    #[error("disk is full (less than the reserve is free)")]
    Full,
    /// The log exists already.
    #[error("log {0} exists")]
    LogExists(crate::PartitionId),
    /// There is no such log, or it is being deleted.
    #[error("no log {0}")]
    UnknownLog(crate::PartitionId),
    /// The topic name cannot be a directory name.
    #[error("topic name {0:?} cannot be a directory name")]
    InvalidName(String),
    /// The configuration contradicts itself.
    #[error("configuration: {0}")]
    InvalidConfig(&'static str),
}

impl StorageError {
    /// Wraps an I/O error with what was attempted and where.
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source: Arc::new(source) }
    }

    /// Wraps what a call on `path` answers, for `map_err`.
    pub(crate) fn during<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<'a> {
        move |source| Self::io(action, path, source)
    }

    /// Damage found in `path` at byte `position`.
    pub(crate) fn corrupt(path: &Path, position: u64, what: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_owned(), position, what: what.into() }
    }

    /// Whether the cause is a full disk: not final, unlike every other failure of a segment write.
    pub(crate) fn is_no_space(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull
            || source.kind() == std::io::ErrorKind::QuotaExceeded)
    }
}

/// Why an append was not taken. Nothing of the batch was kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// The disk is full up to the reserve. Retryable: space may come back.
    #[error("disk is full (less than the reserve is free)")]
    Full,
    /// The journal or the segment writer is behind. Retryable at once after [`crate::Storage::room`].
    #[error("journal or cache is full for the moment")]
    Busy,
    /// The batch cannot fit into a journal file.
    #[error("batch of {size} bytes is larger than the {limit} bytes that a journal file takes")]
    TooLarge {
        /// Bytes of the batch.
        size: usize,
        /// Most bytes that fit.
        limit: usize,
    },
    /// The header does not describe the batch that came with it.
    #[error("batch header and batch disagree")]
    Malformed,
    /// The log was deleted.
    #[error("log was deleted")]
    Deleted,
    /// The shard's storage failed for good.
    #[error(transparent)]
    Failed(#[from] StorageError),
}

/// Why a read gave nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The offset is below the log start offset or beyond the end.
    #[error("offset {offset} is outside of {log_start_offset}..={log_end_offset}")]
    OutOfRange {
        /// Offset asked for.
        offset: i64,
        /// First offset kept.
        log_start_offset: i64,
        /// Next offset to be written.
        log_end_offset: i64,
    },
    /// The log was deleted.
    #[error("log was deleted")]
    Deleted,
    /// The bytes cannot be read or are damaged: this range only, the rest of the log is served.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
