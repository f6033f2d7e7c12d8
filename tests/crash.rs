//! `kill -9` under load: one Java producer (idempotent, acks=all) goes on through 20 deaths of the node.
//!
//! 1. Each acknowledged record is read afterwards at the partition and offset of its acknowledgement.
//! 2. No record is there twice, acknowledged or not.
//! 3. The offsets of each partition have no gap.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kafka_protocol::records::Record;
use millrace_tests::broker::{Broker, Options};
use millrace_tests::kafka_tools::KafkaTools;
use millrace_tests::paths;
use millrace_tests::process::{Process, Signal};
use millrace_tests::suite::{self, Cost, Outcome};
use millrace_tests::wire::{self, Wire};
use serde_json::Value;

const TOPIC: &str = "crash";
const PARTITIONS: i32 = 4;
const ROUNDS: u64 = 20;
const LIMIT: Duration = Duration::from_secs(600);
const PROGRESS: Duration = Duration::from_secs(60);
/// About what one acknowledgement takes in the producer's output.
const ACKNOWLEDGEMENT_BYTES: u64 = 120;
/// Retries go on for longer than the test: an error is an acknowledgement that the broker owes.
const PRODUCER: &str = "enable.idempotence=true\nretries=2147483647\nlinger.ms=2\nbatch.size=16384\ndelivery.timeout.ms=900000\n\
                        request.timeout.ms=30000\nretry.backoff.ms=20\nretry.backoff.max.ms=100\n\
                        reconnect.backoff.ms=20\nreconnect.backoff.max.ms=100\n";

#[test]
fn nothing_is_lost_through_20_kills() -> Outcome {
    suite::run(Cost::Heavy, || {
        KafkaTools::need()?;
        let mut broker = Broker::start(Options { shards: 2, ..Options::default() })?;
        Wire::connect(&broker.bootstrap())?.create_topic(TOPIC, PARTITIONS, &[])?;
        let scratch = paths::scratch("producer")?;
        let mut producer = start_producer(&KafkaTools::find(broker.bootstrap())?, scratch.path())?;
        for round in 0..ROUNDS {
            // Die early or late after the last start, with few or many acknowledgements since then.
            acknowledge(&mut producer, 50 + round * 370 % 1500)?;
            std::thread::sleep(Duration::from_millis(round * 13 % 50));
            broker.kill()?;
            broker.start_again().with_context(|| format!("after kill {round}"))?;
        }
        acknowledge(&mut producer, 500)?;
        producer.signal(Signal::TERM)?;
        let acknowledged = acknowledgements(&producer.wait()?.stdout)?;
        let stored = read(&broker)?;
        compare(&acknowledged, &stored)?;
        broker.stop()?;
        broker.start_again()?;
        ensure!(read(&broker)? == stored, "a clean stop and start changed what is read");
        Ok(())
    })
}

fn start_producer(tools: &KafkaTools, directory: &Path) -> Result<Process> {
    let config = directory.join("producer.properties");
    std::fs::write(&config, PRODUCER)?;
    let config = config.to_string_lossy();
    let arguments = ["--topic", TOPIC, "--acks", "-1", "--throughput", "4000", "--command-config", &config];
    let mut command = tools.client("verifiable-producer", &arguments);
    let mut producer =
        Process::spawn(command.args(["--repeating-keys", "1000"]), "verifiable-producer", LIMIT)?;
    acknowledge(&mut producer, 500)?;
    Ok(producer)
}

/// Waits until the producer has printed about `count` more acknowledgements.
fn acknowledge(producer: &mut Process, count: u64) -> Result<()> {
    let goal = producer.stdout_bytes() + count * ACKNOWLEDGEMENT_BYTES;
    producer.wait_until("more acknowledgements", PROGRESS, |producer| Ok(producer.stdout_bytes() >= goal))
}

type Log = BTreeMap<(i64, i64), i64>;

/// The acknowledged records: partition and offset to number. A send that failed for good is an error.
fn acknowledgements(output: &str) -> Result<Log> {
    let mut log = Log::new();
    for line in output.lines() {
        let event: Value = serde_json::from_str(line).with_context(|| format!("odd line {line}"))?;
        match event["name"].as_str() {
            Some("producer_send_success") => {
                let place = (event["partition"].as_i64(), event["offset"].as_i64());
                let (Some(partition), Some(offset)) = place else { bail!("odd acknowledgement {line}") };
                let number = event["value"].as_str().context("no value")?.parse()?;
                let earlier = log.insert((partition, offset), number);
                ensure!(
                    earlier.is_none(),
                    "two records were acknowledged at one offset: {line}, {earlier:?}"
                );
            }
            Some("producer_send_error") => bail!("a send failed: {line}"),
            _ => {}
        }
    }
    ensure!(log.len() > 1000, "only {} records were acknowledged", log.len());
    Ok(log)
}

/// All that is stored; `read_all` fails where offsets have a gap.
fn read(broker: &Broker) -> Result<Log> {
    let mut client = Wire::connect(&broker.bootstrap())?;
    let mut log = Log::new();
    for partition in 0..PARTITIONS {
        for record in client.read_all(TOPIC, partition, 0)? {
            log.insert((i64::from(partition), record.offset), number(&record)?);
        }
    }
    Ok(log)
}

fn number(record: &Record) -> Result<i64> {
    wire::number(record).with_context(|| format!("at offset {}", record.offset))
}

fn compare(acknowledged: &Log, stored: &Log) -> Result<()> {
    for (place, number) in acknowledged {
        match stored.get(place) {
            Some(found) if found == number => {}
            Some(found) => bail!("record {number}, acknowledged at {place:?}: record {found} is there"),
            None => bail!("record {number}, acknowledged at {place:?}, is lost"),
        }
    }
    let mut seen = BTreeSet::new();
    for (place, number) in stored {
        ensure!(seen.insert(number), "record {number} is stored twice, the second time at {place:?}");
    }
    Ok(())
}

#[test]
fn the_comparison_finds_what_is_wrong() -> Result<()> {
    let log = |entries: &[((i64, i64), i64)]| entries.iter().copied().collect::<Log>();
    let acknowledged = log(&[((0, 0), 10), ((0, 1), 11)]);
    compare(&acknowledged, &log(&[((0, 0), 10), ((0, 1), 11), ((0, 2), 12)]))?;
    for bad in [
        log(&[((0, 0), 10)]),
        log(&[((0, 0), 11), ((0, 1), 10)]),
        log(&[((0, 0), 10), ((0, 1), 11), ((1, 0), 11)]),
    ] {
        ensure!(compare(&acknowledged, &bad).is_err(), "accepted {bad:?}");
    }
    let twice = r#"{"name":"producer_send_success","value":"1","offset":0,"partition":0}"#;
    ensure!(acknowledgements(&format!("{twice}\n{twice}")).is_err(), "one offset was acknowledged twice");
    ensure!(
        acknowledgements(r#"{"name":"producer_send_error","value":"1"}"#).is_err(),
        "an error was accepted"
    );
    Ok(())
}
