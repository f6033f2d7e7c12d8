//! The simulated world: a whole cluster with its disks, its network and its clients on one thread, from one seed.
//!
//! Tasks are polled one at a time; the seed picks which. Time moves a little with each poll, and leaps to the next timer
//! when no task is ready. Two runs of the same seed and program take the same steps and end with the same
//! [`SimHandle::trace_hash`].
//!
//! | file | owns |
//! |---|---|
//! | `handle` | what a test holds: start, crash, run |
//! | `core`, `task`, `random`, `trace` | clock, timers, scheduler, streams of the seed, the hash |
//! | `node` | processes and machines: what dies with which |
//! | `disk` | files with pending-until-sync semantics and faults |
//! | `net` | streams with delays, resets, half-open peers and partitions |

mod config;
mod core;
pub(crate) mod disk;
mod handle;
pub(crate) mod net;
mod node;
mod random;
mod task;
mod trace;

pub use config::SimConfig;
pub use disk::{Fault, SimDisk};
pub use handle::{Sim, SimHandle};
pub use net::SimNet;
pub use node::{Host, NodeId};

pub(crate) use core::SimSleep;
pub(crate) use node::SimShard;
pub(crate) use task::SimJoin;
