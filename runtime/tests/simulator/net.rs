//! The network: deaths, silence, partitions, splits.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use runtime::net::{ReadHalf, TcpListener, TcpStream, WriteHalf};
use runtime::shard::Seed;
use runtime::sim::{Host, NodeId, Sim, SimConfig};
use runtime::{task, time};

const NODE: NodeId = NodeId(3);
const PORT: u16 = 9092;
const LIMIT: Duration = Duration::from_secs(600);
const SECOND: Duration = Duration::from_secs(1);

fn addr() -> SocketAddr {
    SocketAddr::new(NODE.ip(), PORT)
}

/// A node of two shards that echo on one shared port.
fn echo_node(seed: u64) -> Sim {
    let sim = Sim::new(seed, SimConfig::default());
    sim.start_node(NODE, 2, |_: Seed<()>| async {
        let listener = TcpListener::bind(([0, 0, 0, 0], PORT).into()).unwrap();
        loop {
            let stream = listener.accept().await.unwrap();
            assert_eq!(stream.peer_addr().unwrap().ip(), Host::Clients.ip());
            let (mut reader, mut writer) = stream.into_split();
            task::spawn(async move {
                let mut bytes = BytesMut::new();
                while reader.read(&mut bytes).await.unwrap_or(0) > 0 {
                    if writer.write_all(vec![bytes.split().freeze()]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    sim.run_for(SECOND);
    sim
}

async fn connect() -> (ReadHalf, WriteHalf) {
    TcpStream::connect(addr()).await.unwrap().into_split()
}

async fn echo((reader, writer): &mut (ReadHalf, WriteHalf), len: usize) -> std::io::Result<()> {
    let sent: Bytes = (0..len).map(|index| (index % 251) as u8).collect();
    writer.write_all(vec![sent.clone()]).await?;
    let mut bytes = BytesMut::new();
    while bytes.len() < len {
        bytes.reserve(len);
        if reader.read(&mut bytes).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    assert_eq!(bytes, sent);
    Ok(())
}

#[test]
fn both_shards_serve_one_port() {
    for seed in 0..20 {
        let sim = echo_node(seed);
        let done = sim.block_on(LIMIT, async {
            for len in [1, 100, 10_000, 300_000] {
                echo(&mut connect().await, len).await.unwrap();
            }
        });
        assert!(done.is_some());
    }
}

#[test]
fn a_kill_resets_and_a_restart_serves_again() {
    for seed in 0..20 {
        let sim = echo_node(seed);
        let handle = sim.handle();
        let done = sim.block_on(LIMIT, async move {
            let mut connection = connect().await;
            echo(&mut connection, 10).await.unwrap();
            handle.kill(NODE);
            assert!(echo(&mut connection, 10).await.is_err());
            let refused = TcpStream::connect(addr()).await.err().unwrap();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            handle.restart(NODE);
            time::sleep(SECOND).await;
            echo(&mut connect().await, 10).await.unwrap();
        });
        assert!(done.is_some());
    }
}

#[test]
fn a_power_cut_resets_or_leaves_the_peer_in_silence() {
    let (mut reset, mut silent) = (0, 0);
    for seed in 0..40 {
        let sim = echo_node(seed);
        let handle = sim.handle();
        let was_silent = sim.block_on(LIMIT, async move {
            let (mut reader, mut writer) = connect().await;
            handle.crash(NODE);
            let mut bytes = BytesMut::new();
            let heard = time::timeout(60 * SECOND, reader.read(&mut bytes)).await;
            let silent = heard.is_err();
            if silent {
                // Nobody acknowledges what is written now: the writer's own patience ends the stream.
                writer.write_all(vec![Bytes::from_static(b"anyone?")]).await.unwrap();
                let start = time::now();
                assert_eq!(reader.read(&mut bytes).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
                assert!(start.elapsed() > 10 * SECOND);
            } else {
                assert_eq!(heard.unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
            }
            let unreachable = TcpStream::connect(addr()).await.err().unwrap();
            assert_eq!(unreachable.kind(), ErrorKind::TimedOut);
            silent
        });
        if was_silent.unwrap() { silent += 1 } else { reset += 1 }
    }
    assert!(reset > 0 && silent > 0, "{reset} reset, {silent} silent");
}

#[test]
fn a_host_that_is_back_resets_old_streams() {
    for seed in 0..20 {
        let sim = echo_node(seed);
        let handle = sim.handle();
        let done = sim.block_on(LIMIT, async move {
            let (mut reader, mut writer) = connect().await;
            handle.crash(NODE);
            handle.restart(NODE);
            time::sleep(SECOND).await;
            let start = time::now();
            let _ = writer.write_all(vec![Bytes::from_static(b"hello")]).await;
            assert!(reader.read(&mut BytesMut::new()).await.is_err());
            assert!(start.elapsed() < SECOND);
        });
        assert!(done.is_some());
    }
}

#[test]
fn a_partition_delays_and_loses_nothing() {
    for seed in 0..20 {
        let sim = echo_node(seed);
        let handle = sim.handle();
        let done = sim.block_on(LIMIT, async move {
            let mut connection = connect().await;
            let node = Host::Node(NODE);
            if seed % 2 == 0 {
                handle.net().partition(node, Host::Clients);
            } else {
                handle.net().block(node, Host::Clients);
            }
            let start = time::now();
            let healing = handle.clone();
            let healer = task::spawn(async move {
                time::sleep(5 * SECOND).await;
                healing.net().heal();
            });
            echo(&mut connection, 1000).await.unwrap();
            assert!(start.elapsed() >= 5 * SECOND);
            healer.await.unwrap();
            handle.net().partition(node, Host::Clients);
            let cut_off = TcpStream::connect(addr()).await.err().unwrap();
            assert_eq!(cut_off.kind(), ErrorKind::TimedOut);
            handle.net().heal();
            handle.net().reset(node, Host::Clients);
            assert!(echo(&mut connection, 10).await.is_err());
        });
        assert!(done.is_some());
    }
}

#[test]
fn nodes_have_addresses_of_their_own() {
    let sim = echo_node(1);
    let done = sim.block_on(LIMIT, async {
        let foreign = TcpListener::bind(addr()).err().unwrap();
        assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
        let loopback = TcpStream::connect(([127, 0, 0, 1], PORT).into()).await.err().unwrap();
        assert_eq!(loopback.kind(), ErrorKind::ConnectionRefused, "loopback is the client's own host");
    });
    assert!(done.is_some());
}
