//! The disk: what a power cut keeps, and every fault.

use std::collections::BTreeSet;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use runtime::disk::{self, AlignedBuf, BLOCK_BYTES, File, OpenMode};
use runtime::shard::Seed;
use runtime::sim::{Fault, NodeId, Sim, SimConfig};
use runtime::{task, time};

const NODE: NodeId = NodeId(0);
const LIMIT: Duration = Duration::from_secs(600);
const SEEDS: u64 = 200;

fn path() -> &'static Path {
    Path::new("/data/file")
}

fn filled(byte: u8, blocks: usize) -> AlignedBuf {
    let mut buf = AlignedBuf::zeroed(blocks * BLOCK_BYTES);
    buf.fill(byte);
    buf
}

/// Runs `main` on a node, which idles then.
fn run<Fut: Future<Output = ()> + 'static>(seed: u64, main: fn() -> Fut) -> Sim {
    let sim = Sim::new(seed, SimConfig::default());
    sim.start_node(NODE, 1, move |_: Seed<()>| async move {
        main().await;
        std::future::pending::<()>().await;
    });
    sim.run_for(LIMIT);
    sim
}

/// A durable file of `blocks` blocks of `byte`.
async fn durable_file(byte: u8, blocks: usize) -> File {
    disk::create_dir_all("/data".as_ref()).await.unwrap();
    disk::sync_dir("/".as_ref()).await.unwrap();
    let file = File::open(path(), OpenMode::Create).await.unwrap();
    file.write_at(0, filled(byte, blocks)).await.unwrap();
    file.sync_data().await.unwrap();
    disk::sync_dir("/data".as_ref()).await.unwrap();
    file
}

#[test]
fn what_is_synced_survives() {
    for seed in 0..SEEDS {
        let sim = run(seed, || async {
            durable_file(7, 3).await;
        });
        sim.crash(NODE);
        let bytes = sim.disk(NODE).contents(path()).expect("the file is there");
        assert_eq!(bytes, vec![7; 3 * BLOCK_BYTES], "seed {seed}");
    }
}

#[test]
fn what_was_not_synced_is_kept_lost_torn_or_garbled() {
    let (mut kept, mut lost, mut torn, mut garbled) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let sim = run(seed, || async {
            let file = durable_file(1, 4).await;
            file.write_at(0, filled(2, 4)).await.unwrap();
        });
        let before = sim.disk(NODE).contents(path()).unwrap();
        assert!(before.iter().all(|byte| *byte == 2), "a write is seen at once");
        sim.crash(NODE);
        let bytes = sim.disk(NODE).contents(path()).unwrap();
        assert_eq!(bytes.len(), 4 * BLOCK_BYTES);
        let values: BTreeSet<u8> = bytes.iter().copied().collect();
        match values.iter().copied().collect::<Vec<u8>>().as_slice() {
            [1] => lost += 1,
            [2] => kept += 1,
            [1, 2] => {
                torn += 1;
                let sectors_whole =
                    bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0]));
                assert!(sectors_whole, "seed {seed}: a sector is never torn");
            }
            _ => garbled += 1,
        }
    }
    for count in [kept, lost, torn, garbled] {
        assert!(count > 0, "{kept} kept, {lost} lost, {torn} torn, {garbled} garbled");
    }
}

#[test]
fn writes_persist_in_any_order() {
    let outcomes: BTreeSet<(bool, bool)> = (0..SEEDS)
        .map(|seed| {
            let sim = run(seed, || async {
                let file = durable_file(0, 2).await;
                file.write_at(0, filled(1, 1)).await.unwrap();
                file.write_at(BLOCK_BYTES as u64, filled(2, 1)).await.unwrap();
            });
            sim.crash(NODE);
            let bytes = sim.disk(NODE).contents(path()).unwrap();
            (bytes[0] == 1, bytes[BLOCK_BYTES] == 2)
        })
        .collect();
    assert_eq!(outcomes.len(), 4, "first, second, both, none: {outcomes:?}");
}

