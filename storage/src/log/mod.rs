//! One partition's log: batches in memory and in segments, addressed by offset and by raft index.
//!
//! | module | what it owns |
//! |---|---|
//! | [`handle`] | the public [`Log`]: append, durability, small questions |
//! | [`state`] | the log in memory: cached batches, segments, ends (no I/O) |
//! | [`read`], [`select`] | reading by offset from memory and from segments |
//! | [`times`] | looking up offsets by timestamp |
//! | [`write`] | dirty batches into segments, flushing them, producer snapshots |
//! | [`shrink`] | log start offset, retention, truncation, removal |
//! | [`compact`], [`keys`] | compaction: segments written anew, which records stay |
//! | [`names`] | directory names, `partition.metadata` |

pub(crate) mod compact;
pub(crate) mod handle;
mod keys;
pub(crate) mod names;
pub(crate) mod read;
pub(crate) mod select;
pub(crate) mod shrink;
pub(crate) mod state;
pub(crate) mod times;
pub(crate) mod write;

pub use handle::{Appended, Log, Ticket};
pub use read::ReadResult;

pub(crate) use handle::LogInner;
