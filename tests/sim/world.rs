//! One simulated world with one node: the whole broker, unmodified, as the program starts it.
//!
//! Owns: what the node told of itself, starting it again, the history and the end of the load. The world is the faults'
//! and the clients' in common.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use broker::server::{NodeEvent, NodeHandle, node};
use runtime::sim::{NodeId, Sim, SimDisk, SimHandle};
use runtime::time::{self, Instant};

use crate::checks;
use crate::history::History;
use crate::plan::{PORT, Plan};
use crate::timeline::{self, Sometimes};

/// The one machine.
pub(crate) const NODE: NodeId = NodeId(1);
/// How often something is looked at that nobody announces.
const LOOK: Duration = Duration::from_millis(2);
/// The longest time that a start may take: the slowest simulated disk reads a small journal well within it.
const START_LIMIT: Duration = Duration::from_secs(20);
/// The longest time from a failed flush to the end of the process: requests in flight are not waited for.
const END_LIMIT: Duration = Duration::from_secs(10);
/// The longest time until the storage has noticed that the disk has room again, or answers again, and until an answer of an
/// ended process has arrived or was lost.
const AFTERMATH: Duration = Duration::from_secs(4);

/// What the node said last since it was started.
#[derive(Clone)]
pub(crate) enum Status {
    /// Nothing yet.
    Starting,
    /// It serves.
    Ready(NodeHandle),
    /// It did not start.
    Refused(String),
    /// Its storage failed.
    Failed,
    /// It has stopped.
    Stopped,
}

/// The world of one run.
pub(crate) struct World {
    pub plan: Plan,
    pub sim: SimHandle,
    pub history: RefCell<History>,
    /// No new records are sent.
    pub winding_down: Cell<bool>,
    /// Nothing is sent or asked any more.
    pub ended: Cell<bool>,
    /// The disk is full at the moment.
    pub disk_full: Cell<bool>,
    /// The end of the last stall of the disk.
    pub stalled_until: Cell<Option<Instant>>,
    /// When the node was last started or told to stop, or the disk had room again.
    pub changed_at: Cell<Instant>,
    /// How often the node was started.
    pub starts: Cell<u32>,
    /// Faults that may strike at any operation of the disk.
    pub armed: Cell<bool>,
    status: Arc<Mutex<Status>>,
}

impl World {
    /// A world in which the node starts.
    pub(crate) fn new(sim: &Sim, plan: Plan) -> Rc<World> {
        let status = Arc::new(Mutex::new(Status::Starting));
        let told = Arc::clone(&status);
        let events = move |event| {
            let now = match event {
                NodeEvent::Ready(handle) => Status::Ready(handle),
                NodeEvent::StartFailed(error) => Status::Refused(error.to_string()),
                NodeEvent::StorageFailed { .. } => Status::Failed,
                NodeEvent::Stopped => Status::Stopped,
            };
            let mut status = told.lock().unwrap_or_else(PoisonError::into_inner);
            // A failure is followed by the end of the process, which is no clean stop.
            if !matches!(*status, Status::Failed) {
                *status = now;
            }
        };
        sim.start_node(NODE, plan.shards, node(Arc::clone(&plan.config), Arc::new(events)));
        Rc::new(World {
            plan,
            sim: sim.handle(),
            history: RefCell::default(),
            winding_down: Cell::new(false),
            ended: Cell::new(false),
            disk_full: Cell::new(false),
            armed: Cell::new(false),
            stalled_until: Cell::new(None),
            changed_at: Cell::new(sim.handle().now()),
            starts: Cell::new(1),
            status,
        })
    }

    /// Where clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.sim.net().addr(NODE, PORT)
    }

    /// The node's disk.
    pub(crate) fn disk(&self) -> SimDisk {
        self.sim.disk(NODE)
    }

    /// What the node said last.
    pub(crate) fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the storage has reason to refuse something.
    pub(crate) fn storage_may_refuse(&self) -> bool {
        let until = self.stalled_until.get().into_iter().fold(self.changed_at.get(), Instant::max);
        let serves = matches!(self.status(), Status::Ready(_));
        !serves || self.disk_full.get() || self.armed.get() || time::now() < until + AFTERMATH
    }

    /// Notes a breach that is judged on the spot.
    pub(crate) fn breach(&self, check: &'static str, what: impl Into<String>) {
        let what = what.into();
        timeline::note(format_args!("BREACH of \"{check}\": {what}"));
        self.history.borrow_mut().breach(check, what);
    }

    /// Cuts the power.
    pub(crate) fn cut_power(&self) {
        timeline::note("the power is cut");
        self.sim.crash(NODE);
    }

    /// Starts the process again; the machine must be down.
    pub(crate) fn start(&self) {
        timeline::note("the node is started");
        self.starts.set(self.starts.get() + 1);
        self.changed_at.set(time::now());
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Status::Starting;
        self.sim.restart(NODE);
    }

    /// Waits until the process has told how its start went.
    pub(crate) async fn started(&self) -> Status {
        let began = time::now();
        loop {
            let status = self.status();
            match status {
                Status::Starting if began.elapsed() < START_LIMIT => time::sleep(LOOK).await,
                Status::Starting => {
                    self.breach(checks::STARTS_AGAIN, "the start does not end");
                    return status;
                }
                Status::Ready(_) => {
                    timeline::started();
                    return status;
                }
                _ => return status,
            }
        }
    }

    /// Waits until no process runs; the node has a reason to end.
    pub(crate) async fn gone(&self, check: &'static str) {
        let began = time::now();
        while self.sim.is_running(NODE) {
            if began.elapsed() > END_LIMIT {
                self.breach(check, "the process does not end");
                self.sim.kill(NODE);
                return;
            }
            time::sleep(LOOK).await;
        }
    }

    /// Sees to it that the node serves, as an operator would: what has ended is started again. False when that is in vain.
    pub(crate) async fn ensure_up(&self) -> bool {
        for _ in 0..20 {
            if !self.sim.is_running(NODE) {
                self.start();
            }
            let excused = self.disk_full.get() || self.armed.get();
            match self.started().await {
                Status::Ready(_) => return true,
                Status::Starting => return false,
                Status::Refused(reason) => {
                    timeline::note(format_args!("the node did not start: {reason}"));
                    if !excused {
                        self.breach(checks::STARTS_AGAIN, reason);
                        return false;
                    }
                    self.gone(checks::STARTS_AGAIN).await;
                    time::sleep(Duration::from_millis(200)).await;
                }
                Status::Failed => {
                    timeline::met(Sometimes::FailedFlush);
                    self.gone(checks::ENDS_AFTER_FAILURE).await;
                }
                Status::Stopped => self.gone(checks::STARTS_AGAIN).await,
            }
            if self.disk_full.get() && !self.sim.is_running(NODE) {
                // Whoever filled it makes room first.
                return false;
            }
        }
        self.breach(checks::STARTS_AGAIN, "20 starts were in vain");
        false
    }
}
