//! The heart of a simulation: clock, timers and the seeded scheduler.
//!
//! Invariants:
//! 1. One task is polled at a time, with its own world entered; no borrow of this state is held meanwhile.
//! 2. Every choice is drawn from a stream of the seed; nothing depends on addresses, hashing or the machine.
//! 3. The clock never goes back, and moves with every poll, so that a busy loop cannot stop time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use super::config::SimConfig;
use super::net::Network;
use super::node::{Nodes, Process, SimShard};
use super::random::{Salt, Stream};
use super::task::{Task, TaskWaker, Woken};
use super::trace::{Step, Trace};
use crate::task::Queue;
use crate::time::Instant;
use crate::world::{self, World};

/// One in this many turns goes to a background task while requests are ready: its share of the processor.
const BACKGROUND_TURN: u64 = 11;

/// All state of a simulation.
pub(crate) struct SimCore {
    pub(crate) seed: u64,
    pub(crate) config: SimConfig,
    pub(crate) trace: Trace,
    pub(crate) disk_random: Stream,
    pub(crate) net_random: Stream,
    pub(crate) nodes: Nodes,
    pub(crate) network: Network,
    random: Stream,
    clock_ns: Cell<u64>,
    timers: RefCell<BTreeMap<(u64, u64), Waker>>,
    timers_made: Cell<u64>,
    tasks: RefCell<BTreeMap<u64, Task>>,
    tasks_made: Cell<u64>,
    woken: Arc<Woken>,
    ready: RefCell<Ready>,
    current_queue: Cell<Queue>,
}

#[derive(Default)]
struct Ready {
    request: Vec<u64>,
    background: Vec<u64>,
}

