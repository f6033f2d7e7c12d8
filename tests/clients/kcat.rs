//! kcat, which is librdkafka on the command line: the same scenario, driven by its arguments, input and output.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use millrace_tests::broker::{Options, Target, unique};
use millrace_tests::process::{Process, Signal};
use millrace_tests::suite::{Cost, Outcome};
use millrace_tests::wire::Wire;
use millrace_tests::{foreign, suite};

const LIMIT: Duration = Duration::from_secs(120);
const STEP: Duration = Duration::from_secs(40);
const PARTITIONS: usize = 4;
const LOT: usize = 200;
const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

struct Kcat {
    bootstrap: String,
}

impl Kcat {
    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = foreign::kcat()?;
        command.args(["-b", &self.bootstrap, "-q"]).args(arguments);
        Ok(command)
    }

    /// Produces one lot into each of the partitions `0..partitions`; the values are `LOT-PARTITION-NUMBER-filler`.
    fn produce(&self, topic: &str, codec: &str, lot: &str, partitions: usize) -> Result<()> {
        for partition in 0..partitions {
            let input: String =
                (0..LOT / partitions).map(|number| value(lot, partition, number) + "\n").collect();
            let partition = partition.to_string();
            let mut command = self.command(&["-P", "-t", topic, "-p", &partition, "-z", codec])?;
            command.args(["-X", "enable.idempotence=true", "-X", "acks=all", "-H", "lot=of-kcat", "-k", lot]);
            Process::spawn_with_input(&mut command, "kcat -P", LIMIT, &input)?.success()?;
        }
        Ok(())
    }

    /// A member of the group that prints `PARTITION OFFSET VALUE` lines, and its assignments to standard error.
    fn member(&self, group: &str, topic: &str, more: &[&str]) -> Result<Process> {
        let mut command = foreign::kcat()?;
        command.args(["-b", &self.bootstrap, "-u", "-f", "%p %o %s\n", "-X", "auto.offset.reset=earliest"]);
        command.args(["-X", "session.timeout.ms=30000", "-X", "heartbeat.interval.ms=300"]);
        command.args(more).args(["-G", group, topic]);
        Process::spawn(&mut command, "kcat -G", LIMIT)
    }
}

fn value(lot: &str, partition: usize, number: usize) -> String {
    format!("{lot}-{partition}-{number}-{}", "x".repeat(number * 37 % 900))
}

fn values(lots: &[&str]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for lot in lots {
        for partition in 0..PARTITIONS {
            all.extend((0..LOT / PARTITIONS).map(|number| value(lot, partition, number)));
        }
    }
    all
}

/// The whole lines `PARTITION OFFSET VALUE` of an output, as the values; a value that comes twice is an error.
fn read(outputs: &[String]) -> Result<BTreeSet<String>> {
    let mut seen = BTreeSet::new();
    for output in outputs {
        let whole = output.rfind('\n').map_or("", |end| &output[..end]);
        for line in whole.lines() {
            let Some(value) = line.splitn(3, ' ').nth(2) else { bail!("odd line from kcat: {line}") };
            ensure!(seen.insert(value.to_owned()), "read twice: {line}");
        }
    }
    Ok(seen)
}

/// Partitions that the member was last told to own, as kcat reports them.
fn owned(member: &Process) -> usize {
    let stderr = member.stderr();
    let Some(last) = stderr.lines().rev().find(|line| line.contains("rebalanced")) else { return 0 };
    if last.contains("assigned:") && !last.contains("revoked:") { last.matches(" [").count() } else { 0 }
}

#[test]
fn kcat() -> Outcome {
    suite::run(Cost::Heavy, || {
        foreign::kcat()?;
        let target = Target::start(Options::default())?;
        let kcat = Kcat { bootstrap: target.bootstrap() };
        every_codec(&kcat, &unique("kcat-auto"))?;
        let topic = unique("kcat-group");
        Wire::connect(&kcat.bootstrap)?.create_topic(&topic, i32::try_from(PARTITIONS)?, &[])?;
        group_of_two(&kcat, &topic)?;
        resume(&kcat, &topic)
    })
}

/// Writes to a topic that nobody created, and reads all of it in order.
fn every_codec(kcat: &Kcat, topic: &str) -> Result<()> {
    let mut expected = String::new();
    for codec in CODECS {
        kcat.produce(topic, codec, codec, 1)?;
        for number in 0..LOT {
            let offset = expected.lines().count();
            expected += &format!("{offset} {codec} lot=of-kcat {}\n", value(codec, 0, number));
        }
    }
    let arguments = ["-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-f", "%o %k %h %s\n"];
    let read = Process::spawn(&mut kcat.command(&arguments)?, "kcat -C", LIMIT)?.success()?;
    ensure!(read == expected, "kcat read something else than it wrote to {topic}");
    let listing = Process::spawn(&mut kcat.command(&["-L", "-t", topic])?, "kcat -L", LIMIT)?.success()?;
    ensure!(listing.contains(&format!("topic \"{topic}\"")), "kcat -L does not list {topic}: {listing}");
    Ok(())
}

fn group_of_two(kcat: &Kcat, topic: &str) -> Result<()> {
    kcat.produce(topic, "none", "early", PARTITIONS)?;
    let mut a = kcat.member(topic, topic, &[])?;
    a.wait_until("a owns everything", STEP, |a| Ok(owned(a) == PARTITIONS))?;
    let mut b = kcat.member(topic, topic, &[])?;
    b.wait_until("both own half", STEP, |b| Ok(owned(&a) == 2 && owned(b) == 2))?;
    kcat.produce(topic, "none", "shared", PARTITIONS)?;
    b.wait_until("the shared lot is read", STEP, |b| {
        Ok(read(&[a.stdout(), b.stdout()])? == values(&["early", "shared"]))
    })?;
    let of_b = read(&[b.stdout()])?.iter().filter(|value| value.starts_with("shared")).count();
    ensure!(of_b == LOT / 2, "b read {of_b} records of the shared lot");
    b.signal(Signal::TERM)?;
    let b = b.wait()?;
    a.wait_until("a took over", STEP, |a| Ok(owned(a) == PARTITIONS))?;
    kcat.produce(topic, "none", "late", PARTITIONS)?;
    a.wait_until("the late lot is read", STEP, |a| {
        Ok(read(&[a.stdout(), b.stdout.clone()])? == values(&["early", "shared", "late"]))
    })?;
    a.signal(Signal::TERM)?;
    a.success()?;
    Ok(())
}

/// The next members get what came after the last offset commit, and nothing of what was read before.
fn resume(kcat: &Kcat, topic: &str) -> Result<()> {
    kcat.produce(topic, "none", "more", PARTITIONS)?;
    let first = kcat.member(topic, topic, &["-c", "30"])?.success()?;
    ensure!(read(std::slice::from_ref(&first))?.len() == 30, "the third member read {first}");
    let mut rest = kcat.member(topic, topic, &[])?;
    rest.wait_until("the rest is read", STEP, |rest| {
        Ok(read(&[first.clone(), rest.stdout()])? == values(&["more"]))
    })?;
    rest.signal(Signal::TERM)?;
    rest.success()?;
    Ok(())
}
