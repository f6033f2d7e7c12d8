//! TCP by glommio, with the two things it lacks: vectored writes and reads into memory that nobody has zeroed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures::io::{AsyncRead, AsyncWrite};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown, sendmsg, shutdown};
use socket2::{Domain, Protocol, Socket, Type};

use super::io_buffer;

/// The kernel takes no more slices than this in one call (`IOV_MAX`).
const SLICES_MAX: usize = 1024;
/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 1024;
/// What glommio reads when it waits: small requests arrive whole, and what is beyond comes without another copy.
const FIRST_READ_BYTES: usize = 4096;

thread_local! {
    /// Shared by all connections of a thread: filled and emptied within one poll.
    static FIRST_READ: RefCell<[u8; FIRST_READ_BYTES]> = const { RefCell::new([0; FIRST_READ_BYTES]) };
}

/// A listening socket.
pub(crate) struct RealListener(glommio::net::TcpListener);

impl RealListener {
    /// Binds with `SO_REUSEPORT`, which lets shards share the address, and with `SO_REUSEADDR`, which glommio would not set:
    /// connections that a dead node leaves behind, in FIN-WAIT or TIME-WAIT, must not keep the next one from its port.
    pub(crate) fn bind(addr: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.bind(&addr.into())?;
        socket.listen(BACKLOG)?;
        Ok(Self(io_buffer::adopt_socket(socket.into())))
    }

    /// The address bound.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.local_addr()?)
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> io::Result<RealStream> {
        Ok(RealStream(self.0.accept().await?))
    }
}

/// A connection.
pub(crate) struct RealStream(glommio::net::TcpStream);

impl RealStream {
    /// Connects.
    pub(crate) async fn connect(addr: SocketAddr) -> io::Result<Self> {
        Ok(Self(glommio::net::TcpStream::connect(addr).await?))
    }

    /// `TCP_NODELAY`.
    pub(crate) fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        Ok(self.0.set_nodelay(nodelay)?)
    }

    /// The peer's address.
    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.peer_addr()?)
    }

    /// This side's address.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.local_addr()?)
    }

    /// Two handles on the socket.
    pub(crate) fn into_split(self) -> (RealReader, RealWriter) {
        let shared = Rc::new(RefCell::new(self.0));
        (RealReader(Rc::clone(&shared)), RealWriter(shared))
    }
}

/// The reading half.
pub(crate) struct RealReader(Rc<RefCell<glommio::net::TcpStream>>);

impl RealReader {
    /// Appends what arrives to the spare capacity of `buf`, which is not empty.
    pub(crate) async fn read(&mut self, buf: &mut BytesMut) -> io::Result<usize> {
        let limit = (buf.capacity() - buf.len()).min(FIRST_READ_BYTES);
        let count = poll_fn(|cx| {
            FIRST_READ.with_borrow_mut(|first| {
                let mut stream = self.0.borrow_mut();
                let count = ready!(Pin::new(&mut *stream).poll_read(cx, &mut first[..limit]))?;
                buf.extend_from_slice(&first[..count]);
                Poll::Ready(io::Result::Ok(count))
            })
        })
        .await?;
        if count < FIRST_READ_BYTES || buf.capacity() == buf.len() {
            return Ok(count);
        }
        let stream = self.0.borrow();
        match io_buffer::recv_available(io_buffer::borrow_fd(&*stream), buf) {
            Ok(more) => Ok(count + more),
            // Whatever it is, it comes back at the next read; these bytes are good.
            Err(_) => Ok(count),
        }
    }
}

/// The writing half.
pub(crate) struct RealWriter(Rc<RefCell<glommio::net::TcpStream>>);

impl RealWriter {
    /// Writes all chunks.
    pub(crate) async fn write_all(&mut self, chunks: Vec<Bytes>) -> io::Result<()> {
        let mut chunks: VecDeque<Bytes> = chunks.into();
        loop {
            while chunks.front().is_some_and(Bytes::is_empty) {
                chunks.pop_front();
            }
            let Some(front) = chunks.front() else { return Ok(()) };
            let written = match self.send(&chunks) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, front)).await?
                }
                other => other?,
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            advance(&mut chunks, written);
        }
    }

    /// One vectored write of what the socket's buffer takes.
    fn send(&self, chunks: &VecDeque<Bytes>) -> io::Result<usize> {
        let slices: Vec<IoSlice<'_>> =
            chunks.iter().take(SLICES_MAX).map(|chunk| IoSlice::new(chunk)).collect();
        let stream = self.0.borrow();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            let mut control = SendAncillaryBuffer::default();
            match sendmsg(io_buffer::borrow_fd(&*stream), &slices, &mut control, flags) {
                Err(Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    /// Closes the sending side.
    pub(crate) fn shutdown(&mut self) {
        // A peer that has gone needs no farewell.
        let _ = shutdown(io_buffer::borrow_fd(&*self.0.borrow()), Shutdown::Write);
    }
}

/// Drops the first `count` bytes.
fn advance(chunks: &mut VecDeque<Bytes>, mut count: usize) {
    while let Some(front) = chunks.front_mut() {
        if count < front.len() {
            front.advance(count);
            return;
        }
        count -= front.len();
        chunks.pop_front();
    }
}
