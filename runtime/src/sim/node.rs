//! Machines and the processes on them. A process is started, exits or is killed; a machine loses power. What dies with which:
//! a killed process loses its tasks, its sockets are reset, and its disk keeps what was written; a power cut takes from the
//! disk what was not synced, too, and peers may hear nothing of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use super::config::SimConfig;
use super::core::SimCore;
use super::disk::NodeDisk;
use super::random::{Salt, Stream};
use super::task::SimJoin;
use super::trace::Step;
use crate::shard::{Seed, ShardId, seeds};
use crate::task::Queue;

/// A machine that runs a process of ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u16);

impl NodeId {
    /// Its address in the simulated network.
    pub fn ip(self) -> IpAddr {
        let [high, low] = self.0.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(10, 1, high, low))
    }
}

/// A place in the network: a machine, or the one where all clients are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Host {
    /// A machine of the cluster.
    Node(NodeId),
    /// Where the clients run.
    Clients,
}

impl Host {
    /// Its address.
    pub fn ip(self) -> IpAddr {
        match self {
            Host::Node(node) => node.ip(),
            Host::Clients => IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1)),
        }
    }

    /// The host at `ip`, seen from `self`: loopback is oneself.
    pub(crate) fn at(self, ip: IpAddr) -> Option<Host> {
        match ip {
            ip if ip.is_loopback() || ip == self.ip() => Some(self),
            ip if ip == Host::Clients.ip() => Some(Host::Clients),
            IpAddr::V4(ip) => match ip.octets() {
                [10, 1, high, low] => Some(Host::Node(NodeId(u16::from_be_bytes([high, low])))),
                _ => None,
            },
            IpAddr::V6(_) => None,
        }
    }

    pub(crate) fn number(self) -> u64 {
        match self {
            Host::Node(node) => u64::from(node.0),
            Host::Clients => 1 << 16,
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Death {
    /// It exited or was killed; its kernel lives on.
    Process,
    /// Its machine lost power.
    Power,
}

/// One run of a program on a host.
pub(crate) struct Process {
    pub(crate) host: Host,
    pub(crate) alive: Cell<bool>,
    mains: Cell<u16>,
}

/// What the world of a simulated task is.
pub(crate) struct SimShard {
    pub(crate) core: Rc<SimCore>,
    pub(crate) process: Rc<Process>,
    pub(crate) id: ShardId,
    pub(crate) random: Stream,
    pub(crate) disk: Rc<NodeDisk>,
}

impl SimShard {
    pub(crate) fn wall_ms(&self) -> i64 {
        let elapsed_ms = (self.core.now().as_nanos() / 1_000_000) as i64;
        self.core.config.wall_start_ms + elapsed_ms + self.core.nodes.wall_offset_ms(self.process.host)
    }
}

type StartFn = Rc<dyn Fn(&Rc<SimCore>)>;

struct Node {
    disk: Rc<NodeDisk>,
    process: Option<Rc<Process>>,
    start: StartFn,
    incarnation: u32,
    wall_offset_ms: i64,
}

/// All machines, and the place of the clients.
pub(crate) struct Nodes {
    nodes: RefCell<BTreeMap<NodeId, Node>>,
    clients: Rc<Process>,
    clients_made: Cell<u64>,
    client_disk: Rc<NodeDisk>,
    exited: RefCell<Vec<Rc<Process>>>,
}

impl Nodes {
    pub(crate) fn new(config: &SimConfig) -> Self {
        let clients = Process { host: Host::Clients, alive: Cell::new(true), mains: Cell::new(0) };
        Self {
            nodes: RefCell::default(),
            clients: Rc::new(clients),
            clients_made: Cell::new(0),
            client_disk: Rc::new(NodeDisk::new(config.disk_capacity_bytes)),
            exited: RefCell::default(),
        }
    }

    fn wall_offset_ms(&self, host: Host) -> i64 {
        match host {
            Host::Node(node) => self.nodes.borrow().get(&node).map_or(0, |node| node.wall_offset_ms),
            Host::Clients => 0,
        }
    }

    /// Moves a machine's wall clock.
    pub(crate) fn shift_wall_clock(&self, id: NodeId, by_ms: i64) {
        let mut nodes = self.nodes.borrow_mut();
        nodes.get_mut(&id).expect("the node was started once").wall_offset_ms += by_ms;
    }

    /// The disk of a machine that was started once.
    pub(crate) fn disk(&self, id: NodeId) -> Rc<NodeDisk> {
        Rc::clone(&self.nodes.borrow().get(&id).expect("the node was started once").disk)
    }

    /// The process that runs on a machine.
    pub(crate) fn process(&self, id: NodeId) -> Option<Rc<Process>> {
        self.nodes.borrow().get(&id).and_then(|node| node.process.clone())
    }

    /// A world for one more client.
    pub(crate) fn client_shard(&self, core: &Rc<SimCore>) -> Rc<SimShard> {
        let number = self.clients_made.get();
        self.clients_made.set(number + 1);
        Rc::new(SimShard {
            core: Rc::clone(core),
            process: Rc::clone(&self.clients),
            id: ShardId(0),
            random: Stream::new(core.seed, Salt::Client(number)),
            disk: Rc::clone(&self.client_disk),
        })
    }

    /// Sets what a machine runs.
    pub(crate) fn define<M, F, Fut>(&self, core: &Rc<SimCore>, id: NodeId, shards: u16, main: F)
    where
        M: Send + 'static,
        F: Fn(Seed<M>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        assert!(shards > 0, "a node has at least one shard");
        assert!(self.process(id).is_none(), "{id:?} runs already");
        let start: StartFn = Rc::new(move |core| start_process(core, id, shards, &main));
        let mut nodes = self.nodes.borrow_mut();
        let node = nodes.entry(id).or_insert_with(|| Node {
            disk: Rc::new(NodeDisk::new(core.config.disk_capacity_bytes)),
            process: None,
            start: Rc::clone(&start),
            incarnation: 0,
            wall_offset_ms: 0,
        });
        node.start = start;
    }

    /// Starts the process of a machine that has none.
    pub(crate) fn start(&self, core: &Rc<SimCore>, id: NodeId) {
        let start = {
            let nodes = self.nodes.borrow();
            let node = nodes.get(&id).expect("the node was started once");
            assert!(node.process.is_none(), "{id:?} runs already");
            Rc::clone(&node.start)
        };
        start(core);
    }

    /// Ends the process of a machine, if it has one, and cuts the machine's power if `death` says so.
    pub(crate) fn end(&self, core: &Rc<SimCore>, id: NodeId, death: Death) {
        let (process, disk) = {
            let mut nodes = self.nodes.borrow_mut();
            let node = nodes.get_mut(&id).expect("the node was started once");
            (node.process.take(), Rc::clone(&node.disk))
        };
        let step = if death == Death::Power { Step::PowerCut } else { Step::Kill };
        core.trace.note(step, &[u64::from(id.0)]);
        tracing::debug!(node = id.0, ?death, at = ?core.now(), "simulated death");
        if let Some(process) = process {
            process.alive.set(false);
            core.network.host_died(core, process.host, death);
            core.drop_tasks_of(&process);
        }
        disk.process_died();
        if death == Death::Power {
            disk.lose_power(core);
        }
    }

    /// Ends processes whose mains have all returned.
    pub(crate) fn end_exited(&self, core: &Rc<SimCore>) {
        loop {
            let exited = self.exited.borrow_mut().pop();
            let Some(process) = exited else { return };
            if let (Host::Node(id), true) = (process.host, process.alive.get()) {
                self.end(core, id, Death::Process);
            }
        }
    }

    fn main_ended(&self, process: &Rc<Process>) {
        process.mains.set(process.mains.get() - 1);
        if process.mains.get() == 0 {
            self.exited.borrow_mut().push(Rc::clone(process));
        }
    }

    /// Makes a process for a machine: itself, its disk and which run it is.
    fn adopt(&self, id: NodeId, shards: u16) -> (Rc<Process>, Rc<NodeDisk>, u32) {
        let process = Process { host: Host::Node(id), alive: Cell::new(true), mains: Cell::new(shards) };
        let process = Rc::new(process);
        let mut nodes = self.nodes.borrow_mut();
        let node = nodes.get_mut(&id).expect("the node is defined before it starts");
        node.process = Some(Rc::clone(&process));
        node.incarnation += 1;
        (process, Rc::clone(&node.disk), node.incarnation)
    }

    /// Forgets what the machines run, which may hold handles of the simulation.
    pub(crate) fn clear(&self) {
        let nodes = std::mem::take(&mut *self.nodes.borrow_mut());
        drop(nodes);
    }
}

fn start_process<M, F, Fut>(core: &Rc<SimCore>, id: NodeId, shards: u16, main: &F)
where
    M: Send + 'static,
    F: Fn(Seed<M>) -> Fut + Clone + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let (process, disk, incarnation) = core.nodes.adopt(id, shards);
    core.trace.note(Step::Start, &[u64::from(id.0), u64::from(incarnation)]);
    core.network.host_started(core, process.host);
    for seed in seeds(shards) {
        let salt = Salt::Shard { node: id.0, incarnation, shard: seed.id.0 };
        let shard = Rc::new(SimShard {
            core: Rc::clone(core),
            process: Rc::clone(&process),
            id: seed.id,
            random: Stream::new(core.seed, salt),
            disk: Rc::clone(&disk),
        });
        let (main, owner) = (main.clone(), Rc::clone(&shard));
        drop(SimJoin::spawn(&shard, Queue::Request, async move {
            main(seed).await;
            owner.core.nodes.main_ended(&owner.process);
        }));
    }
}