#[test]
fn a_rewritten_block_never_goes_back_behind_what_was_synced() {
    for seed in 0..SEEDS {
        let sim = run(seed, || async {
            let file = durable_file(1, 1).await;
            file.write_at(0, filled(2, 1)).await.unwrap();
            file.sync_data().await.unwrap();
            file.write_at(0, filled(3, 1)).await.unwrap();
        });
        sim.crash(NODE);
        let bytes = sim.disk(NODE).contents(path()).unwrap();
        assert!(!bytes.contains(&1) || bytes.iter().any(|byte| *byte > 3), "seed {seed}");
    }
}

#[test]
fn a_sync_covers_only_writes_that_had_returned() {
    let lost = (0..SEEDS).filter(|seed| {
        let sim = run(*seed, || async {
            let file = durable_file(1, 2).await;
            let other = file.clone();
            let writing = task::spawn(async move { other.write_at(0, filled(2, 1)).await });
            task::yield_now().await;
            file.sync_data().await.unwrap();
            writing.await.unwrap().unwrap();
        });
        sim.crash(NODE);
        sim.disk(NODE).contents(path()).unwrap()[0] == 1
    });
    assert!(lost.count() > 0, "a write in flight is not covered");
}

#[test]
#[should_panic(expected = "two writes of the same block are in flight")]
fn overlapping_writes_in_flight_are_a_bug() {
    run(1, || async {
        let file = durable_file(1, 1).await;
        let other = file.clone();
        let writing = task::spawn(async move { other.write_at(0, filled(2, 1)).await });
        task::yield_now().await;
        file.write_at(0, filled(3, 1)).await.unwrap();
        writing.await.unwrap().unwrap();
    });
}

#[test]
fn names_and_lengths_are_durable_only_when_synced() {
    let (mut named, mut unnamed) = (0, 0);
    for seed in 0..SEEDS {
        let sim = run(seed, || async {
            let file = durable_file(1, 2).await;
            file.set_len(100).await.unwrap();
            disk::rename(path(), "/data/other".as_ref()).await.unwrap();
        });
        sim.crash(NODE);
        let disk = sim.disk(NODE);
        let old = disk.contents(path());
        let new = disk.contents("/data/other");
        assert!(old.is_some() != new.is_some(), "seed {seed}: a rename is atomic");
        named += u32::from(new.is_some());
        unnamed += u32::from(old.is_some());
        let bytes = old.or(new).unwrap();
        assert!(bytes.len() == 100 || bytes.len() == 2 * BLOCK_BYTES, "seed {seed}: {}", bytes.len());
    }
    assert!(named > 0 && unnamed > 0);
}

#[test]
fn a_file_in_a_directory_that_was_not_synced_may_vanish() {
    let vanished = (0..SEEDS).filter(|seed| {
        let sim = run(*seed, || async {
            disk::create_dir_all("/new".as_ref()).await.unwrap();
            let file = File::open("/new/file".as_ref(), OpenMode::Create).await.unwrap();
            file.write_at(0, filled(1, 1)).await.unwrap();
            file.sync_data().await.unwrap();
            disk::sync_dir("/new".as_ref()).await.unwrap();
        });
        sim.crash(NODE);
        sim.disk(NODE).files().is_empty()
    });
    assert!(vanished.count() > 0, "nobody synced the root");
}

#[test]
fn a_kill_loses_nothing_that_was_written() {
    for seed in 0..SEEDS {
        let sim = run(seed, || async {
            let file = durable_file(1, 1).await;
            file.write_at(0, filled(2, 1)).await.unwrap();
        });
        sim.kill(NODE);
        assert_eq!(sim.disk(NODE).contents(path()).unwrap()[0], 2);
    }
}

