//! Which metadata records a request becomes. Pure: the image, the request and random ids in, records and the answer out.
//!
//! Invariant: the records of one decision are applied together or not at all; they are one batch of the metadata log.

mod create_partitions;
mod create_topics;
mod delete_topics;
mod placement;
#[cfg(test)]
mod tests;

pub use create_partitions::create_partitions;
pub use create_topics::{Created, create_topics};
pub use delete_topics::{Deleted, delete_topics};

use super::image::Image;
use super::record::MetadataRecord;
use protocol::ErrorCode;
use protocol::messages::ProducerIdsRecord;

/// Partitions that one request may create, as in Kafka.
pub const PARTITIONS_PER_REQUEST_MAX: usize = 10_000;
/// Producer ids that a shard takes at a time, as in Kafka.
pub const PRODUCER_ID_BLOCK_LEN: i64 = 1000;

/// What to write, and what to answer once that is raft-committed and every shard knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<R> {
    /// Records, in order; empty when nothing changes.
    pub records: Vec<MetadataRecord>,
    /// The answer.
    pub reply: R,
}

/// Why something was refused: Kafka's error and one sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Kafka's error.
    pub error: ErrorCode,
    /// For people.
    pub message: String,
}

impl Refusal {
    /// A refusal.
    #[must_use]
    pub fn new(error: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { error, message: message.into() }
    }
}

/// Hands out the next block of producer ids; the reply is its first id.
#[must_use]
pub fn allocate_producer_ids(image: &Image, node_id: i32) -> Decision<i64> {
    let first = image.next_producer_id;
    let record = ProducerIdsRecord {
        broker_id: node_id,
        next_producer_id: first + PRODUCER_ID_BLOCK_LEN,
        ..ProducerIdsRecord::default()
    };
    Decision { records: vec![MetadataRecord::ProducerIds(record)], reply: first }
}
