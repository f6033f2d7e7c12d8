//! One connection to a broker: requests out, answers in, in the order they were sent. Owns the frame and the
//! correlation ids; who waits for which answer is the caller's business.
//!
//! 1. The broker answers in order: an answer with another correlation id than the next one ends the connection.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use protocol::Str;
use protocol::frame;
use protocol::messages::{Message, Request};
use protocol::wire::Decoder;
use runtime::net::{ReadHalf, TcpStream, WriteHalf};
use runtime::time;

use crate::error::BenchError;

/// How the generator names itself to the broker.
static CLIENT_ID: Str = Str::from_static("millrace-bench");

/// Largest answer that is read.
const FRAME_BYTES_MAX: usize = 1 << 30;

/// Free space that a read is given at least.
const READ_BYTES: usize = 64 << 10;

/// How long an answer outside the load may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The sending side.
pub(crate) struct Requester {
    write: WriteHalf,
    correlation_id: i32,
}

/// The receiving side.
pub(crate) struct Responder {
    read: ReadHalf,
    buffer: BytesMut,
    correlation_id: i32,
}

/// Both sides, for questions that are asked one at a time.
pub(crate) struct Connection {
    pub(crate) requester: Requester,
    pub(crate) responder: Responder,
}

/// The first address of `HOST:PORT`.
pub(crate) fn resolve(address: &str) -> Result<SocketAddr, BenchError> {
    let lost = |source| BenchError::Connect { address: address.to_owned(), source };
    let found = address.to_socket_addrs().map_err(lost)?.next();
    found.ok_or_else(|| lost(io::Error::new(io::ErrorKind::NotFound, "no address of that name")))
}

impl Connection {
    /// Connects, without Nagle's delay.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, BenchError> {
        let lost = |source| BenchError::Connect { address: address.to_string(), source };
        let stream = TcpStream::connect(address).await.map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        let (read, write) = stream.into_split();
        Ok(Connection {
            requester: Requester { write, correlation_id: 0 },
            responder: Responder { read, buffer: BytesMut::with_capacity(READ_BYTES), correlation_id: 0 },
        })
    }

    /// Asks and waits for the answer.
    pub(crate) async fn call<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<R::Response, BenchError> {
        let answer = async {
            self.requester.send(request, version).await?;
            self.responder.receive::<R>(version).await
        };
        match time::timeout(ANSWER_TIMEOUT, answer).await {
            Ok(answer) => answer,
            Err(time::Elapsed) => Err(BenchError::Lost(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl Requester {
    /// Sends one request; returns when the socket has taken it.
    pub(crate) async fn send<R: Request>(&mut self, request: &R, version: i16) -> Result<(), BenchError> {
        let frame = frame::encode_request(self.correlation_id, Some(&CLIENT_ID), version, request);
        let frame =
            frame.map_err(|error| BenchError::Unsendable { request: R::NAME, reason: error.to_string() })?;
        self.correlation_id = self.correlation_id.wrapping_add(1);
        self.write.write_all(frame).await?;
        Ok(())
    }
}

impl Responder {
    /// The answer to the next request that was sent, which was an `R` of `version`.
    pub(crate) async fn receive<R: Request>(&mut self, version: i16) -> Result<R::Response, BenchError> {
        let frame = self.frame::<R>().await?;
        let malformed = |error: &dyn std::fmt::Display| BenchError::Malformed {
            request: R::NAME,
            reason: error.to_string(),
        };
        let mut decoder = Decoder::new(frame);
        let correlation_id = frame::decode_response_header(&mut decoder, R::KEY, version)
            .map_err(|error| malformed(&error))?;
        let expected = self.correlation_id;
        self.correlation_id = expected.wrapping_add(1);
        if correlation_id != expected {
            return Err(malformed(&format!("correlation id {correlation_id}, expected {expected}")));
        }
        R::Response::decode(&mut decoder, version).map_err(|error| malformed(&error))
    }

    /// One frame without its length.
    async fn frame<R: Request>(&mut self) -> Result<Bytes, BenchError> {
        self.fill(4).await?;
        let len = usize::try_from(self.buffer.get_i32()).unwrap_or(usize::MAX);
        if len > FRAME_BYTES_MAX {
            return Err(BenchError::Malformed {
                request: R::NAME,
                reason: format!("a frame of {len} bytes"),
            });
        }
        self.fill(len).await?;
        Ok(self.buffer.split_to(len).freeze())
    }

    /// Reads until `len` bytes are there.
    async fn fill(&mut self, len: usize) -> Result<(), BenchError> {
        while self.buffer.len() < len {
            self.buffer.reserve((len - self.buffer.len()).max(READ_BYTES));
            if self.read.read(&mut self.buffer).await? == 0 {
                return Err(BenchError::Lost(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Ok(())
    }
}
