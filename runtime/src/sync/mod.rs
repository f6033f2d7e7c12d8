//! Waiting inside one shard: everything here is `Rc`-based and never crosses a thread.

mod event;
pub mod oneshot;
mod permits;
mod waiters;
mod watch;

pub use event::{Event, Listener};
pub use permits::{Permit, Permits};
pub use watch::Watch;
