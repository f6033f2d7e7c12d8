//! Which world the running task lives in: a thread-local set by whoever polls it.
//!
//! Invariants:
//! 1. On a shard's thread the world is set for the whole life of its executor; in a simulation, while a task is polled
//!    or dropped.
//! 2. A foreign thread has no world: clock, randomness and mailboxes work there, everything else panics.

use std::cell::RefCell;
use std::rc::Rc;

use crate::real::RealShard;
use crate::sim::SimShard;

/// The world of the current task.
#[derive(Clone)]
pub(crate) enum World {
    /// A glommio executor.
    Real(Rc<RealShard>),
    /// A simulated shard or client.
    Sim(Rc<SimShard>),
}

thread_local! {
    static CURRENT: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Sets the world until the guard drops, then restores the one before.
pub(crate) fn enter(world: World) -> Entered {
    Entered(CURRENT.with(|current| current.borrow_mut().replace(world)))
}

/// Restores the previous world on drop.
pub(crate) struct Entered(Option<World>);

impl Drop for Entered {
    fn drop(&mut self) {
        let previous = self.0.take();
        CURRENT.with(|current| *current.borrow_mut() = previous);
    }
}

/// The current world, or `None` on a foreign thread.
pub(crate) fn try_current() -> Option<World> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// The current world.
///
/// # Panics
/// On a thread that is neither a shard nor a simulation.
#[track_caller]
pub(crate) fn current() -> World {
    try_current().expect("runtime functions act on a world: call them from a shard's task")
}
