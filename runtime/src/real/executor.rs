//! One glommio executor with its two task queues and the shard's own state.
//!
//! glommio 0.9 has a lost wake-up: when its latency ring holds a completion at the moment it turns from polling for I/O to
//! running tasks, it runs none, takes that for having none, and sleeps on ready tasks until something else happens. What
//! completes in that ring are its preemption timers, foreign wakers, and sockets (whose completions wake a task, and so keep
//! it awake). Hence, here:
//!
//! 1. The preemption timer is so long that it does not fire in that window, and no queue has a latency, which would shorten
//!    it. Tasks of long loops give way by [`RealShard::poll_yield`] instead, which leads through a look at I/O.
//! 2. Other threads wake a shard through a socket (`doorbell`).
//! 3. A slow tick ends whatever sleep is left that should not be.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use glommio::timer::Timer;
use glommio::{Latency, LocalExecutor, LocalExecutorBuilder, Placement, Shares, TaskQueueHandle};

use super::clock;
use super::doorbell::{self, Doorbell, Slots};
use crate::shard::ShardId;
use crate::sync::Permits;
use crate::task::Queue;
use crate::time::Instant;
use crate::world::{self, World};

/// How long tasks in loops run before they give way: the longest that a completion waits for them.
const SLICE: Duration = Duration::from_micros(500);
/// Only for loops that never give way.
const PREEMPT_TIMER: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(50);
const REQUEST_SHARES: usize = 1000;
const BACKGROUND_SHARES: usize = 100;
/// Registered I/O memory of an executor. Buffers of files come from elsewhere, so this serves small reads only; glommio's
/// 10 MiB would be most of an idle shard's memory.
const IO_MEMORY_BYTES: usize = 1 << 20;

/// What a caller may choose about an executor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// The CPU that its thread is pinned to.
    pub(crate) cpu: Option<usize>,
}

impl Options {
    /// Makes the executor on the calling thread.
    pub(crate) fn make(&self) -> Result<LocalExecutor, String> {
        let placement = self.cpu.map_or(Placement::Unbound, Placement::Fixed);
        let builder = LocalExecutorBuilder::new(placement);
        builder
            .io_memory(IO_MEMORY_BYTES)
            .preempt_timer(PREEMPT_TIMER)
            .make()
            .map_err(|error| error.to_string())
    }
}

/// State of a shard of the real world.
pub(crate) struct RealShard {
    pub(crate) id: ShardId,
    request: TaskQueueHandle,
    background: TaskQueueHandle,
    pub(crate) doorbell: Arc<Doorbell>,
    pub(crate) slots: RefCell<Slots>,
    /// Tasks that gave way until the next look at I/O.
    pub(crate) yielded: RefCell<Vec<Waker>>,
    slice_started: Cell<Instant>,
    /// Devices whose polling support this executor has probed.
    pub(crate) probed_devices: RefCell<BTreeSet<u64>>,
    /// Opening a file takes one, changing names takes all: glommio panics when a file vanishes while it is opened.
    pub(crate) names: Permits,
}

impl RealShard {
    fn new(id: ShardId, doorbell: Arc<Doorbell>) -> Rc<Self> {
        let queue = |shares, name| {
            glommio::executor().create_task_queue(Shares::Static(shares), Latency::NotImportant, name)
        };
        Rc::new(Self {
            id,
            request: queue(REQUEST_SHARES, "request"),
            background: queue(BACKGROUND_SHARES, "background"),
            doorbell,
            slots: RefCell::default(),
            yielded: RefCell::default(),
            slice_started: Cell::new(clock::now()),
            probed_devices: RefCell::default(),
            names: Permits::new(super::disk::NAME_PERMITS),
        })
    }

    /// Wakes `waker` once the executor has looked at I/O.
    pub(crate) fn poll_yield(&self, waker: &Waker) {
        self.yielded.borrow_mut().push(waker.clone());
        self.doorbell.ring();
    }

    /// Whether the tasks of this shard have run for a slice since the last of them gave way; starts the next slice if so.
    pub(crate) fn slice_is_over(&self) -> bool {
        let now = clock::now();
        let over = now.duration_since(self.slice_started.get()) >= SLICE;
        if over {
            self.slice_started.set(now);
        }
        over
    }

    /// Starts a task in one of the two queues.
    pub(crate) fn spawn_in<T: 'static>(
        &self,
        queue: Queue,
        future: impl Future<Output = T> + 'static,
    ) -> glommio::task::JoinHandle<T> {
        let handle = match queue {
            Queue::Request => self.request,
            Queue::Background => self.background,
        };
        let task = glommio::spawn_local_into(future, handle);
        task.expect("both queues live as long as the executor").detach()
    }
}

/// Runs `main` to its end as shard `id` on `executor`, which belongs to the calling thread.
pub(crate) fn run<T: 'static>(
    executor: &LocalExecutor,
    id: ShardId,
    main: impl Future<Output = T> + 'static,
) -> T {
    executor.run(async move {
        let (doorbell, reading) = Doorbell::new().expect("a shard can have a pair of sockets");
        let shard = RealShard::new(id, doorbell);
        let _world = world::enter(World::Real(Rc::clone(&shard)));
        let answering = shard.spawn_in(Queue::Request, doorbell::answer(Rc::clone(&shard), reading));
        let ticking = shard.spawn_in(Queue::Background, tick());
        let output = shard.spawn_in(Queue::Request, main).await;
        for helper in [answering, ticking] {
            helper.cancel();
            helper.await;
        }
        output.expect("nobody cancels a shard's main task")
    })
}

async fn tick() {
    loop {
        Timer::new(TICK).await;
    }
}
