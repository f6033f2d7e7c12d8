//! Coordinators: what consumer groups agree on, kept as records of `__consumer_offsets`.
//!
//! | module | owns |
//! |---|---|
//! | `group` | deciding and applying: pure |
//! | `runtime` | the shell of one coordinator: propose, apply, park, release |
//! | `load` | stored state out of the log |
//! | `timers` | what a coordinator waits for |
//! | `table` | the coordinators of a shard: one for each partition of `__consumer_offsets` on it |
//! | `ask` | the way from any shard to the coordinator of a consumer group |

mod ask;
pub mod group;
mod load;
mod runtime;
mod table;
mod timers;

pub(crate) use ask::{ask, ask_all};
pub use table::Coordinators;
pub(crate) use table::{partition_added, partition_removed};
