//! The simulated network: listeners, streams, and what stands between hosts.
//!
//! Invariants:
//! 1. A stream's bytes arrive in order or not at all; different streams overtake each other freely.
//! 2. A blocked direction delays segments until it is healed; it loses none, as TCP retransmits.
//! 3. A killed process's streams are reset. A host without power may fall silent instead: its peers read nothing, and what
//!    they write is refused only when the host is back, or given up after `net_give_up`.

mod connection;
mod listener;
mod stream;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

use self::connection::Connection;
use self::listener::Accepting;
use super::core::SimCore;
use super::node::{Death, Host, NodeId};
use super::trace::Step;
use crate::sync::Event;

pub(crate) use self::listener::{SimListener, probe};
pub(crate) use self::stream::{SimReader, SimStream, SimWriter};

/// The first port that is given for port 0.
const EPHEMERAL_PORT_MIN: u16 = 32_768;
/// Dead connections are swept out when this many have been made since.
const SWEEP_EVERY: usize = 256;

/// Who listens where; several shards may share a port.
type Listeners = BTreeMap<(Host, u16), Vec<Rc<Accepting>>>;

/// All state of the network.
#[derive(Default)]
pub(crate) struct Network {
    listeners: RefCell<Listeners>,
    connections: RefCell<Vec<Weak<Connection>>>,
    blocked: RefCell<BTreeSet<(Host, Host)>>,
    dark: RefCell<BTreeSet<Host>>,
    ports_given: Cell<u16>,
    /// Notified when links or hosts change.
    changed: Event,
}

impl Network {
    /// A port that nobody listens on.
    fn free_port(&self, host: Host) -> u16 {
        loop {
            let given = self.ports_given.get();
            self.ports_given.set((given + 1) % (u16::MAX - EPHEMERAL_PORT_MIN));
            let port = EPHEMERAL_PORT_MIN + given;
            if !self.listeners.borrow().contains_key(&(host, port)) {
                return port;
            }
        }
    }

    fn is_blocked(&self, from: Host, to: Host) -> bool {
        from != to && self.blocked.borrow().contains(&(from, to))
    }

    fn is_dark(&self, host: Host) -> bool {
        self.dark.borrow().contains(&host)
    }

    fn add_connection(&self, connection: &Rc<Connection>) {
        let mut connections = self.connections.borrow_mut();
        if connections.len() % SWEEP_EVERY == SWEEP_EVERY - 1 {
            connections.retain(|connection| connection.strong_count() > 0);
        }
        connections.push(Rc::downgrade(connection));
    }

    fn connections_of(&self, host: Host) -> Vec<Rc<Connection>> {
        let connections = self.connections.borrow();
        connections.iter().filter_map(Weak::upgrade).filter(|connection| connection.touches(host)).collect()
    }

    /// A process has ended: its listeners close, its streams break (invariant 3).
    pub(crate) fn host_died(&self, core: &SimCore, host: Host, death: Death) {
        let mut closed = Vec::new();
        self.listeners.borrow_mut().retain(|(at, _), accepting| {
            if *at == host {
                closed.append(accepting);
            }
            *at != host
        });
        if death == Death::Power {
            self.dark.borrow_mut().insert(host);
        }
        for connection in self.connections_of(host) {
            let silent = death == Death::Power && core.net_random.chance(500);
            connection.end_lost(core, host, silent);
        }
        self.changed.notify_all();
    }

    /// A process starts on a host: the host answers again, with a reset to streams that it does not know.
    pub(crate) fn host_started(&self, core: &SimCore, host: Host) {
        self.dark.borrow_mut().remove(&host);
        for connection in self.connections_of(host) {
            connection.peer_is_back(core);
        }
        self.changed.notify_all();
    }

    /// Forgets everything at the end of the simulation.
    pub(crate) fn clear(&self) {
        let listeners = std::mem::take(&mut *self.listeners.borrow_mut());
        drop(listeners);
    }
}

/// Breaks the network of a simulation.
pub struct SimNet {
    core: Rc<SimCore>,
}

impl SimNet {
    pub(crate) fn new(core: Rc<SimCore>) -> Self {
        Self { core }
    }

    /// The address of a port on a node.
    pub fn addr(&self, node: NodeId, port: u16) -> SocketAddr {
        SocketAddr::new(node.ip(), port)
    }

    /// Holds back everything that `from` sends to `to`, until healed.
    pub fn block(&self, from: Host, to: Host) {
        self.core.network.blocked.borrow_mut().insert((from, to));
        self.core.trace.note(Step::Fault, &[from.number(), to.number()]);
        self.core.network.changed.notify_all();
    }

    /// Holds back everything between `a` and `b`, both ways.
    pub fn partition(&self, a: Host, b: Host) {
        self.block(a, b);
        self.block(b, a);
    }

    /// Lets everything through again.
    pub fn heal(&self) {
        self.core.network.blocked.borrow_mut().clear();
        self.core.network.changed.notify_all();
    }

    /// Resets every stream between `a` and `b`, as an impatient box in the middle would.
    pub fn reset(&self, a: Host, b: Host) {
        for connection in self.core.network.connections_of(a) {
            if connection.touches(b) {
                connection.reset_at(&self.core, self.core.now());
            }
        }
    }
}
