//! Apache Kafka's own command line tools against a node: topics, console producer and consumer, performance tools,
//! consumer groups, offsets, verifiable producer and consumer, descriptions, and the dump of our segments.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kafka_protocol::records::Compression;
use millrace_tests::broker::{Broker, Options, Target, unique};
use millrace_tests::kafka_tools::KafkaTools;
use millrace_tests::suite::{self, Cost, Outcome};
use millrace_tests::wire::{self, Wire};
use millrace_tests::{foreign, process};
use serde_json::Value;

fn with_tools(body: impl FnOnce(&KafkaTools) -> Result<()>) -> Result<()> {
    KafkaTools::need()?;
    let target = Target::start(Options::default())?;
    body(&KafkaTools::find(target.bootstrap())?)
}

fn contains(output: &str, wanted: &str) -> Result<()> {
    ensure!(output.contains(wanted), "{wanted:?} is not in the output:\n{output}");
    Ok(())
}

/// Lines of an output as words, without empty lines.
fn table(output: &str) -> Vec<Vec<&str>> {
    output
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|row: &Vec<_>| !row.is_empty())
        .collect()
}

#[test]
fn topics() -> Outcome {
    suite::run(Cost::Heavy, || {
        with_tools(|tools| {
            let topic = &unique("tools-topics");
            let create =
                ["--create", "--topic", topic, "--partitions", "3", "--config", "segment.bytes=2097152"];
            contains(&tools.run("topics", &create)?, &format!("Created topic {topic}."))?;
            ensure!(tools.run("topics", &create).is_err(), "{topic} was created twice");
            let list = tools.run("topics", &["--list"])?;
            ensure!(list.lines().any(|line| line == topic), "{topic} is not listed:\n{list}");
            let described = tools.run("topics", &["--describe", "--topic", topic])?;
            for wanted in ["PartitionCount: 3", "ReplicationFactor: 1", "segment.bytes=2097152", "TopicId: "]
            {
                contains(&described, wanted)?;
            }
            let leaders =
                described.lines().filter(|line| line.contains("Leader: 1\tReplicas: 1\tIsr: 1")).count();
            ensure!(leaders == 3, "partitions with a leader: {leaders}\n{described}");
            tools.run("topics", &["--alter", "--topic", topic, "--partitions", "5"])?;
            contains(&tools.run("topics", &["--describe", "--topic", topic])?, "PartitionCount: 5")?;
            ensure!(
                tools.run("topics", &["--alter", "--topic", topic, "--partitions", "4"]).is_err(),
                "partitions were taken away"
            );
            tools.run("topics", &["--delete", "--topic", topic])?;
            let list = tools.run("topics", &["--list"])?;
            ensure!(!list.lines().any(|line| line == topic), "{topic} is listed after its deletion");
            Ok(())
        })
    })
}

#[test]
fn console_and_groups() -> Outcome {
    suite::run(Cost::Heavy, || {
        with_tools(|tools| {
            let topic = &unique("tools-console");
            let group = &format!("{topic}-group");
            tools.run("topics", &["--create", "--topic", topic, "--partitions", "1"])?;
            let written: String = (0..500).map(|number| format!("k{number}\tline {number}\n")).collect();
            let produce =
                ["--topic", topic, "--command-property", "acks=all", "--reader-property", "parse.key=true"];
            tools.run_with_input("console-producer", &produce, &written)?;
            let consume = ["--topic", topic, "--group", group, "--from-beginning", "--max-messages", "500"];
            let consume = [&consume[..], &["--formatter-property", "print.key=true"], &TIMEOUT].concat();
            ensure!(
                tools.run("console-consumer", &consume)? == written,
                "the consumer printed something else"
            );
            offsets_and_groups(tools, topic, group)
        })
    })
}

const TIMEOUT: [&str; 2] = ["--timeout-ms", "60000"];