impl SimCore {
    pub(crate) fn new(seed: u64, config: SimConfig) -> Rc<Self> {
        Rc::new(Self {
            seed,
            trace: Trace::default(),
            disk_random: Stream::new(seed, Salt::Disk),
            net_random: Stream::new(seed, Salt::Net),
            nodes: Nodes::new(&config),
            network: Network::default(),
            random: Stream::new(seed, Salt::Scheduler),
            clock_ns: Cell::new(0),
            timers: RefCell::default(),
            timers_made: Cell::new(0),
            tasks: RefCell::default(),
            tasks_made: Cell::new(0),
            woken: Arc::default(),
            ready: RefCell::default(),
            current_queue: Cell::new(Queue::Request),
            config,
        })
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.clock_ns.get())
    }

    /// The queue of the task that is being polled.
    pub(crate) fn current_queue(&self) -> Queue {
        self.current_queue.get()
    }

    /// Whether a task in a long loop gives way here.
    pub(crate) fn draws_yield(&self) -> bool {
        self.random.chance(250)
    }

    /// Whether a timeout ends early, and after which part of its time (per mille).
    pub(crate) fn draws_early_timeout(&self) -> Option<u64> {
        self.random.chance(self.config.early_timeout_permille).then(|| self.random.below(1000))
    }

    pub(crate) fn add_task(
        &self,
        shard: &Rc<SimShard>,
        queue: Queue,
        future: Pin<Box<dyn Future<Output = ()>>>,
    ) -> u64 {
        let id = self.tasks_made.get();
        self.tasks_made.set(id + 1);
        let waker = Arc::new(TaskWaker { id, queued: AtomicBool::new(true), woken: Arc::clone(&self.woken) });
        let task = Task { future: Some(future), shard: Rc::clone(shard), queue, waker, cancelled: false };
        self.tasks.borrow_mut().insert(id, task);
        self.woken.push(id);
        id
    }

    pub(crate) fn cancel_task(&self, id: u64) {
        if let Some(task) = self.tasks.borrow_mut().get_mut(&id) {
            task.cancelled = true;
            Waker::from(Arc::clone(&task.waker)).wake();
        }
    }

    /// Takes one step: polls a ready task, or leaps to the next timer if that is not after `limit`. False when neither is.
    pub(crate) fn step(self: &Rc<Self>, limit: Instant) -> bool {
        if let Some(id) = self.pick() {
            self.poll(id);
            self.nodes.end_exited(self);
            return true;
        }
        let Some((at, waker)) = self.next_timer(limit) else { return false };
        self.clock_ns.set(self.clock_ns.get().max(at));
        self.trace.note(Step::Timer, &[at]);
        waker.wake();
        true
    }

    /// Moves the clock to `instant` unless it is there already.
    pub(crate) fn advance_to(&self, instant: Instant) {
        self.clock_ns.set(self.clock_ns.get().max(instant.as_nanos()));
    }

    fn next_timer(&self, limit: Instant) -> Option<(u64, Waker)> {
        let mut timers = self.timers.borrow_mut();
        let first = timers.first_entry()?;
        let at = first.key().0;
        (at <= limit.as_nanos()).then(|| (at, first.remove()))
    }

    fn pick(&self) -> Option<u64> {
        // Timers that the clock has passed by the cost of polls are due as well.
        while let Some((_, waker)) = self.next_timer(self.now()) {
            waker.wake();
        }
        let mut ready = self.ready.borrow_mut();
        let tasks = self.tasks.borrow();
        for id in self.woken.take() {
            match tasks.get(&id).map(|task| task.queue) {
                Some(Queue::Request) => ready.request.push(id),
                Some(Queue::Background) => ready.background.push(id),
                None => {}
            }
        }
        let background_turn = ready.request.is_empty() || self.random.below(BACKGROUND_TURN) == 0;
        let ready = &mut *ready;
        let queue = if background_turn && !ready.background.is_empty() {
            &mut ready.background
        } else {
            &mut ready.request
        };
        (!queue.is_empty()).then(|| queue.swap_remove(self.random.index(queue.len())))
    }

    fn poll(&self, id: u64) {
        let cost = self.random.up_to(self.config.poll_cost_max).as_nanos() as u64;
        self.clock_ns.set(self.clock_ns.get() + 1 + cost);
        self.trace.note(Step::Poll, &[id, self.clock_ns.get()]);
        let (shard, waker, cancelled) = {
            let tasks = self.tasks.borrow();
            // Its process may have died since the task was woken.
            let Some(task) = tasks.get(&id) else { return };
            self.current_queue.set(task.queue);
            (Rc::clone(&task.shard), Arc::clone(&task.waker), task.cancelled)
        };
        let _world = world::enter(World::Sim(shard));
        let taken = self.tasks.borrow_mut().get_mut(&id).and_then(|task| task.future.take());
        let mut future = taken.expect("a task is polled by the scheduler alone");
        waker.queued.store(false, Ordering::Relaxed);
        let waker = Waker::from(waker);
        let ended = cancelled || future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        if ended {
            drop(future);
            drop(self.tasks.borrow_mut().remove(&id));
        } else if let Some(task) = self.tasks.borrow_mut().get_mut(&id) {
            task.future = Some(future);
        }
    }

    /// Drops all tasks of a process, in the order in which they were made.
    pub(crate) fn drop_tasks_of(&self, process: &Rc<Process>) {
        let doomed: Vec<u64> = {
            let tasks = self.tasks.borrow();
            let theirs = tasks.iter().filter(|(_, task)| Rc::ptr_eq(&task.shard.process, process));
            theirs.map(|(id, _)| *id).collect()
        };
        for id in doomed {
            self.drop_task(id);
        }
    }

    /// Drops every task, which breaks the cycles of references through their shards.
    pub(crate) fn drop_all_tasks(&self) {
        loop {
            let first = self.tasks.borrow().keys().next().copied();
            let Some(id) = first else { return };
            self.drop_task(id);
        }
    }

    fn drop_task(&self, id: u64) {
        let task = self.tasks.borrow_mut().remove(&id);
        if let Some(task) = task {
            let _world = world::enter(World::Sim(Rc::clone(&task.shard)));
            drop(task);
        }
    }

    fn add_timer(&self, at: Instant, waker: &Waker) -> (u64, u64) {
        let number = self.timers_made.get();
        self.timers_made.set(number + 1);
        let slack = self.random.up_to(self.config.timer_slack_max).as_nanos() as u64;
        let key = (at.as_nanos().saturating_add(slack), number);
        self.timers.borrow_mut().insert(key, waker.clone());
        key
    }
}

impl Drop for SimCore {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("simulation of seed {} failed at {:?}", self.seed, self.now());
        }
    }
}

/// Waits for a moment of the virtual clock.
pub(crate) struct SimSleep {
    core: Rc<SimCore>,
    deadline: Instant,
    timer: Option<(u64, u64)>,
}

impl SimSleep {
    pub(crate) fn until(core: &Rc<SimCore>, deadline: Instant) -> Self {
        Self { core: Rc::clone(core), deadline, timer: None }
    }
}

impl Future for SimSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.deadline <= this.core.now() {
            return Poll::Ready(());
        }
        let still_there = match this.timer {
            Some(key) => match this.core.timers.borrow_mut().get_mut(&key) {
                Some(waker) => {
                    waker.clone_from(cx.waker());
                    true
                }
                None => false,
            },
            None => false,
        };
        if !still_there {
            this.timer = Some(this.core.add_timer(this.deadline, cx.waker()));
        }
        Poll::Pending
    }
}

impl Drop for SimSleep {
    fn drop(&mut self) {
        if let Some(key) = self.timer {
            let waker = self.core.timers.borrow_mut().remove(&key);
            drop(waker);
        }
    }
}
