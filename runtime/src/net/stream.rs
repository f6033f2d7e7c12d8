//! A TCP connection and its two halves, which two tasks of one shard may use at once.

use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};

use crate::real::net::{RealReader, RealStream, RealWriter};
use crate::sim::net::{SimReader, SimStream, SimWriter};
use crate::world::{self, World};

/// What [`ReadHalf::read`] reserves when the buffer has no spare capacity.
const RESERVE_BYTES: usize = 4096;

/// A connection.
pub struct TcpStream(Inner);

enum Inner {
    Real(RealStream),
    Sim(SimStream),
}

impl TcpStream {
    pub(crate) fn from_real(stream: RealStream) -> Self {
        Self(Inner::Real(stream))
    }

    pub(crate) fn from_sim(stream: SimStream) -> Self {
        Self(Inner::Sim(stream))
    }

    /// Connects to `addr`.
    ///
    /// # Errors
    /// `ConnectionRefused` and the like; a peer that never answers takes minutes, so give it a [`crate::time::timeout`].
    pub async fn connect(addr: SocketAddr) -> io::Result<Self> {
        match world::current() {
            World::Real(_) => Ok(Self::from_real(RealStream::connect(addr).await?)),
            World::Sim(shard) => Ok(Self::from_sim(SimStream::connect(&shard, addr).await?)),
        }
    }

    /// Sends small writes at once instead of gathering them (`TCP_NODELAY`).
    ///
    /// # Errors
    /// What the system says.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        match &self.0 {
            Inner::Real(stream) => stream.set_nodelay(nodelay),
            Inner::Sim(_) => Ok(()),
        }
    }

    /// The peer's address.
    ///
    /// # Errors
    /// `NotConnected` when the peer has gone already.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Inner::Real(stream) => stream.peer_addr(),
            Inner::Sim(stream) => Ok(stream.peer_addr()),
        }
    }

    /// This side's address.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Inner::Real(stream) => stream.local_addr(),
            Inner::Sim(stream) => Ok(stream.local_addr()),
        }
    }

    /// Splits into a reader and a writer. The socket closes when both are dropped.
    pub fn into_split(self) -> (ReadHalf, WriteHalf) {
        match self.0 {
            Inner::Real(stream) => {
                let (reader, writer) = stream.into_split();
                (ReadHalf(Reading::Real(reader)), WriteHalf(Writing::Real(writer)))
            }
            Inner::Sim(stream) => {
                let (reader, writer) = stream.into_split();
                (ReadHalf(Reading::Sim(reader)), WriteHalf(Writing::Sim(writer)))
            }
        }
    }
}

/// The reading half.
pub struct ReadHalf(Reading);

enum Reading {
    Real(RealReader),
    Sim(SimReader),
}

impl ReadHalf {
    /// Waits for bytes and appends them to `buf`, at most its spare capacity (some is reserved when there is none).
    /// Returns how many; zero means that the peer has closed its side. Safe to cancel: no byte is lost.
    ///
    /// # Errors
    /// `ConnectionReset` and the like.
    pub async fn read(&mut self, buf: &mut BytesMut) -> io::Result<usize> {
        if buf.spare_capacity_mut().is_empty() {
            buf.reserve(RESERVE_BYTES);
        }
        match &mut self.0 {
            Reading::Real(reader) => reader.read(buf).await,
            Reading::Sim(reader) => reader.read(buf).await,
        }
    }
}

/// The writing half.
pub struct WriteHalf(Writing);

enum Writing {
    Real(RealWriter),
    Sim(SimWriter),
}

impl WriteHalf {
    /// Writes all chunks in order, in one system call where the socket's buffer has room for them. Cancelling it leaves the
    /// stream cut at an unknown byte.
    ///
    /// # Errors
    /// `BrokenPipe`, `ConnectionReset` and the like.
    pub async fn write_all(&mut self, chunks: Vec<Bytes>) -> io::Result<()> {
        match &mut self.0 {
            Writing::Real(writer) => writer.write_all(chunks).await,
            Writing::Sim(writer) => writer.write_all(chunks).await,
        }
    }

    /// Tells the peer that nothing more comes. Errors do not matter: the peer has gone then.
    pub async fn shutdown(&mut self) {
        match &mut self.0 {
            Writing::Real(writer) => writer.shutdown(),
            Writing::Sim(writer) => writer.shutdown(),
        }
    }
}
