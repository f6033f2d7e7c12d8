//! A simulated connection as a process holds it, whole or split.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use futures::future::{Either, select};

use super::connection::{Connection, End, Side, pause, segment_time};
use crate::sim::SimShard;
use crate::sim::core::SimSleep;
use crate::sim::node::Host;
use crate::sim::trace::Step;

/// Closes its end of the connection when it drops.
struct Socket {
    shard: Rc<SimShard>,
    connection: Rc<Connection>,
    side: Side,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A dead process says no farewell: its host has ended the connection already.
        if self.shard.process.alive.get() {
            self.connection.close(&self.shard.core, self.side);
        }
    }
}

/// A connection.
pub(crate) struct SimStream(Rc<Socket>);

impl SimStream {
    pub(crate) fn new(shard: &Rc<SimShard>, connection: Rc<Connection>, side: Side) -> Self {
        Self(Rc::new(Socket { shard: Rc::clone(shard), connection, side }))
    }

    pub(crate) async fn connect(shard: &Rc<SimShard>, addr: SocketAddr) -> io::Result<Self> {
        let core = &shard.core;
        let from = shard.process.host;
        let to = from.at(addr.ip()).ok_or(io::ErrorKind::HostUnreachable)?;
        SimSleep::until(core, core.now() + segment_time(core)).await;
        reach(shard, from, to).await?;
        let accepting = {
            let listeners = core.network.listeners.borrow();
            let ours = listeners.get(&(to, addr.port())).ok_or(io::ErrorKind::ConnectionRefused)?;
            Rc::clone(&ours[core.net_random.index(ours.len())])
        };
        let own_ip = if addr.ip().is_loopback() { addr.ip() } else { from.ip() };
        let own_addr = SocketAddr::new(own_ip, core.network.free_port(from));
        let connection = Connection::new(End { host: from, addr: own_addr }, End { host: to, addr });
        core.network.add_connection(&connection);
        core.trace.note(Step::NetConnect, &[from.number(), to.number(), u64::from(addr.port())]);
        let stream = Self::new(shard, Rc::clone(&connection), Side::Client);
        accepting.push(connection);
        SimSleep::until(core, core.now() + segment_time(core)).await;
        Ok(stream)
    }

    pub(crate) fn peer_addr(&self) -> SocketAddr {
        self.0.connection.end(self.0.side.other()).addr
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.0.connection.end(self.0.side).addr
    }

    pub(crate) fn into_split(self) -> (SimReader, SimWriter) {
        (SimReader(Rc::clone(&self.0)), SimWriter(self.0))
    }
}

/// Waits until both directions are open and the host has power, at most `net_give_up`.
async fn reach(shard: &Rc<SimShard>, from: Host, to: Host) -> io::Result<()> {
    let core = &shard.core;
    let mut given_up = SimSleep::until(core, core.now() + core.config.net_give_up);
    loop {
        let changed = core.network.changed.listen();
        let network = &core.network;
        if !network.is_blocked(from, to) && !network.is_blocked(to, from) && !network.is_dark(to) {
            return Ok(());
        }
        match select(changed, given_up).await {
            Either::Left(((), rest)) => given_up = rest,
            Either::Right(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// The reading half.
pub(crate) struct SimReader(Rc<Socket>);

impl SimReader {
    /// Appends what arrives to the spare capacity of `buf`, which is not empty.
    pub(crate) async fn read(&mut self, buf: &mut BytesMut) -> io::Result<usize> {
        let Socket { shard, connection, side } = &*self.0;
        loop {
            let changed = connection.listen();
            let link_changed = shard.core.network.changed.listen();
            match connection.try_read(&shard.core, *side, buf) {
                Ok(outcome) => return outcome,
                Err(wait) => {
                    let pause = std::pin::pin!(pause(&shard.core, wait, changed));
                    select(pause, link_changed).await;
                }
            }
        }
    }
}

/// The writing half.
pub(crate) struct SimWriter(Rc<Socket>);

impl SimWriter {
    pub(crate) async fn write_all(&mut self, chunks: Vec<Bytes>) -> io::Result<()> {
        let Socket { shard, connection, side } = &*self.0;
        for mut chunk in chunks {
            while !chunk.is_empty() {
                let changed = connection.listen();
                match connection.try_write(&shard.core, *side, &mut chunk) {
                    Ok(outcome) => outcome?,
                    Err(wait) => pause(&shard.core, wait, changed).await,
                }
            }
        }
        Ok(())
    }

    pub(crate) fn shutdown(&mut self) {
        self.0.connection.finish(&self.0.shard.core, self.0.side);
    }
}
