//! The load generator: an open-loop producer, a consumer and both at once, for any broker that speaks Kafka's protocol.
//!
//! | module | what it owns |
//! |---|---|
//! | [`cli`], [`options`] | the command line, which is the library's options |
//! | [`run_produce`], [`run_consume`], [`run_end_to_end`] | a run from preparing the topic to the report |
//! | [`report`], [`text`], [`host`] | the result, and what belongs to it to repeat the run |
//! | [`progress`] | what a progress bar needs |
//! | `schedule`, `gatherer`, `payload`, `batch` | when records are due, which go into a request, what is in them (no I/O) |
//! | `tally`, `hlog` | counting without coordinated omission; histogram logs |
//! | `client`, `producer`, `consumer`, `null` | the connections |
//! | `plan`, `worker`, `gather` | the generator's shards and their coordinator |

mod batch;
pub mod cli;
mod client;
mod consumer;
mod error;
mod gather;
mod gatherer;
mod hlog;
pub mod host;
mod null;
pub mod options;
mod payload;
mod plan;
mod producer;
pub mod progress;
pub mod report;
mod run;
mod schedule;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod stub;
mod tally;
pub mod text;
mod worker;

pub use error::BenchError;
pub use run::{run_consume, run_end_to_end, run_produce};
