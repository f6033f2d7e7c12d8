//! A partition's raft group over its log. With one replica an entry is raft-committed by its own flush.
//!
//! [`Group`] is what the broker proposes batches to and learns the high watermark from; more replicas change what is behind
//! it, not its users. One raft entry is one record batch; the leader epoch is the raft term.

mod error;
mod group;

pub use error::{CommitError, ProposeError};
pub use group::{Group, Proposal};
