//! A connection as a client has it: opened when needed, given up at the first sign of trouble.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use protocol::frame;
use protocol::messages::{Message, Request};
use protocol::wire::Decoder;
use runtime::net::{ReadHalf, TcpStream, WriteHalf};
use runtime::time;

use crate::world::World;

/// How long a client waits for anything.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Connects when it has to.
pub(crate) struct Link {
    world: Rc<World>,
    open: Option<Open>,
    correlation_id: i32,
}

struct Open {
    read: ReadHalf,
    write: WriteHalf,
    buffer: BytesMut,
}

impl Link {
    pub(crate) fn new(world: &Rc<World>) -> Link {
        Link { world: Rc::clone(world), open: None, correlation_id: 0 }
    }

    /// Whether requests that were sent may still be answered.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Gives the connection up: what was sent on it has an unknown fate.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    /// Sends a request and waits for its answer. After an error the connection is gone.
    pub(crate) async fn call<R: Request>(&mut self, version: i16, request: &R) -> io::Result<R::Response> {
        self.send(version, request).await?;
        self.receive::<R>(version).await
    }

    /// Sends a request.
    pub(crate) async fn send<R: Request>(&mut self, version: i16, request: &R) -> io::Result<()> {
        self.correlation_id += 1;
        let id = "sim".into();
        let frame = frame::encode_request(self.correlation_id, Some(&id), version, request)
            .expect("a request that this client makes encodes");
        let sent = async {
            if self.open.is_none() {
                let stream = TcpStream::connect(self.world.address()).await?;
                let (read, write) = stream.into_split();
                self.open = Some(Open { read, write, buffer: BytesMut::new() });
            }
            let open = self.open.as_mut().expect("just opened");
            open.write.write_all(frame).await
        };
        let sent = time::timeout(PATIENCE, sent).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()));
        sent.inspect_err(|_| self.open = None)
    }

    /// Receives the answer to the request that is next in order.
    pub(crate) async fn receive<R: Request>(&mut self, version: i16) -> io::Result<R::Response> {
        let Some(open) = self.open.as_mut() else { return Err(io::ErrorKind::NotConnected.into()) };
        let received = time::timeout(PATIENCE, open.receive()).await;
        let received = received.unwrap_or(Err(io::ErrorKind::TimedOut.into()));
        let frame = received.inspect_err(|_| self.open = None)?;
        let mut body = Decoder::new(frame);
        frame::decode_response_header(&mut body, R::KEY, version).expect("the node's responses have headers");
        let response = R::Response::decode(&mut body, version).expect("the node's responses decode");
        body.finish().expect("nothing follows a response");
        Ok(response)
    }
}

impl Open {
    async fn receive(&mut self) -> io::Result<bytes::Bytes> {
        loop {
            if let Some(prefix) = self.buffer.first_chunk::<4>() {
                let len = usize::try_from(i32::from_be_bytes(*prefix)).expect("lengths are positive");
                if self.buffer.len() >= 4 + len {
                    let _ = self.buffer.split_to(4);
                    return Ok(self.buffer.split_to(len).freeze());
                }
            }
            self.buffer.reserve(64 << 10);
            if self.read.read(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
