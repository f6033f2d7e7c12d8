//! The lock that keeps two processes out of one data directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::real;
use crate::sim;
use crate::world::{self, World};

/// Holds a directory for this process; dropping gives it back.
pub struct DirLock {
    _held: Held,
}

enum Held {
    Real { _file: std::fs::File },
    Sim { _lock: sim::disk::SimDirLock },
}

/// Why a directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The lock file could not be made or locked.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}

/// Locks directory `path`, which must exist. Blocks for up to 250 ms: after a kill the kernel may hold the old process's
/// files for some milliseconds more, until its io_uring has been taken down.
///
/// # Errors
/// [`LockError::InUse`] when another process (in the simulation: another lock of the same node) has it.
pub fn lock_dir(path: &Path) -> Result<DirLock, LockError> {
    match world::try_current() {
        Some(World::Real(_)) | None => {
            Ok(DirLock { _held: Held::Real { _file: real::disk::lock_dir(path)? } })
        }
        Some(World::Sim(shard)) => {
            Ok(DirLock { _held: Held::Sim { _lock: sim::disk::lock_dir(&shard, path)? } })
        }
    }
}
