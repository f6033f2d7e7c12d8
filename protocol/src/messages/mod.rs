//! The messages of Kafka 4.4, one module each, as `cargo gen` writes them.
//!
//! `messages::produce_request::{ProduceRequest, TopicProduceData, …}` holds a message with its structures; the message
//! itself is also `messages::ProduceRequest`. Fields have Kafka's names in snake case, and Kafka's defaults. A field
//! that a version lacks is read as its default; writing it is an error where its value would matter.

#[expect(clippy::too_many_lines, reason = "a generated function is as long as its message has fields")]
mod generated;
mod message;

pub(crate) use generated::api_keys;
pub use generated::*;
pub use message::{Message, Record, Request};
