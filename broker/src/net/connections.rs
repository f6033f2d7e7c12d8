//! The connections of a shard: how many there may be, which are swept away, how they end at a stop.
//!
//! Invariant: a connection is counted from its admission until its task has ended or was cancelled.

use super::connection::{Connection, ConnectionInfo};
use super::turns::Turns;
use crate::shard::Shard;
use runtime::net::TcpStream;
use runtime::sync::Event;
use runtime::task::{self, JoinHandle};
use runtime::time;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Frames in arrival that wait for each other's memory would do so for ever: after this long, one of them goes.
const MEMORY_WAIT_MAX: Duration = Duration::from_secs(10);
/// Fetches that find no memory for so long are helped.
const STARVED_MAX: Duration = Duration::from_secs(2);

/// This shard's part of the node's limits.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Connections in all.
    pub total_max: usize,
    /// Connections from one address.
    pub per_ip_max: usize,
    /// A connection that is idle for longer is closed; none for never.
    pub idle_max: Option<Duration>,
}

/// All connections of a shard.
pub struct Connections {
    limits: ConnectionLimits,
    next_id: Cell<u64>,
    open: RefCell<BTreeMap<u64, Open>>,
    per_ip: RefCell<BTreeMap<IpAddr, usize>>,
    changed: Event,
}

struct Open {
    connection: Rc<Connection>,
    task: JoinHandle<()>,
}

impl Connections {
    /// No connections yet.
    #[must_use]
    pub fn new(limits: ConnectionLimits) -> Connections {
        Connections {
            limits,
            next_id: Cell::new(0),
            open: RefCell::default(),
            per_ip: RefCell::default(),
            changed: Event::new(),
        }
    }

    /// How many are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.borrow().len()
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Serves a connection in a task of its own, unless a limit is reached: then it is closed at once.
    pub(super) fn admit(&self, shard: &Rc<Shard>, stream: TcpStream, peer: SocketAddr, listener: usize) {
        // A wildcard listener knows its own address only from a connection.
        let local = stream.local_addr().unwrap_or(peer);
        let from_ip = self.per_ip.borrow().get(&peer.ip()).copied().unwrap_or(0);
        if self.len() >= self.limits.total_max || from_ip >= self.limits.per_ip_max {
            shard.metrics.connections_refused.add(1);
            tracing::info!(%peer, "refusing a connection: a limit on connections is reached");
            return;
        }
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let connection = Rc::new(Connection::new(ConnectionInfo {
            id,
            peer,
            local,
            listener,
            fetch_turns: Turns::default(),
        }));
        self.per_ip.borrow_mut().insert(peer.ip(), from_ip + 1);
        let task = task::spawn({
            let (shard, connection) = (Rc::clone(shard), Rc::clone(&connection));
            async move {
                connection.serve(&shard, stream).await;
                shard.connections.ended(id);
            }
        });
        // A task runs only once its spawner yields: it cannot have ended before this entry exists.
        self.open.borrow_mut().insert(id, Open { connection, task });
    }

    fn ended(&self, id: u64) {
        // The handle of a task that ends by itself is dropped, which leaves the task alone.
        self.remove(id);
    }

    fn remove(&self, id: u64) -> Option<Open> {
        let open = self.open.borrow_mut().remove(&id)?;
        let ip = open.connection.info.peer.ip();
        let mut per_ip = self.per_ip.borrow_mut();
        if let Some(count) = per_ip.get_mut(&ip) {
            *count -= 1;
            if *count == 0 {
                per_ip.remove(&ip);
            }
        }
        self.changed.notify_all();
        Some(open)
    }

    /// Closes idle, slow and stuck connections, for ever.
    pub async fn sweep(shard: Rc<Shard>) {
        loop {
            time::sleep(SWEEP_INTERVAL).await;
            let starve = shard.fetch_starved_for().is_some_and(|starved| starved > STARVED_MAX);
            for id in shard.connections.doomed(starve) {
                shard.connections.cut(id);
            }
        }
    }

    fn doomed(&self, others_starve: bool) -> Vec<u64> {
        let idle_max = self.limits.idle_max;
        let open = self.open.borrow();
        let spent = open.iter().filter(|(_, open)| {
            let idle = open.connection.idle().zip(idle_max).is_some_and(|(idle, max)| idle > max);
            idle || open.connection.is_stuck(others_starve)
        });
        let waiting =
            open.iter().filter_map(|(id, open)| Some((open.connection.waits_for_memory_since()?, *id)));
        let longest = waiting.min().filter(|(since, _)| since.elapsed() > MEMORY_WAIT_MAX);
        spent.map(|(id, _)| *id).chain(longest.map(|(_, id)| id)).collect()
    }

    fn cut(&self, id: u64) {
        if let Some(open) = self.remove(id) {
            tracing::debug!(peer = %open.connection.info.peer, "closing a connection: idle or too slow");
            open.task.cancel();
        }
    }

    /// Ends every connection: no further request is read, what is in flight is answered, and after `patience` the rest is cut.
    pub async fn drain(&self, patience: Duration) {
        for open in self.open.borrow().values() {
            open.connection.begin_stop();
        }
        let all_ended = async {
            loop {
                let changed = self.changed.listen();
                if self.is_empty() {
                    return;
                }
                changed.await;
            }
        };
        if time::timeout(patience, all_ended).await.is_err() {
            let rest: Vec<u64> = self.open.borrow().keys().copied().collect();
            for id in rest {
                self.cut(id);
            }
        }
    }
}