#[test]
fn an_atomic_replacement_leaves_the_old_or_the_new() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..SEEDS {
        let sim = Sim::new(seed, SimConfig::default());
        sim.start_node(NODE, 1, |_: Seed<()>| async {
            disk::create_dir_all("/data".as_ref()).await.unwrap();
            disk::sync_dir("/".as_ref()).await.unwrap();
            disk::write_file_atomic(path(), &[1; 5000]).await.unwrap();
            disk::write_file_atomic("/data/ready".as_ref(), b"").await.unwrap();
            disk::write_file_atomic(path(), &[2; 6000]).await.unwrap();
            std::future::pending::<()>().await;
        });
        let disk = {
            sim.run_until(LIMIT, || sim.disk(NODE).files().iter().any(|file| file.ends_with("ready")));
            sim.disk(NODE)
        };
        sim.run_for(Duration::from_micros(seed * 40));
        sim.crash(NODE);
        let bytes = disk.contents(path()).unwrap();
        if bytes == vec![1; 5000] {
            old += 1;
        } else {
            assert_eq!(bytes, vec![2; 6000], "seed {seed}");
            new += 1;
        }
    }
    assert!(old > 0 && new > 0, "{old} old, {new} new");
}

#[test]
fn a_failed_sync_loses_its_writes_though_the_next_succeeds() {
    for seed in 0..SEEDS {
        let sim = Sim::new(seed, SimConfig::default());
        let handle = sim.handle();
        sim.start_node(NODE, 1, |_: Seed<()>| async {
            let file = durable_file(1, 1).await;
            time::sleep(Duration::from_secs(1)).await;
            file.write_at(0, filled(2, 1)).await.unwrap();
            assert!(file.sync_data().await.is_err());
            assert_eq!(file.read_at(0, 1).await.unwrap()[0], 2, "the page still shows the write");
            file.sync_data().await.unwrap();
            std::future::pending::<()>().await;
        });
        sim.run_until(Duration::from_millis(500), || false);
        handle.disk(NODE).fail_next_sync();
        sim.run_for(LIMIT);
        sim.crash(NODE);
        assert_eq!(sim.disk(NODE).contents(path()).unwrap()[0], 1, "seed {seed}");
    }
}

