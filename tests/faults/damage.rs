//! Damaged data directories: what cannot be read is an error that names it, what follows from a torn write is cut off,
//! and everything else is served.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kafka_protocol::records::Compression;
use millrace_tests::binary;
use millrace_tests::broker::{Broker, Options};
use millrace_tests::suite::{self, Cost, Outcome};
use millrace_tests::wire::{self, Wire};

use crate::journal::{Block, blocks, files_below, flip};
use crate::start::{ENVIRONMENT, refused};

const TOPIC: &str = "damaged";
const RECORD_BYTES: usize = 4000;
const BATCH: i64 = 10;
const BATCHES: i64 = 100;
/// The exit code of an inspection that found something.
const DAMAGE: i32 = 7;

fn start(allowed_logs: Vec<&'static str>) -> Result<Broker> {
    let broker = Broker::start(Options { shards: 1, allowed_logs, ..Options::default() })?;
    let mut client = Wire::connect(&broker.bootstrap())?;
    client.create_topic(TOPIC, 1, &[("segment.bytes", "1048576")])?;
    for first in (0..BATCHES * BATCH).step_by(usize::try_from(BATCH)?) {
        let batch = wire::batch(first..first + BATCH, RECORD_BYTES, Compression::None)?;
        let answer = client.produce(TOPIC, 0, batch)?;
        ensure!(answer.error == 0 && answer.base_offset == first, "odd answer {answer:?}");
    }
    Ok(broker)
}

fn inspect(broker: &Broker) -> Result<Command> {
    let mut command = Command::new(binary::millrace()?);
    command.args(["log", "inspect"]).arg(broker.data_dir());
    Ok(command)
}

#[test]
fn a_flipped_byte_in_a_closed_segment() -> Outcome {
    suite::run(Cost::Light, || {
        let mut broker = start(vec!["reading"])?;
        broker.stop()?;
        let mut segments = files_below(broker.data_dir(), ".log")?;
        segments.retain(|file| file.to_string_lossy().contains(&format!("{TOPIC}-0/")));
        ensure!(segments.len() > 2, "the segments did not roll: {segments:?}");
        let first = segments.first().context("a segment")?;
        flip(first, std::fs::read(first)?.len() / 2)?;
        let name = first.file_name().context("a name")?.to_string_lossy().into_owned();
        refused(&mut inspect(&broker)?, DAMAGE, &[&name])?;

        broker.start_again()?;
        let mut client = Wire::connect(&broker.bootstrap())?;
        let mut bad = Vec::new();
        for from in (0..BATCHES * BATCH).step_by(usize::try_from(BATCH)?) {
            let fetched = client.fetch(TOPIC, 0, from, 1)?;
            let records = wire::decode(fetched.batches);
            let good = fetched.error == 0
                && records
                    .is_ok_and(|records| wire::expect(&records, from..from + BATCH, RECORD_BYTES).is_ok());
            if !good {
                ensure!(fetched.error != 0, "a damaged batch was served at {from}");
                bad.push(from);
            }
        }
        ensure!(bad.len() == 1, "one batch is damaged, but these cannot be read: {bad:?}");
        let batch = wire::batch(BATCHES * BATCH..BATCHES * BATCH + BATCH, RECORD_BYTES, Compression::None)?;
        ensure!(client.produce(TOPIC, 0, batch)?.error == 0, "produce fails after damage in an old segment");
        broker.stop()
    })
}

/// The blocks that a start after a kill needs: those behind the last checkpoint. The node is killed before it is idle
/// for long enough to seal its journal.
fn killed() -> Result<(Broker, Vec<Block>)> {
    let mut broker = start(Vec::new())?;
    broker.kill()?;
    let found = blocks(broker.data_dir())?;
    ensure!(found.len() > 20, "only {} journal blocks", found.len());
    Ok((broker, found))
}

#[test]
fn damage_in_the_middle_of_the_journal() -> Outcome {
    suite::run(Cost::Light, || {
        let (mut broker, found) = killed()?;
        let block = found.get(found.len() - 10).context("a block")?;
        flip(&block.file, block.position + 64 + block.payload_bytes / 2)?;
        let name = block.file.file_name().context("a name")?.to_string_lossy().into_owned();
        refused(&mut broker.command()?, ENVIRONMENT, &[&name])?;
        // Refusing changed nothing: with the byte as it was, everything is there.
        flip(&block.file, block.position + 64 + block.payload_bytes / 2)?;
        broker.start_again()?;
        let records = Wire::connect(&broker.bootstrap())?.read_all(TOPIC, 0, 0)?;
        wire::expect(&records, 0..BATCHES * BATCH, RECORD_BYTES)?;
        broker.stop()
    })
}

