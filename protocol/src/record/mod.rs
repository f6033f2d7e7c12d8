//! Record batches, format v2 (KIP-98): the unit that is produced, replicated, stored and fetched.
//!
//! A batch is a header of 61 bytes and its records, which may be compressed together. Most of the broker looks at the
//! header alone, in place:
//!
//! - [`BatchHeader`] reads it; [`verify_crc`], [`set_base_offset`], [`set_leader_epoch`],
//!   [`set_max_timestamp_log_append`] check and patch the bytes; [`split_batches`] cuts a buffer into batches.
//! - [`validate`] is what a leader checks before it accepts a batch from a producer.
//! - [`RecordIter`] and [`compression`] look inside; [`Builder`], [`rebuild`] and [`control`] write batches.

mod batches;
mod builder;
pub mod compression;
pub mod control;
mod error;
mod header;
mod iter;
mod patch;
mod rebuild;
pub mod validate;

pub use batches::{Batches, split_batches};
pub use builder::{Builder, Producer};
pub use compression::Codec;
pub use error::RecordError;
pub use header::{BatchHeader, HEADER_BYTES, LENGTH_PREFIX_BYTES, MAGIC, NO_TIMESTAMP, TimestampType};
pub use iter::{Record, RecordHeader, RecordHeaders, RecordIter};
pub use patch::{set_base_offset, set_leader_epoch, set_max_timestamp_log_append, verify_crc};
pub use rebuild::rebuild;
