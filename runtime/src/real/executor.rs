//! One glommio executor with its two task queues and the shard's own state.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use glommio::{Latency, LocalExecutor, LocalExecutorBuilder, Placement, Shares, TaskQueueHandle};

use super::doorbell::{self, Doorbell, Slots};
use crate::shard::ShardId;
use crate::sync::Permits;
use crate::task::Queue;
use crate::world::{self, World};

/// How long a request may wait for the executor to look at timers and I/O again.
const REQUEST_LATENCY: Duration = Duration::from_micros(500);
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
    /// How long it spins for new work before it sleeps.
    pub(crate) spin_before_park: Option<Duration>,
}

impl Options {
    /// Makes the executor on the calling thread.
    pub(crate) fn make(&self) -> Result<LocalExecutor, String> {
        let placement = self.cpu.map_or(Placement::Unbound, Placement::Fixed);
        // A queue's latency counts for glommio only while one of its tasks is ready: without this timer, completions that
        // requests wait for would lie behind busy background work for 100 ms.
        let mut builder =
            LocalExecutorBuilder::new(placement).io_memory(IO_MEMORY_BYTES).preempt_timer(REQUEST_LATENCY);
        if let Some(spin) = self.spin_before_park {
            builder = builder.spin_before_park(spin);
        }
        builder.make().map_err(|error| error.to_string())
    }
}

/// State of a shard of the real world.
pub(crate) struct RealShard {
    pub(crate) id: ShardId,
    request: TaskQueueHandle,
    background: TaskQueueHandle,
    pub(crate) doorbell: Arc<Doorbell>,
    pub(crate) slots: RefCell<Slots>,
    /// Devices whose polling support this executor has probed.
    pub(crate) probed_devices: RefCell<BTreeSet<u64>>,
    /// Opening a file takes one, changing names takes all: glommio panics when a file vanishes while it is opened.
    pub(crate) names: Permits,
}

impl RealShard {
    fn new(id: ShardId) -> Rc<Self> {
        let executor = glommio::executor();
        Rc::new(Self {
            id,
            request: executor.create_task_queue(
                Shares::Static(REQUEST_SHARES),
                Latency::Matters(REQUEST_LATENCY),
                "request",
            ),
            background: executor.create_task_queue(
                Shares::Static(BACKGROUND_SHARES),
                Latency::NotImportant,
                "background",
            ),
            doorbell: Arc::default(),
            slots: RefCell::default(),
            probed_devices: RefCell::default(),
            names: Permits::new(super::disk::NAME_PERMITS),
        })
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
        let shard = RealShard::new(id);
        let _world = world::enter(World::Real(Rc::clone(&shard)));
        drop(shard.spawn_in(Queue::Request, doorbell::answer(Rc::clone(&shard))));
        let output = shard.spawn_in(Queue::Request, main).await;
        shard.doorbell.close();
        output.expect("nobody cancels a shard's main task")
    })
}
