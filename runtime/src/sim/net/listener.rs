//! Listening sockets of simulated processes; several may share a port of one host.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use super::connection::{Connection, Side};
use super::stream::SimStream;
use crate::sim::SimShard;
use crate::sync::Event;

/// Connections that wait to be accepted.
#[derive(Default)]
pub(crate) struct Accepting {
    queue: RefCell<VecDeque<Rc<Connection>>>,
    arrived: Event,
}

impl Accepting {
    pub(crate) fn push(&self, connection: Rc<Connection>) {
        self.queue.borrow_mut().push_back(connection);
        self.arrived.notify_all();
    }
}

/// A listening socket.
pub(crate) struct SimListener {
    shard: Rc<SimShard>,
    accepting: Rc<Accepting>,
    addr: SocketAddr,
}

impl SimListener {
    pub(crate) fn bind(shard: &Rc<SimShard>, addr: SocketAddr) -> io::Result<Self> {
        let addr = own_addr(shard, addr)?;
        let accepting = Rc::new(Accepting::default());
        let key = (shard.process.host, addr.port());
        shard.core.network.listeners.borrow_mut().entry(key).or_default().push(Rc::clone(&accepting));
        Ok(Self { shard: Rc::clone(shard), accepting, addr })
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) async fn accept(&self) -> SimStream {
        loop {
            let arrived = self.accepting.arrived.listen();
            let next = self.accepting.queue.borrow_mut().pop_front();
            if let Some(connection) = next {
                return SimStream::new(&self.shard, connection, Side::Server);
            }
            arrived.await;
        }
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        if !self.shard.process.alive.get() {
            return; // its host has closed everything already
        }
        let core = &self.shard.core;
        let key = (self.shard.process.host, self.addr.port());
        let mut listeners = core.network.listeners.borrow_mut();
        if let Some(accepting) = listeners.get_mut(&key) {
            accepting.retain(|other| !Rc::ptr_eq(other, &self.accepting));
            if accepting.is_empty() {
                listeners.remove(&key);
            }
        }
        drop(listeners);
        for connection in self.accepting.queue.take() {
            connection.reset_at(core, core.now());
        }
    }
}

/// Whether `addr` is free on the caller's host, with port 0 resolved.
pub(crate) fn probe(shard: &SimShard, addr: SocketAddr) -> io::Result<SocketAddr> {
    let addr = own_addr(shard, addr)?;
    let taken = shard.core.network.listeners.borrow().contains_key(&(shard.process.host, addr.port()));
    if taken { Err(io::ErrorKind::AddrInUse.into()) } else { Ok(addr) }
}

/// An address of the caller's own host, with port 0 resolved.
fn own_addr(shard: &SimShard, mut addr: SocketAddr) -> io::Result<SocketAddr> {
    let host = shard.process.host;
    if !addr.ip().is_unspecified() && host.at(addr.ip()) != Some(host) {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    }
    if addr.port() == 0 {
        addr.set_port(shard.core.network.free_port(host));
    }
    Ok(addr)
}
