//! Measures what one durable write costs on a directory: plain system calls against this crate's files.
//!
//! `cargo run --release --example flush_latency -- DIR [WRITE_BYTES] [WRITES] [PAUSE_US]` prints the minimum, p50 and p99 in
//! microseconds of writes made one after another over the same preallocated, zero-filled 64 MiB:
//! 1. `pwrite` with `O_DIRECT` and `fdatasync`, plain system calls on a thread;
//! 2. `File::write_at` and `File::sync_data`;
//! 3. `File::write_at` on a file opened with `O_DSYNC`.
//!
//! A pause between the writes shows what they cost where load comes at a rate: processors fall asleep in it, and waking them is
//! part of what a write takes.
//!
//! The three take turns in short rounds, so that a change of the machine's load meets all of them. That is not enough where
//! others want the processor: a thread that sleeps in `fdatasync` may wait a scheduler's tick (4 ms) to run again, while an
//! executor in the same place does not, which once made the first look forty times slower than the second when in truth it
//! was twice as fast. So each line tells how long its thread waited for a processor, and a busy run says that it is void.
//! The kernel's own workers, which run most of an `O_DSYNC` write, are not in that count: the load average speaks for them.
#![allow(clippy::print_stdout)]

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use runtime::disk::{self, AlignedBuf, BLOCK_BYTES, File, OpenMode};
use runtime::shard::block_on_one;
use rustix::fs::OFlags;

const FILE_BYTES: u64 = 64 << 20;
const ROUNDS: usize = 20;
/// Writes of a round that are not counted.
const WARM_UP: usize = 5;
/// Waiting for a processor for more than this part of the measured time makes a run void.
const WAITED_MAX_PERCENT: u128 = 10;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let write_bytes = number(arguments.next(), 4096).next_multiple_of(BLOCK_BYTES);
    let writes_per_round = number(arguments.next(), 2000).div_ceil(ROUNDS);
    let pause = Duration::from_micros(number(arguments.next(), 0) as u64);
    let writes = writes_per_round * ROUNDS;
    println!("{write_bytes} bytes a write, {writes} writes {pause:?} apart, on {}", dir.display());
    let load = Load { write_bytes, writes: writes_per_round, pause };

    let path = dir.join("flush_latency.data");
    let prepared = path.clone();
    block_on_one(async move {
        let file = File::open(&prepared, OpenMode::Create).await?;
        file.allocate_zeroed(FILE_BYTES).await?;
        file.close().await
    })?;
    let mut plain = Taken::default();
    let mut synced = Taken::default();
    let mut dsync = Taken::default();
    for _ in 0..ROUNDS {
        plain.measure(|| by_system_calls(&path, load))?;
        synced.measure(|| by_runtime(&path, load, false))?;
        dsync.measure(|| by_runtime(&path, load, true))?;
    }
    let void = [
        plain.report("pwrite O_DIRECT + fdatasync"),
        synced.report("write_at + sync_data"),
        dsync.report("write_at, O_DSYNC"),
    ];
    if void.contains(&true) || is_loaded() {
        println!("VOID: the processors were not free; measure again on a quiet machine");
    }
    block_on_one(async move { disk::remove_file(&path).await })
}

fn number(argument: Option<String>, default: usize) -> usize {
    argument.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// One round.
#[derive(Clone, Copy)]
struct Load {
    write_bytes: usize,
    writes: usize,
    pause: Duration,
}

/// What one kind of write took, and how long its thread was kept from running.
#[derive(Default)]
struct Taken {
    writes: Vec<Duration>,
    waited: Duration,
}

impl Taken {
    fn measure(&mut self, round: impl FnOnce() -> io::Result<Vec<Duration>>) -> io::Result<()> {
        let before = waited_for_processor();
        self.writes.extend(round()?);
        self.waited += waited_for_processor().saturating_sub(before);
        Ok(())
    }

    /// Prints a line; true when the run is void.
    fn report(&mut self, name: &str) -> bool {
        self.writes.sort();
        let at = |permille: usize| self.writes[(self.writes.len() - 1) * permille / 1000].as_micros();
        let total: Duration = self.writes.iter().sum();
        let waited_percent = self.waited.as_micros() * 100 / total.as_micros().max(1);
        println!(
            "{name:28} min {:>6} p50 {:>6} p99 {:>6} us, waited for a processor {waited_percent:>3} % of it",
            at(0),
            at(500),
            at(990)
        );
        waited_percent > WAITED_MAX_PERCENT
    }
}

/// How long this thread has been ready and not running, as the kernel counts it.
fn waited_for_processor() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited_ns = statistics.split_whitespace().nth(1).and_then(|text| text.parse().ok());
    Duration::from_nanos(waited_ns.unwrap_or(0))
}

/// Whether more wants to run than there are processors, over the last minute.
fn is_loaded() -> bool {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    std::thread::available_parallelism().is_ok_and(|processors| load > processors.get() as f64)
}

fn position(index: usize, write_bytes: usize) -> u64 {
    let slots = FILE_BYTES / write_bytes as u64;
    index as u64 % slots * write_bytes as u64
}

fn by_system_calls(path: &Path, load: Load) -> io::Result<Vec<Duration>> {
    let Load { write_bytes, writes, pause } = load;
    let file = OpenOptions::new().write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path)?;
    let mut buf = AlignedBuf::zeroed(write_bytes);
    buf.fill(0x5A);
    let mut taken = Vec::with_capacity(WARM_UP + writes);
    for index in 0..WARM_UP + writes {
        let start = Instant::now();
        file.write_all_at(&buf, position(index, write_bytes))?;
        file.sync_data()?;
        taken.push(start.elapsed());
        std::thread::sleep(pause);
    }
    Ok(taken.split_off(WARM_UP))
}

fn by_runtime(path: &Path, load: Load, dsync: bool) -> io::Result<Vec<Duration>> {
    let Load { write_bytes, writes, pause } = load;
    let path = path.to_owned();
    block_on_one(async move {
        let file = if dsync {
            File::open_dsync(&path, OpenMode::Write).await?
        } else {
            File::open(&path, OpenMode::Write).await?
        };
        let mut taken = Vec::with_capacity(WARM_UP + writes);
        for index in 0..WARM_UP + writes {
            let mut buf = AlignedBuf::zeroed(write_bytes);
            buf.fill(0x5A);
            let start = runtime::time::now();
            file.write_at(position(index, write_bytes), buf).await?;
            if !dsync {
                file.sync_data().await?;
            }
            taken.push(start.elapsed());
            if !pause.is_zero() {
                runtime::time::sleep(pause).await;
            }
        }
        file.close().await?;
        Ok(taken.split_off(WARM_UP))
    })
}