fn offsets_and_groups(tools: &KafkaTools, topic: &str, group: &str) -> Result<()> {
    let end = tools.run("get-offsets", &["--topic", topic])?;
    contains(&end, &format!("{topic}:0:500"))?;
    let begin = tools.run("get-offsets", &["--topic", topic, "--time", "earliest"])?;
    contains(&begin, &format!("{topic}:0:0"))?;
    let largest = tools.run("get-offsets", &["--topic", topic, "--time", "max-timestamp"])?;
    ensure!(largest.starts_with(&format!("{topic}:0:")), "no offset of the largest timestamp: {largest}");

    let list = tools.run("consumer-groups", &["--list"])?;
    ensure!(list.lines().any(|line| line.trim() == group), "{group} is not listed:\n{list}");
    let described = tools.run("consumer-groups", &["--describe", "--group", group])?;
    let row = [group, topic, "0", "500", "500", "0", "-", "-", "-"];
    ensure!(table(&described).iter().any(|got| got[..] == row), "odd description of {group}:\n{described}");
    let state = tools.run("consumer-groups", &["--describe", "--group", group, "--state"])?;
    contains(&state, "Empty")?;

    let reset = ["--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "123", "--execute"];
    contains(&tools.run("consumer-groups", &reset)?, "123")?;
    let resumed = ["--topic", topic, "--group", group, "--max-messages", "2"];
    let resumed = tools.run("console-consumer", &[&resumed[..], &TIMEOUT].concat())?;
    ensure!(resumed == "line 123\nline 124\n", "after the reset the consumer printed {resumed:?}");
    contains(&tools.run("consumer-groups", &["--delete", "--group", group])?, "successful")?;
    let list = tools.run("consumer-groups", &["--list"])?;
    ensure!(!list.lines().any(|line| line.trim() == group), "{group} is listed after its deletion");
    Ok(())
}

#[test]
fn performance_tools() -> Outcome {
    suite::run(Cost::Heavy, || {
        with_tools(|tools| {
            let topic = &unique("tools-perf");
            tools.run("topics", &["--create", "--topic", topic, "--partitions", "4"])?;
            let load =
                ["--topic", topic, "--num-records", "20000", "--record-size", "1024", "--throughput", "-1"];
            let load = [&load[..], &["--command-property", "acks=all", "compression.type=lz4"]].concat();
            contains(&tools.run("producer-perf-test", &load)?, "20000 records sent")?;
            let read =
                ["--topic", topic, "--num-records", "20000", "--timeout", "60000", "--show-detailed-stats"];
            let read =
                tools.run("consumer-perf-test", &[&read[..], &["--reporting-interval", "200"]].concat())?;
            ensure!(table(&read).len() > 1, "the consumer reported nothing:\n{read}");
            let mut total = 0;
            for offset in tools.run("get-offsets", &["--topic", topic])?.lines() {
                total += offset.rsplit(':').next().unwrap_or_default().parse::<u64>()?;
            }
            ensure!(total == 20_000, "{total} records are in the topic");
            Ok(())
        })
    })
}

/// The events that a verifiable tool printed, one JSON object on each line.
fn events(output: &str) -> Result<Vec<Value>> {
    output
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("odd line {line}")))
        .collect()
}

fn named<'a>(events: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["name"] == name)
}

#[test]
fn verifiable_producer_and_consumer() -> Outcome {
    suite::run(Cost::Heavy, || {
        with_tools(|tools| {
            let topic = &unique("tools-verifiable");
            tools.run("topics", &["--create", "--topic", topic, "--partitions", "2"])?;
            let produce = ["--topic", topic, "--max-messages", "2000", "--acks", "-1"];
            let produced = events(&tools.run("verifiable-producer", &produce)?)?;
            ensure!(named(&produced, "producer_send_error").next().is_none(), "a send failed");
            let sent: BTreeSet<_> = named(&produced, "producer_send_success")
                .map(|event| (event["partition"].as_i64(), event["offset"].as_i64(), event["value"].as_str()))
                .collect();
            ensure!(sent.len() == 2000, "{} records acknowledged", sent.len());
            let consume = ["--topic", topic, "--group-id", topic, "--max-messages", "2000", "--verbose"];
            let consumed = events(&tools.run("verifiable-consumer", &consume)?)?;
            let read: BTreeSet<_> = named(&consumed, "record_data")
                .map(|event| (event["partition"].as_i64(), event["offset"].as_i64(), event["value"].as_str()))
                .collect();
            ensure!(read == sent, "{} records read, other than those acknowledged", read.len());
            let committed =
                named(&consumed, "offsets_committed").filter(|event| event["success"] == true).count();
            ensure!(committed > 0, "no offset commit succeeded");
            Ok(())
        })
    })
}

#[test]
fn descriptions() -> Outcome {
    suite::run(Cost::Heavy, || {
        with_tools(|tools| {
            let topic = &unique("tools-describe");
            let create =
                ["--create", "--topic", topic, "--partitions", "1", "--config", "retention.ms=600000"];
            tools.run("topics", &create)?;
            let versions = tools.run("broker-api-versions", &[])?;
            for api in ["Produce(0): 0 to 1", "Fetch(1): 4 to 1", "ApiVersions(18): 0 to ", "JoinGroup(11): "]
            {
                contains(&versions, api)?;
            }
            let of_topic = ["--describe", "--entity-type", "topics", "--entity-name", topic];
            contains(&tools.run("configs", &of_topic)?, "retention.ms=600000")?;
            let all = tools.run("configs", &[&of_topic[..], &["--all"]].concat())?;
            for config in ["cleanup.policy=delete", "segment.bytes=1073741824", "max.message.bytes=1048588"] {
                contains(&all, config)?;
            }
            let broker = ["--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"];
            let broker = tools.run("configs", &broker)?;
            for config in ["node.id=1", "auto.create.topics.enable=true", "num.partitions="] {
                contains(&broker, config)?;
            }
            Ok(())
        })
    })
}

