//! The crate's only unsafe code: receiving into memory that nobody has zeroed, and passing descriptors to and from glommio.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

use bytes::{BufMut, BytesMut};
use rustix::net::{RecvFlags, recv};

/// Borrows the descriptor of a glommio object, which offers only its number.
pub(crate) fn borrow_fd(owner: &impl AsRawFd) -> BorrowedFd<'_> {
    // SAFETY: glommio's files and streams keep their descriptor open for as long as they live, and the borrow cannot
    // outlive `owner`.
    unsafe { BorrowedFd::borrow_raw(owner.as_raw_fd()) }
}

/// Lets glommio have a stream socket of any family: a connected one as its stream, a listening one as its listener.
pub(crate) fn adopt_socket<S: FromRawFd>(socket: OwnedFd) -> S {
    // SAFETY: the descriptor is open and owned by nobody else from here on.
    unsafe { S::from_raw_fd(socket.into_raw_fd()) }
}

/// Receives what has already arrived into the spare capacity of `buf`, without waiting.
///
/// Returns the number of bytes, zero at the end of the stream or when there is no spare capacity.
///
/// # Errors
/// `WouldBlock` when nothing has arrived, else the socket's error.
pub(crate) fn recv_available(socket: BorrowedFd<'_>, buf: &mut BytesMut) -> io::Result<usize> {
    let ((filled, _), _) = recv(socket, buf.spare_capacity_mut(), RecvFlags::DONTWAIT)?;
    let count = filled.len();
    // SAFETY: `recv` has initialised the first `count` bytes of the spare capacity.
    unsafe { buf.advance_mut(count) };
    Ok(count)
}
