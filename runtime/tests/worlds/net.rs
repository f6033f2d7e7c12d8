//! TCP.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use runtime::net::{ReadHalf, TcpListener, TcpStream, WriteHalf};
use runtime::{net, task, time};

crate::in_both_worlds!(
    bytes_arrive_in_order,
    a_full_socket_holds_the_writer_back,
    many_slices_go_through,
    a_closed_peer_is_seen,
    a_port_without_listener_refuses,
    a_taken_port_is_seen,
    connections_left_behind_do_not_hold_the_port,
    a_cancelled_read_loses_nothing,
);

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn pair() -> ((ReadHalf, WriteHalf), (ReadHalf, WriteHalf)) {
    let listener = TcpListener::bind(loopback()).unwrap();
    let addr = listener.local_addr().unwrap();
    let client = task::spawn(async move { TcpStream::connect(addr).await.unwrap() });
    let server = listener.accept().await.unwrap();
    let client = client.await.unwrap();
    client.set_nodelay(true).unwrap();
    assert_eq!(client.peer_addr().unwrap(), addr);
    assert_eq!(server.peer_addr().unwrap(), client.local_addr().unwrap());
    (client.into_split(), server.into_split())
}

async fn read_exactly(reader: &mut ReadHalf, len: usize) -> BytesMut {
    let mut bytes = BytesMut::new();
    while bytes.len() < len {
        let room = len - bytes.len();
        bytes.reserve(room);
        assert_ne!(reader.read(&mut bytes).await.unwrap(), 0, "the stream ended early");
    }
    bytes
}

/// Bytes that tell their own position.
fn stream_bytes(from: usize, len: usize) -> Bytes {
    (from..from + len).map(|position| (position % 251) as u8).collect()
}

async fn bytes_arrive_in_order(_: PathBuf) {
    let ((mut reader, mut writer), (mut other_reader, mut other_writer)) = pair().await;
    let echo = task::spawn(async move {
        let mut bytes = BytesMut::new();
        while other_reader.read(&mut bytes).await.unwrap() > 0 {
            other_writer.write_all(vec![bytes.split().freeze()]).await.unwrap();
        }
        other_writer.shutdown().await;
    });
    let mut position = 0;
    for len in [1, 10, 4095, 4096, 4097, 70_000] {
        writer.write_all(vec![stream_bytes(position, len)]).await.unwrap();
        let bytes = read_exactly(&mut reader, len).await;
        assert_eq!(bytes, stream_bytes(position, len));
        position += len;
    }
    writer.shutdown().await;
    assert_eq!(reader.read(&mut BytesMut::new()).await.unwrap(), 0);
    echo.await.unwrap();
}

async fn a_full_socket_holds_the_writer_back(_: PathBuf) {
    let ((_reader, mut writer), (mut other_reader, _other_writer)) = pair().await;
    let len = 24 << 20;
    let writing = task::spawn(async move {
        let chunks = vec![stream_bytes(0, len / 2), Bytes::new(), stream_bytes(len / 2, len / 2)];
        writer.write_all(chunks).await.unwrap();
        time::now()
    });
    time::sleep(Duration::from_millis(50)).await;
    let read_from = time::now();
    let bytes = read_exactly(&mut other_reader, len).await;
    assert!(bytes == stream_bytes(0, len));
    assert!(writing.await.unwrap() >= read_from, "the writer had to wait for the reader");
}

async fn many_slices_go_through(_: PathBuf) {
    let ((_reader, mut writer), (mut other_reader, _other_writer)) = pair().await;
    let chunks: Vec<Bytes> = (0..5000).map(|index| stream_bytes(index * 3, 3)).collect();
    writer.write_all(chunks).await.unwrap();
    writer.write_all(vec![Bytes::new()]).await.unwrap();
    writer.write_all(Vec::new()).await.unwrap();
    assert_eq!(read_exactly(&mut other_reader, 15_000).await, stream_bytes(0, 15_000));
}

async fn a_closed_peer_is_seen(_: PathBuf) {
    let ((mut reader, mut writer), other) = pair().await;
    drop(other);
    let mut bytes = BytesMut::new();
    assert_eq!(reader.read(&mut bytes).await.unwrap_or(0), 0);
    let broken = loop {
        if let Err(error) = writer.write_all(vec![stream_bytes(0, 10)]).await {
            break error;
        }
        time::sleep(Duration::from_millis(1)).await;
    };
    assert!(matches!(broken.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{broken}");
}

async fn a_port_without_listener_refuses(_: PathBuf) {
    let addr = {
        let listener = TcpListener::bind(loopback()).unwrap();
        listener.local_addr().unwrap()
    };
    let refused = TcpStream::connect(addr).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

async fn a_taken_port_is_seen(_: PathBuf) {
    let free = net::probe(loopback()).unwrap();
    assert_ne!(free.port(), 0);
    let listener = TcpListener::bind(free).unwrap();
    let beside = TcpListener::bind(free).unwrap();
    assert_eq!(beside.local_addr().unwrap(), free, "shards share a port");
    assert_eq!(net::probe(free).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop((listener, beside));
    assert_eq!(net::probe(free).unwrap(), free);
}

/// The side that closes first keeps its half of the connection for as long as the other stays open, and a while beyond.
async fn connections_left_behind_do_not_hold_the_port(_: PathBuf) {
    let listener = TcpListener::bind(loopback()).unwrap();
    let addr = listener.local_addr().unwrap();
    let client = task::spawn(async move { TcpStream::connect(addr).await.unwrap() });
    let server = listener.accept().await.unwrap();
    let client = client.await.unwrap();
    drop((server, listener));
    assert_eq!(net::probe(addr).unwrap(), addr);
    TcpListener::bind(addr).unwrap();
    drop(client);
    assert_eq!(net::probe(addr).unwrap(), addr);
}

async fn a_cancelled_read_loses_nothing(_: PathBuf) {
    let ((_reader, mut writer), (mut other_reader, _other_writer)) = pair().await;
    let mut bytes = BytesMut::new();
    let waiting = time::timeout(Duration::from_millis(5), other_reader.read(&mut bytes)).await;
    assert!(waiting.is_err() && bytes.is_empty());
    writer.write_all(vec![stream_bytes(0, 100)]).await.unwrap();
    while bytes.len() < 100 {
        other_reader.read(&mut bytes).await.unwrap();
    }
    assert_eq!(bytes, stream_bytes(0, 100));
}
