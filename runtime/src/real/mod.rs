//! The real world: glommio and its io_uring, one executor per shard thread, with its traps worked around.

pub(crate) mod clock;
pub(crate) mod disk;
pub(crate) mod doorbell;
pub(crate) mod entropy;
mod executor;
pub(crate) mod io_buffer;
pub(crate) mod net;

pub(crate) use executor::{Options, RealShard, run};
