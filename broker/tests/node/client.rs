//! A Kafka client of few words, for tests: one connection, typed requests, or raw bytes.

use bytes::{Bytes, BytesMut};
use protocol::frame;
use protocol::messages::Request;
use protocol::wire::Decoder;
use runtime::net::{ReadHalf, TcpStream, WriteHalf};
use runtime::time;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

const CONNECT_RETRY: Duration = Duration::from_millis(20);

/// One connection.
pub(crate) struct Client {
    read: ReadHalf,
    write: WriteHalf,
    buffer: BytesMut,
    correlation_id: i32,
}

impl Client {
    /// Connects, trying again for as long as the node does not listen.
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        loop {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    let (read, write) = stream.into_split();
                    return Client { read, write, buffer: BytesMut::new(), correlation_id: 0 };
                }
                Err(_) => time::sleep(CONNECT_RETRY).await,
            }
        }
    }

    /// Sends a request and waits for its response.
    pub(crate) async fn call<R: Request>(&mut self, version: i16, request: &R) -> io::Result<R::Response> {
        self.send(version, request).await?;
        self.receive::<R>(version).await
    }

    /// Sends a request.
    pub(crate) async fn send<R: Request>(&mut self, version: i16, request: &R) -> io::Result<()> {
        self.correlation_id += 1;
        let id = "test".into();
        let frame = frame::encode_request(self.correlation_id, Some(&id), version, request).expect("encodes");
        self.write.write_all(frame).await
    }

    /// Receives the response to the request that is next in order.
    pub(crate) async fn receive<R: Request>(&mut self, version: i16) -> io::Result<R::Response> {
        use protocol::messages::Message;
        let mut body = Decoder::new(self.receive_frame().await?);
        frame::decode_response_header(&mut body, R::KEY, version).expect("a header");
        let response = R::Response::decode(&mut body, version).expect("a response");
        body.finish().expect("nothing behind the response");
        Ok(response)
    }

    /// Sends bytes as they are.
    pub(crate) async fn send_raw(&mut self, bytes: impl Into<Bytes>) -> io::Result<()> {
        self.write.write_all(vec![bytes.into()]).await
    }

    /// Receives a frame, without its length.
    pub(crate) async fn receive_frame(&mut self) -> io::Result<Bytes> {
        loop {
            if let Some(prefix) = self.buffer.first_chunk::<4>() {
                let len = usize::try_from(i32::from_be_bytes(*prefix)).expect("a length");
                if self.buffer.len() >= 4 + len {
                    let _ = self.buffer.split_to(4);
                    return Ok(self.buffer.split_to(len).freeze());
                }
            }
            self.buffer.reserve(64 * 1024);
            if self.read.read(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Whether the node closes the connection without a word.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.receive_frame().await.is_err()
    }
}
