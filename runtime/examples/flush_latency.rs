//! Measures what one durable write costs on a directory: plain system calls against this crate's files.
//!
//! `cargo run --release --example flush_latency -- DIR [WRITE_BYTES] [WRITES]` prints p50 and p99 in microseconds of writes
//! made one after another over the same preallocated, zero-filled 64 MiB:
//! 1. `pwrite` with `O_DIRECT` and `fdatasync`, plain system calls on a thread;
//! 2. `File::write_at` and `File::sync_data`;
//! 3. `File::write_at` on a file opened with `O_DSYNC`.
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
const WARM_UP: usize = 100;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let write_bytes = number(arguments.next(), 4096).next_multiple_of(BLOCK_BYTES);
    let writes = number(arguments.next(), 2000);
    println!("{} bytes a write, {writes} writes, on {}", write_bytes, dir.display());

    let path = dir.join("flush_latency.data");
    let prepared = path.clone();
    block_on_one(async move {
        let file = File::open(&prepared, OpenMode::Create).await?;
        file.allocate_zeroed(FILE_BYTES).await?;
        file.close().await
    })?;
    report("pwrite O_DIRECT + fdatasync", plain(&path, write_bytes, writes)?);
    report("write_at + sync_data", by_runtime(&path, write_bytes, writes, false)?);
    report("write_at, O_DSYNC", by_runtime(&path, write_bytes, writes, true)?);
    block_on_one(async move { disk::remove_file(&path).await })
}

fn number(argument: Option<String>, default: usize) -> usize {
    argument.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn position(index: usize, write_bytes: usize) -> u64 {
    let slots = FILE_BYTES / write_bytes as u64;
    index as u64 % slots * write_bytes as u64
}

fn plain(path: &Path, write_bytes: usize, writes: usize) -> io::Result<Vec<Duration>> {
    let file = OpenOptions::new().write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path)?;
    let mut buf = AlignedBuf::zeroed(write_bytes);
    buf.fill(0x5A);
    let mut taken = Vec::with_capacity(writes);
    for index in 0..WARM_UP + writes {
        let start = Instant::now();
        file.write_all_at(&buf, position(index, write_bytes))?;
        file.sync_data()?;
        taken.push(start.elapsed());
    }
    Ok(taken.split_off(WARM_UP))
}

fn by_runtime(path: &Path, write_bytes: usize, writes: usize, dsync: bool) -> io::Result<Vec<Duration>> {
    let path = path.to_owned();
    block_on_one(async move {
        let file = if dsync {
            File::open_dsync(&path, OpenMode::Write).await?
        } else {
            File::open(&path, OpenMode::Write).await?
        };
        let mut taken = Vec::with_capacity(writes);
        for index in 0..WARM_UP + writes {
            let mut buf = AlignedBuf::zeroed(write_bytes);
            buf.fill(0x5A);
            let start = runtime::time::now();
            file.write_at(position(index, write_bytes), buf).await?;
            if !dsync {
                file.sync_data().await?;
            }
            taken.push(start.elapsed());
        }
        file.close().await?;
        Ok(taken.split_off(WARM_UP))
    })
}

fn report(name: &str, mut taken: Vec<Duration>) {
    taken.sort();
    let at = |permille: usize| taken[(taken.len() - 1) * permille / 1000].as_micros();
    println!("{name:28} p50 {:>6} us   p99 {:>6} us", at(500), at(990));
}
