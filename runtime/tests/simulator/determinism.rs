//! The same seed gives the same run.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use runtime::disk::{self, AlignedBuf, BLOCK_BYTES, File, OpenMode};
use runtime::mailbox::ReplySender;
use runtime::net::{TcpListener, TcpStream};
use runtime::shard::Seed;
use runtime::sim::{Fault, Host, NodeId, Sim, SimConfig};
use runtime::{mailbox, random, task, time};

const NODES: u16 = 2;
const PORT: u16 = 9092;

struct Store(Bytes, ReplySender<bool>);

/// A node that sends what its clients write to a random shard, which stores it durably and answers.
async fn node(seed: Seed<Store>) {
    let Seed { id, count, peers, mut inbox } = seed;
    let dir = std::path::PathBuf::from(format!("/shard-{id}"));
    disk::create_dir_all(&dir).await.unwrap();
    disk::sync_dir("/".as_ref()).await.unwrap();
    let file = File::open(&dir.join("log"), OpenMode::Create).await.unwrap();
    disk::sync_dir(&dir).await.unwrap();
    task::spawn(async move {
        let mut position = file.len().await.unwrap().next_multiple_of(BLOCK_BYTES as u64);
        while let Some(Store(bytes, reply)) = inbox.recv().await {
            let mut buf = AlignedBuf::zeroed(BLOCK_BYTES);
            buf[..bytes.len()].copy_from_slice(&bytes);
            let stored = file.write_at(position, buf).await.is_ok() && file.sync_data().await.is_ok();
            position += BLOCK_BYTES as u64;
            reply.send(stored);
        }
    });
    let listener = TcpListener::bind(([0, 0, 0, 0], PORT).into()).unwrap();
    loop {
        let (mut reader, mut writer) = listener.accept().await.unwrap().into_split();
        let peers = peers.clone();
        task::spawn(async move {
            let mut bytes = BytesMut::with_capacity(1000);
            while reader.read(&mut bytes).await.unwrap_or(0) > 0 {
                let (reply, answer) = mailbox::reply();
                let target = random::below(u64::from(count)) as usize;
                peers[target].send(Store(bytes.split().freeze(), reply)).unwrap();
                let answer = if answer.await == Some(true) { "y" } else { "n" };
                if writer.write_all(vec![Bytes::from_static(answer.as_bytes())]).await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn client(number: u16) {
    for _ in 0..30 {
        let addr = SocketAddr::new(NodeId(number % NODES).ip(), PORT);
        let talk = async {
            let (mut reader, mut writer) = TcpStream::connect(addr).await?.into_split();
            for _ in 0..5 {
                writer.write_all(vec![vec![number as u8; 1 + random::below(900) as usize].into()]).await?;
                reader.read(&mut BytesMut::with_capacity(1)).await?;
            }
            std::io::Result::Ok(())
        };
        let _ = time::timeout(Duration::from_secs(2), talk).await;
        time::sleep(Duration::from_millis(random::below(50))).await;
    }
}

/// One run full of faults; its trace, its steps in time, its disks.
fn run(seed: u64) -> (u64, time::Instant, Vec<Option<Bytes>>) {
    let config = SimConfig { early_timeout_permille: 10, ..SimConfig::default() };
    let sim = Sim::new(seed, config);
    for number in 0..NODES {
        sim.start_node(NodeId(number), 2, node);
    }
    for number in 0..6 {
        sim.spawn_client(client(number));
    }
    let handle = sim.handle();
    sim.spawn_client(async move {
        for _ in 0..6 {
            time::sleep(Duration::from_millis(100 + random::below(300))).await;
            let victim = NodeId(random::below(u64::from(NODES)) as u16);
            match random::below(4) {
                0 => handle.crash(victim),
                1 => handle.kill(victim),
                2 => handle.disk(victim).inject(Fault::SyncError, "/shard-0/log"),
                _ => handle.net().partition(Host::Node(victim), Host::Clients),
            }
            time::sleep(Duration::from_millis(random::below(500))).await;
            handle.net().heal();
            if !handle.is_running(victim) {
                handle.restart(victim);
            }
        }
    });
    sim.run_for(Duration::from_secs(20));
    let contents = (0..NODES).flat_map(|number| {
        let disk = sim.disk(NodeId(number));
        ["/shard-0/log", "/shard-1/log"].map(|path| disk.contents(path))
    });
    let contents = contents.collect();
    (sim.trace_hash(), sim.now(), contents)
}

#[test]
fn a_seed_is_one_run() {
    let mut traces = BTreeSet::new();
    for seed in 0..25 {
        let first = run(seed);
        assert!(first == run(seed), "seed {seed} ran in two ways");
        traces.insert(first.0);
    }
    assert_eq!(traces.len(), 25, "seeds differ");
}
