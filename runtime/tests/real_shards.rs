//! What only the real world has: pinned threads, memory file systems, signals, panics.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runtime::disk::{self, AlignedBuf, BLOCK_BYTES, File, OpenMode};
use runtime::shard::{self, Seed, ShardId, ShardsConfig, StartError};
use runtime::{signal, task, time};

#[test]
fn shards_are_pinned_and_may_share_a_cpu() {
    let config = ShardsConfig { count: 3, cpus: Some(vec![0]), name: "pin".to_owned() };
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let record = Arc::clone(&seen);
    let running = shard::start(config, move |seed: Seed<()>| {
        let record = Arc::clone(&record);
        async move {
            assert_eq!(shard::current(), seed.id);
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
            assert_eq!(cpus.trim(), "0");
            let name = std::thread::current().name().unwrap().to_owned();
            record.lock().unwrap().insert((seed.id, name));
        }
    });
    running.unwrap().join();
    let expected: BTreeSet<_> = (0..3).map(|id| (ShardId(id), format!("pin-{id}"))).collect();
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn a_cpu_that_is_not_there_is_an_error() {
    let config = ShardsConfig { count: 2, cpus: Some(vec![0, 4000]), ..Default::default() };
    let started = shard::start(config, |_: Seed<()>| async { panic!("no main may run") });
    assert!(matches!(started, Err(StartError::Executor { shard: ShardId(1), .. })), "{started:?}");
    let nothing = ShardsConfig { count: 0, ..Default::default() };
    assert!(matches!(shard::start(nothing, |_: Seed<()>| async {}), Err(StartError::Nothing)));
}

#[test]
#[should_panic(expected = "shard 1 has a bug")]
fn a_panic_in_a_shard_surfaces() {
    let config = ShardsConfig { count: 2, ..Default::default() };
    let running = shard::start(config, |seed: Seed<()>| async move {
        if seed.id == ShardId(1) {
            task::spawn(async { panic!("shard 1 has a bug") });
        }
        std::future::pending::<()>().await;
    });
    running.unwrap().join();
}

#[test]
fn files_in_memory_serve() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return };
    let path = dir.path().to_owned();
    shard::block_on_one(async move {
        let file = File::open(&path.join("file"), OpenMode::Create).await.unwrap();
        file.allocate_zeroed(8 * BLOCK_BYTES as u64).await.unwrap();
        let mut buf = AlignedBuf::zeroed(BLOCK_BYTES);
        buf.fill(3);
        file.write_at(BLOCK_BYTES as u64, buf).await.unwrap();
        file.sync_data().await.unwrap();
        let bytes = file.read_at(0, 8 * BLOCK_BYTES).await.unwrap();
        assert_eq!((bytes[4095], bytes[4096], bytes[8191], bytes[8192]), (0, 3, 3, 0));
        disk::write_file_atomic(&path.join("meta"), b"small").await.unwrap();
        assert_eq!(disk::read_file(&path.join("meta")).await.unwrap(), &b"small"[..]);
    });
}

#[test]
fn a_request_is_served_beside_busy_background_work() {
    shard::block_on_one(async {
        let busy = task::spawn_in(task::Queue::Background, async {
            loop {
                for _ in 0..1000 {
                    std::hint::black_box(0);
                }
                task::yield_if_needed().await;
            }
        });
        let late: Vec<Duration> = {
            let mut late = Vec::new();
            for _ in 0..50 {
                let start = time::now();
                time::sleep(Duration::from_millis(1)).await;
                late.push(start.elapsed());
            }
            late.sort();
            late
        };
        busy.cancel();
        // The preempt timer alone would look at timers every 100 ms.
        assert!(late[25] < Duration::from_millis(20), "median {:?}", late[25]);
    });
}

/// Set for the child that the test below starts of its own program.
const CHILD: &str = "MILLRACE_TEST_CHILD";

/// Does its work only as a child of the test below.
#[test]
fn child_that_waits_for_a_signal() {
    if std::env::var_os(CHILD).is_some() {
        println!("{}", signal::wait_for_stop().unwrap());
    }
}

#[test]
fn signals_stop_a_process() {
    for (option, name) in [("-TERM", "SIGTERM"), ("-INT", "SIGINT")] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_waits_for_a_signal", "--nocapture"])
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Handlers that are not there yet would let the signal kill the child.
        let status = format!("/proc/{}/status", child.id());
        while caught_signals(&status) & (1 << 14) == 0 || caught_signals(&status) & 0b10 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100));
        Command::new("kill").args([option, &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains(name));
    }
}

fn caught_signals(status: &str) -> u64 {
    let status = std::fs::read_to_string(status).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap())
}
