//! What a test holds of a simulation: it starts nodes and clients, lets time pass, and breaks things.

use std::future::Future;
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;

use super::config::SimConfig;
use super::core::SimCore;
use super::disk::SimDisk;
use super::net::SimNet;
use super::node::{Death, NodeId};
use super::task::SimJoin;
use crate::shard::Seed;
use crate::task::{JoinHandle, Queue};
use crate::time::Instant;

/// A simulation. Dropping it drops every task in it.
pub struct Sim(SimHandle);

impl Sim {
    /// An empty world: the same `seed`, `config` and program give the same run.
    pub fn new(seed: u64, config: SimConfig) -> Self {
        Self(SimHandle { core: SimCore::new(seed, config) })
    }

    /// A handle for client tasks that script the faults themselves.
    pub fn handle(&self) -> SimHandle {
        self.0.clone()
    }

    /// Runs until `done` says so (looked at after every step) or `limit` has passed; returns whether `done` did.
    ///
    /// When no task is ready and no timer is set, nothing can change any more and the rest of the time is skipped.
    pub fn run_until(&self, limit: Duration, mut done: impl FnMut() -> bool) -> bool {
        let core = &self.0.core;
        let deadline = core.now() + limit;
        loop {
            if done() {
                return true;
            }
            if core.now() >= deadline || !core.step(deadline) {
                core.advance_to(deadline);
                return done();
            }
        }
    }

    /// Lets `duration` pass.
    pub fn run_for(&self, duration: Duration) {
        self.run_until(duration, || false);
    }

    /// Runs `client` to its end; `None` when it has not ended within `limit`.
    pub fn block_on<T: 'static>(
        &self,
        limit: Duration,
        client: impl Future<Output = T> + 'static,
    ) -> Option<T> {
        let shard = self.core.nodes.client_shard(&self.core);
        let join = SimJoin::spawn(&shard, Queue::Request, client);
        let mut output = None;
        self.run_until(limit, || {
            output = join.take();
            output.is_some()
        });
        if output.is_none() {
            join.cancel();
        }
        output
    }
}

impl Deref for Sim {
    type Target = SimHandle;

    fn deref(&self) -> &SimHandle {
        &self.0
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.core.drop_all_tasks();
        self.core.nodes.clear();
        self.core.network.clear();
    }
}

/// Acts on a simulation, from outside or from a client task.
#[derive(Clone)]
pub struct SimHandle {
    core: Rc<SimCore>,
}

impl SimHandle {
    /// Starts a process of `shards` shards on machine `node`, with the same main as [`crate::shard::start`] takes. The
    /// machine's disk outlives it; when every main has returned the process has exited.
    ///
    /// # Panics
    /// When a process runs there already.
    pub fn start_node<M, F, Fut>(&self, node: NodeId, shards: u16, main: F)
    where
        M: Send + 'static,
        F: Fn(Seed<M>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.core.nodes.define(&self.core, node, shards, main);
        self.core.nodes.start(&self.core, node);
    }

    /// Starts `node` again with the main it had.
    ///
    /// # Panics
    /// When a process runs there already, or none ever did.
    pub fn restart(&self, node: NodeId) {
        self.core.nodes.start(&self.core, node);
    }

    /// Cuts the power of `node`: tasks vanish, what was not synced is kept, lost, torn or garbled as the seed says, and
    /// peers see a reset or nothing at all.
    pub fn crash(&self, node: NodeId) {
        self.core.nodes.end(&self.core, node, Death::Power);
    }

    /// Kills the process on `node`: tasks vanish, sockets are reset, what was written stays on the disk.
    pub fn kill(&self, node: NodeId) {
        self.core.nodes.end(&self.core, node, Death::Process);
    }

    /// Whether a process runs on `node`.
    pub fn is_running(&self, node: NodeId) -> bool {
        self.core.nodes.process(node).is_some()
    }

    /// Runs `client` beside the nodes, on a host of its own that never fails.
    pub fn spawn_client<T: 'static>(&self, client: impl Future<Output = T> + 'static) -> JoinHandle<T> {
        let shard = self.core.nodes.client_shard(&self.core);
        JoinHandle::from_sim(SimJoin::spawn(&shard, Queue::Request, client))
    }

    /// The disk of `node`, to break it.
    ///
    /// # Panics
    /// When the node never started.
    pub fn disk(&self, node: NodeId) -> SimDisk {
        SimDisk::new(Rc::clone(&self.core), self.core.nodes.disk(node))
    }

    /// The network, to break it.
    pub fn net(&self) -> SimNet {
        SimNet::new(Rc::clone(&self.core))
    }

    /// Moves the wall clock of `node` forward or back; the monotonic clock goes on.
    pub fn shift_wall_clock(&self, node: NodeId, by_ms: i64) {
        self.core.nodes.shift_wall_clock(node, by_ms);
    }

    /// The virtual clock.
    pub fn now(&self) -> Instant {
        self.core.now()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.core.seed
    }

    /// A hash over all steps so far: scheduling, timers, disk, network, faults.
    pub fn trace_hash(&self) -> u64 {
        self.core.trace.hash()
    }
}