#[test]
fn dsync_writes_are_durable_when_they_return() {
    for seed in 0..SEEDS {
        let sim = run(seed, || async {
            durable_file(1, 4).await;
            let file = File::open_dsync(path(), OpenMode::Write).await.unwrap();
            file.write_at(0, filled(2, 1)).await.unwrap();
            file.write_at(8 * BLOCK_BYTES as u64, filled(3, 1)).await.unwrap();
        });
        sim.crash(NODE);
        let bytes = sim.disk(NODE).contents(path()).unwrap();
        assert_eq!((bytes.len(), bytes[0], bytes[8 * BLOCK_BYTES]), (9 * BLOCK_BYTES, 2, 3));
    }
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let sim = Sim::new(1, SimConfig::default());
    let handle = sim.handle();
    let done = sim.block_on(LIMIT, async move {
        handle.start_node(NODE, 1, |_: Seed<()>| async {
            let file = durable_file(1, 4).await;
            time::sleep(Duration::from_secs(1)).await;
            let error = file.write_at(4 * BLOCK_BYTES as u64, filled(2, 8)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            file.write_at(0, filled(3, 4)).await.unwrap();
            let other = File::open("/data/other".as_ref(), OpenMode::Create).await.unwrap();
            assert!(other.allocate_zeroed(1 << 20).await.is_err());
            assert!(disk::free_space("/data".as_ref()).await.unwrap() < 8 * BLOCK_BYTES as u64);
            time::sleep(Duration::from_secs(2)).await;
            file.write_at(4 * BLOCK_BYTES as u64, filled(2, 8)).await.unwrap();
            std::future::pending::<()>().await;
        });
        time::sleep(Duration::from_millis(500)).await;
        handle.disk(NODE).set_capacity(6 * BLOCK_BYTES as u64);
        time::sleep(Duration::from_secs(1)).await;
        handle.disk(NODE).set_capacity(1 << 20);
        time::sleep(Duration::from_secs(2)).await;
        assert_eq!(handle.disk(NODE).used_bytes(), 12 * BLOCK_BYTES as u64);
    });
    assert!(done.is_some());
}

/// Injects `fault` once a durable file of 32 blocks of 1 is there; then block 16 is written with 2 and all is read back.
/// Returns whether the write succeeded, and what was read.
fn with_fault(seed: u64, fault: Fault) -> (bool, io::Result<Bytes>) {
    let sim = Sim::new(seed, SimConfig::default());
    let (sender, outcome) = mpsc::channel();
    sim.start_node(NODE, 1, move |_: Seed<()>| {
        let sender = sender.clone();
        async move {
            let file = durable_file(1, 32).await;
            time::sleep(Duration::from_secs(1)).await;
            let written = file.write_at(16 * BLOCK_BYTES as u64, filled(2, 1)).await.is_ok();
            sender.send((written, file.read_at(0, 32 * BLOCK_BYTES).await)).unwrap();
        }
    });
    sim.run_for(Duration::from_millis(500));
    sim.disk(NODE).inject(fault, "/data");
    sim.run_for(LIMIT);
    outcome.try_recv().expect("the node has ended")
}

#[test]
fn each_fault_strikes_once_and_as_named() {
    let expected_position = 16 * BLOCK_BYTES;
    for seed in 0..20 {
        let (written, read) = with_fault(seed, Fault::WriteError);
        assert!(!written && read.unwrap().iter().all(|byte| *byte == 1));

        let (written, read) = with_fault(seed, Fault::ReadError);
        assert!(written && read.is_err());

        let (written, read) = with_fault(seed, Fault::MisdirectedWrite);
        let landed: Vec<usize> = read
            .unwrap()
            .iter()
            .step_by(BLOCK_BYTES)
            .enumerate()
            .filter(|(_, byte)| **byte == 2)
            .map(|(block, _)| block * BLOCK_BYTES)
            .collect();
        assert!(written && landed.len() == 1 && landed[0] != expected_position, "{landed:?}");

        let (written, read) = with_fault(seed, Fault::CorruptedWrite);
        let block = read.unwrap()[expected_position..expected_position + BLOCK_BYTES].to_vec();
        let flipped: u32 = block.iter().map(|byte| (byte ^ 2).count_ones()).sum();
        assert!(written && flipped == 1, "{flipped} bits flipped");
    }
}

#[test]
fn corruption_and_bad_ranges_stay() {
    let sim = run(1, || async {
        durable_file(1, 4).await;
    });
    let disk = sim.disk(NODE);
    assert!(disk.corrupt(path(), 5000));
    assert!(!disk.corrupt(path(), 1 << 30) && !disk.corrupt("/no", 0));
    disk.fail_reads(path(), 0, 10);
    sim.crash(NODE);
    assert_eq!(disk.contents(path()).unwrap()[5000], 0);
    sim.start_node(NODE, 1, |_: Seed<()>| async {
        let file = File::open(path(), OpenMode::Read).await.unwrap();
        assert!(file.read_at(9, 100).await.is_err());
        assert_eq!(file.read_at(10, 100).await.unwrap().len(), 100);
    });
    sim.run_for(LIMIT);
    assert!(!sim.is_running(NODE), "the node has read and ended");
}

#[test]
fn a_stalled_disk_answers_late() {
    let sim = run(1, || async {
        durable_file(1, 1).await;
    });
    sim.crash(NODE);
    sim.disk(NODE).stall(Duration::from_secs(30));
    sim.start_node(NODE, 1, |_: Seed<()>| async {
        let start = time::now();
        disk::exists(path()).await;
        assert!(start.elapsed() >= Duration::from_secs(29));
    });
    sim.run_for(LIMIT);
    assert!(!sim.is_running(NODE));
}
