//! Coordinators: what a consumer group agrees on, kept as records of `__consumer_offsets`.
//!
//! - [`group`] decides and applies, without I/O.

pub mod group;
