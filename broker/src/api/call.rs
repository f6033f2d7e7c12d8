//! What an API's handler gets and gives back.
//!
//! Owns: the way from a frame to a typed request and from a typed response to the bytes of a frame.
//! Does not own: order on the connection, memory permits, deadlines (`net`).

use crate::net::{ConnectionInfo, Turn};
use crate::shard::Shard;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use protocol::ApiKey;
use protocol::frame::{self, RequestHeader};
use protocol::messages::{Message, Request};
use protocol::wire::Decoder;
use runtime::sync::Permit;
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

/// What is held until the response of a request is written: the memory that both are charged for, and its turn.
#[derive(Clone)]
pub struct Held(Rc<Cell<Vec<Hold>>>);

enum Hold {
    Memory { _permit: Permit },
    Turn { _turn: Turn },
}

impl Held {
    /// Starts with what the request itself is charged for.
    #[must_use]
    pub fn new(permits: Vec<Permit>) -> Held {
        Held(Rc::new(Cell::new(permits.into_iter().map(|permit| Hold::Memory { _permit: permit }).collect())))
    }

    /// Adds what the response is charged for.
    pub fn add(&self, permit: Permit) {
        self.hold(Hold::Memory { _permit: permit });
    }

    pub(crate) fn add_turn(&self, turn: Turn) {
        self.hold(Hold::Turn { _turn: turn });
    }

    fn hold(&self, hold: Hold) {
        let mut all = self.0.take();
        all.push(hold);
        self.0.set(all);
    }
}

/// One request on its way through a handler.
pub struct Call<R> {
    /// The shard whose connection it came on.
    pub shard: Rc<Shard>,
    /// That connection.
    pub connection: Rc<ConnectionInfo>,
    /// Memory charged for it.
    pub held: Held,
    /// The header of the request.
    pub header: RequestHeader,
    /// The request.
    pub request: R,
}

impl<R> Call<R> {
    /// The version that the client speaks.
    #[must_use]
    pub fn version(&self) -> i16 {
        self.header.api_version
    }
}

/// What goes back to the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply<R> {
    /// A response.
    Response(R),
    /// Nothing: the client expects none (Produce with acks=0).
    Nothing,
    /// The connection is closed without a response, where Kafka does so.
    Close,
}

impl<R> From<R> for Reply<R> {
    fn from(response: R) -> Reply<R> {
        Reply::Response(response)
    }
}

/// One Kafka API.
pub trait Api {
    /// The request; it names the response.
    type Request: Request + 'static;

    /// Serves one request. The body of this function runs in the order in which requests arrived on their connection; the
    /// future that it returns runs together with those of other requests. An `async fn` therefore promises no order.
    fn handle(
        call: Call<Self::Request>,
    ) -> impl Future<Output: Into<Reply<<Self::Request as Request>::Response>>> + 'static;
}

/// The bytes of a response frame, on their way.
pub(crate) type Answer = LocalBoxFuture<'static, Reply<Vec<Bytes>>>;

/// A request frame behind its header.
pub(crate) struct Frame {
    pub(crate) shard: Rc<Shard>,
    pub(crate) connection: Rc<ConnectionInfo>,
    pub(crate) held: Held,
    pub(crate) header: RequestHeader,
    pub(crate) body: Decoder,
}

/// Decodes, handles, encodes. A body that does not decode closes the connection, as in Kafka.
pub(crate) fn run<A: Api>(frame: Frame) -> Answer {
    let Frame { shard, connection, held, header, mut body } = frame;
    let version = header.api_version;
    let request = match A::Request::decode(&mut body, version) {
        Ok(request) => request,
        Err(error) => {
            let api = A::Request::KEY.name();
            shard.metrics.requests_malformed.add(1);
            tracing::debug!(%error, api, version, peer = %connection.peer, "closing a connection: malformed request");
            return futures::future::ready(Reply::Close).boxed_local();
        }
    };
    let correlation_id = header.correlation_id;
    let handled = A::handle(Call { shard, connection, held, header, request });
    async move {
        match handled.await.into() {
            Reply::Response(response) => encode(correlation_id, A::Request::KEY, version, &response),
            Reply::Nothing => Reply::Nothing,
            Reply::Close => Reply::Close,
        }
    }
    .boxed_local()
}

/// The frame of a response. One that does not encode is our mistake; the client must not wait for it for ever.
pub(crate) fn encode<M: Message>(
    correlation_id: i32,
    key: ApiKey,
    version: i16,
    response: &M,
) -> Reply<Vec<Bytes>> {
    match frame::encode_response(correlation_id, key, version, response) {
        Ok(chunks) => Reply::Response(chunks),
        Err(error) => {
            tracing::error!(%error, api = key.name(), version, "a response does not encode");
            Reply::Close
        }
    }
}