/// Every file of a partition's log, with its segments in order.
fn partition_files(data: &Path, partition: &str, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![data.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
                if entry.file_name() == partition {
                    found.extend(foreign::files(&entry.path(), extension)?);
                }
            }
        }
    }
    ensure!(!found.is_empty(), "no .{extension} file of {partition} below {}", data.display());
    Ok(found)
}

#[test]
fn dump_log_reads_our_segments() -> Outcome {
    suite::run(Cost::Heavy, || {
        KafkaTools::need()?;
        let mut broker = Broker::start(Options::default())?;
        let tools = KafkaTools::find(broker.bootstrap())?;
        let mut client = Wire::connect(&broker.bootstrap())?;
        client.create_topic(
            "dumped",
            1,
            &[("segment.bytes", "1048576"), ("index.interval.bytes", "4096")],
        )?;
        let codecs =
            [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
        let mut batches = 0;
        for (first, codec) in (0..4000).step_by(10).zip(codecs.iter().cycle()) {
            let answer = client.produce("dumped", 0, wire::batch(first..first + 10, 1024, *codec)?)?;
            ensure!(
                answer.error == 0 && answer.base_offset == first,
                "odd answer {answer:?} to batch {first}"
            );
            batches += 1;
        }
        broker.stop()?;
        let segments = partition_files(broker.data_dir(), "dumped-0", "log")?;
        ensure!(segments.len() > 1, "the segments did not roll: {segments:?}");
        check_segments(&tools, &segments, batches)?;
        for extension in ["index", "timeindex"] {
            check_indexes(&tools, &partition_files(broker.data_dir(), "dumped-0", extension)?)?;
        }
        Ok(())
    })
}

fn check_segments(tools: &KafkaTools, segments: &[PathBuf], batches: usize) -> Result<()> {
    let dump = dump(tools, segments, &["--print-data-log"])?;
    let valid = dump
        .lines()
        .filter(|line| line.starts_with("baseOffset:") && line.ends_with("isvalid: true"))
        .count();
    ensure!(valid == batches, "{valid} valid batches of {batches}:\n{}", process::tail(&dump));
    let mut next = 0;
    for line in dump.lines().filter(|line| line.starts_with("| offset: ")) {
        let payload = line.split("payload: ").nth(1).context("a record without payload")?;
        let wanted = format!("| offset: {next} ");
        ensure!(line.starts_with(&wanted) && payload.starts_with(&format!("{next} ")), "at {next}: {line}");
        next += 1;
    }
    ensure!(next == 4000, "{next} records in the dump");
    Ok(())
}

fn check_indexes(tools: &KafkaTools, indexes: &[PathBuf]) -> Result<()> {
    let sane = dump(tools, indexes, &["--index-sanity-check"])?;
    let passed = sane.lines().filter(|line| line.contains("passed sanity check")).count();
    ensure!(passed == indexes.len(), "{passed} of {} indexes are sane:\n{sane}", indexes.len());
    let dump = dump(tools, indexes, &[])?;
    let entries = dump.lines().filter(|line| line.contains("offset: ")).count();
    ensure!(entries > 10, "{entries} index entries:\n{}", process::tail(&dump));
    Ok(())
}

/// Dumps files; what the tool finds wrong with them (it prints that to standard error and goes on) is an error. Of each segment
/// but the first, Apache Kafka's own, too, it says that -1 is followed by its base offset.
fn dump(tools: &KafkaTools, files: &[PathBuf], more: &[&str]) -> Result<String> {
    let list: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
    let mut command = tools.command("dump-log");
    command.args(more).args(["--files", &list.join(",")]);
    let ended = process::Process::spawn(&mut command, "dump-log", Duration::from_secs(90))?.wait()?;
    let complaints = ["ismatch", "corrupt", "not valid", "out of order", "is followed by"];
    let complains = |line: &&str| complaints.iter().any(|sign| line.contains(sign));
    let complaint =
        ended.stderr.lines().find(|line| complains(line) && !line.starts_with("  -1 is followed by"));
    ensure!(ended.status.success() && complaint.is_none(), "dump-log ({}): {}", ended.status, ended.stderr);
    Ok(ended.stdout)
}
