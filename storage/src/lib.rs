//! One shard's storage: a journal that makes everything durable with one flush, and logs with segments in Kafka's format.
//!
//! Bytes on disk: docs/storage-format.md. One [`Storage`] per shard, one [`Log`] per partition; both are cheap handles.
//!
//! ```text
//! Log::append ─► log::state (cache, offsets)          background ─► log::write (dirty batches → segments)
//!            └─► journal::writer (one flush) ─► Watch            └► checkpoint ─► journal files are free again
//! Log::read ─► memory, else segment::index ─► one direct read    recovery: checkpoint + journal ─► logs
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | [`storage`], [`background`], [`recovery`] | a shard's logs: checkpoints, when work is done, opening |
//! | [`log`] | one partition: append, read, look up, write, shrink |
//! | [`journal`] | group commit, blocks and entries, torn or corrupt |
//! | [`segment`] | Kafka's files and indexes |
//! | [`producer`], [`leader_epochs`] | pure state of a log |
//! | [`checkpoint`], [`snapshot`], [`envelope`] | our small files |
//! | [`cache`], [`space`], [`open_files`], [`shared`], [`failure`], [`durable`] | what the logs of a shard share |
//! | [`inspect`] | looking at checkpoint and journal of a stopped node |
//! | [`sabotage`] | bugs to plant in tests |

mod background;
mod cache;
mod checkpoint;
mod config;
mod durable;
mod envelope;
mod error;
mod failure;
pub mod inspect;
mod journal;
mod leader_epochs;
mod log;
mod open_files;
mod producer;
mod recovery;
pub mod sabotage;
mod segment;
mod shared;
mod snapshot;
mod space;
mod storage;
#[cfg(test)]
mod test_batches;
#[cfg(test)]
mod tests;

pub use config::{CleanupPolicy, LogConfig, PartitionId, StorageConfig, Vote};
pub use error::{AppendError, ReadError, StorageError};
pub use log::{Appended, Log, ReadResult, Ticket};
pub use producer::ProducerCheck;
pub use recovery::RecoveryReport;
pub use storage::{Storage, Usage};
