//! The primitive types of the protocol: how they are read ([`Decoder`]) and written ([`Encoder`]).
//!
//! Flexible versions (KIP-482) write lengths as unsigned varints one higher than the value and end each structure
//! with tagged fields; the others write them as `i16` (text) and `i32`, −1 for null.

mod decoder;
mod encoder;
mod error;
pub mod varint;

pub use decoder::{Decoder, Tag};
pub use encoder::{Encoder, TagStart};
pub use error::{DecodeError, EncodeError};

/// Longest text in bytes that Kafka reads or writes, in flexible versions too.
pub const STR_MAX_BYTES: usize = i16::MAX as usize;
