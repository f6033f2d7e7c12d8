//! Classic consumer groups as a pure state machine: no I/O, no clock, no randomness, no futures.
//!
//! - [`decide`](ConsumerGroups::decide) reads the stored state, changes only [`Soft`], and says what to store, whom to
//!   answer and when to be called again ([`Decision`]);
//! - [`apply`](ConsumerGroups::apply) is the only change of stored state, and what a restart replays;
//! - [`Record`] is the bytes of `__consumer_offsets`, the same as Apache Kafka's.
//!
//! The shell around it is [`super::runtime`].

mod admin;
mod config;
mod expiry;
mod join;
mod leave;
mod membership;
mod message;
mod offsets;
mod rebalance;
mod record;
mod session;
mod state;
mod subscription;
mod sync;
mod turn;

#[cfg(test)]
mod tests;

pub use config::GroupConfig;
pub use message::{Client, Decision, Input, Rebalance, Reply, Request, RequestId, Timer, TimerChange};
pub use record::{Record, RecordError};
pub use state::ConsumerGroups;
pub use turn::Soft;
