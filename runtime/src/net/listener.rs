//! Listening sockets that the shards of a process share by `SO_REUSEPORT`.

use std::io;
use std::net::SocketAddr;

use super::TcpStream;
use crate::real::net::RealListener;
use crate::sim::net::{self as sim_net, SimListener};
use crate::world::{self, World};

/// A listening socket of one shard. Several shards may bind the same address; the kernel spreads connections over them.
pub struct TcpListener(Inner);

enum Inner {
    Real(RealListener),
    Sim(SimListener),
}

/// Tells whether the shards may bind `addr`, and resolves port 0 to a free port. Call it before they start: sockets with
/// `SO_REUSEPORT` bind happily beside those of another process of the same user, and would share its clients.
///
/// # Errors
/// `AddrInUse` when another socket listens there.
pub fn probe(addr: SocketAddr) -> io::Result<SocketAddr> {
    match world::try_current() {
        Some(World::Real(_)) | None => std::net::TcpListener::bind(addr)?.local_addr(),
        Some(World::Sim(shard)) => sim_net::probe(&shard, addr),
    }
}

impl TcpListener {
    /// Binds and listens, with `SO_REUSEPORT` (see [`probe`]).
    ///
    /// # Errors
    /// What the system says.
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        match world::current() {
            World::Real(_) => Ok(Self(Inner::Real(RealListener::bind(addr)?))),
            World::Sim(shard) => Ok(Self(Inner::Sim(SimListener::bind(&shard, addr)?))),
        }
    }

    /// The address bound, with the port that was chosen for port 0.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Inner::Real(listener) => listener.local_addr(),
            Inner::Sim(listener) => Ok(listener.local_addr()),
        }
    }

    /// The next connection.
    ///
    /// # Errors
    /// What the system says; out of descriptors is worth a pause, the listener itself stays good.
    pub async fn accept(&self) -> io::Result<TcpStream> {
        match &self.0 {
            Inner::Real(listener) => Ok(TcpStream::from_real(listener.accept().await?)),
            Inner::Sim(listener) => Ok(TcpStream::from_sim(listener.accept().await)),
        }
    }
}
