//! Why a proposal was refused, or did not become raft-committed.

use storage::{AppendError, StorageError};

/// A proposal was not taken; nothing of it was kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProposeError {
    /// The log refused it.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// A proposal was taken, and will not be known to be raft-committed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// The shard's storage failed: whether the proposal survives is known after a restart.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