#[test]
fn a_torn_write_at_the_end_of_the_journal() -> Outcome {
    suite::run(Cost::Light, || {
        let (mut broker, found) = killed()?;
        let last = found.iter().rev().find(|block| block.entries > 0).context("a block with entries")?;
        let sealed = found.last().is_some_and(|block| block.sequence > last.sequence);
        flip(&last.file, last.position + 64 + last.payload_bytes / 2)?;
        if sealed {
            // The node was slow enough to seal: then this is no torn write but damage.
            return refused(&mut broker.command()?, ENVIRONMENT, &[]);
        }
        broker.start_again()?;
        let mut client = Wire::connect(&broker.bootstrap())?;
        let records = client.read_all(TOPIC, 0, 0)?;
        let left = i64::try_from(records.len())?;
        ensure!(left < BATCHES * BATCH, "the last block was damaged, but all {left} records are there");
        ensure!(left >= (BATCHES - 2) * BATCH, "one block was damaged, but only {left} records are left");
        wire::expect(&records, 0..left, RECORD_BYTES)?;
        let batch = wire::batch(left..left + BATCH, RECORD_BYTES, Compression::None)?;
        let answer = client.produce(TOPIC, 0, batch)?;
        ensure!(
            answer.error == 0 && answer.base_offset == left,
            "odd answer {answer:?} after {left} records"
        );
        broker.stop()?;
        broker.start_again()?;
        let records = Wire::connect(&broker.bootstrap())?.read_all(TOPIC, 0, 0)?;
        wire::expect(&records, 0..left + BATCH, RECORD_BYTES)
    })
}

/// Garbage behind the last block, as a write that was under way leaves it, is cut off and loses nothing.
#[test]
fn garbage_behind_the_end_of_the_journal() -> Outcome {
    suite::run(Cost::Light, || {
        let (mut broker, found) = killed()?;
        let last = found.last().context("a block")?;
        let end = last.position + (64 + last.payload_bytes).next_multiple_of(4096);
        let mut bytes = std::fs::read(&last.file)?;
        let Some(behind) = bytes.get_mut(end..end + 8192) else { return Ok(()) };
        behind.fill(0xa5);
        behind[..4].copy_from_slice(b"MJBK");
        std::fs::write(&last.file, bytes)?;
        broker.start_again()?;
        let records = Wire::connect(&broker.bootstrap())?.read_all(TOPIC, 0, 0)?;
        wire::expect(&records, 0..BATCHES * BATCH, RECORD_BYTES)?;
        broker.stop()
    })
}

/// Checkpoints that are both damaged: the node does not guess.
#[test]
fn both_checkpoints_damaged() -> Outcome {
    suite::run(Cost::Light, || {
        let mut broker = start(Vec::new())?;
        broker.stop()?;
        let checkpoints = [
            files_below(broker.data_dir(), "checkpoint.a")?,
            files_below(broker.data_dir(), "checkpoint.b")?,
        ];
        for file in checkpoints.iter().flatten() {
            flip(file, 40)?;
        }
        refused(&mut broker.command()?, ENVIRONMENT, &["checkpoint"])?;
        for file in checkpoints[0].iter() {
            flip(file, 40)?;
        }
        broker.start_again()?;
        std::thread::sleep(Duration::from_millis(100));
        let records = Wire::connect(&broker.bootstrap())?.read_all(TOPIC, 0, 0)?;
        wire::expect(&records, 0..BATCHES * BATCH, RECORD_BYTES)?;
        broker.stop()
    })
}

#[test]
fn a_lost_identity() -> Outcome {
    suite::run(Cost::Light, || {
        let mut broker = start(Vec::new())?;
        broker.stop()?;
        let file = broker.data_dir().join("meta.properties");
        let identity = std::fs::read(&file)?;
        std::fs::remove_file(&file)?;
        refused(&mut broker.command()?, ENVIRONMENT, &["meta.properties is missing", "millrace.shards"])?;
        std::fs::write(&file, identity)?;
        broker.start_again()?;
        let records = Wire::connect(&broker.bootstrap())?.read_all(TOPIC, 0, 0)?;
        wire::expect(&records, 0..BATCHES * BATCH, RECORD_BYTES)?;
        broker.stop()
    })
}
