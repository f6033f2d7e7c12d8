//! What a run is asked to do: the command line's options, which are the library's options as well and go into every
//! result, so that it can be repeated. Owns the defaults and the checks that need no broker.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use serde::Serialize;

use crate::error::BenchError;

/// Smallest record of an end-to-end run in bytes: the run's id and the due time travel inside it.
pub const STAMP_BYTES: usize = 16;

/// Largest record that can be asked for, in bytes; a record must fit one request.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// Which topic on which cluster.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Target {
    /// Address of any broker of the cluster
    #[arg(long, value_name = "HOST:PORT")]
    pub bootstrap: String,
    /// Topic; it is created when it does not exist
    #[arg(long)]
    pub topic: String,
    /// Partitions of the topic; one that exists must have exactly that many
    #[arg(long, default_value_t = 1)]
    pub partitions: i32,
    /// Replicas of each partition when the topic is created; -1 leaves it to the broker
    #[arg(long, default_value_t = -1, allow_negative_numbers = true)]
    pub replication_factor: i16,
    /// Configuration of the topic when it is created, repeatable (flush.messages=1)
    #[arg(long = "topic-config", value_name = "NAME=VALUE")]
    pub topic_configs: Vec<String>,
    /// Seconds to go on trying until the broker answers and the partitions have leaders
    #[arg(long = "wait", value_name = "SECONDS", default_value_t = 30.0)]
    pub wait_s: f64,
}

/// How records are made, sent and measured.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Load {
    /// Bytes of each record's value
    #[arg(long = "record-size", value_name = "BYTES", default_value_t = 1024)]
    pub record_size_bytes: usize,
    /// Records per second over all producers; 0 sends as fast as the requests in flight allow
    #[arg(long, value_name = "PER_SECOND", default_value_t = 1000.0)]
    pub rate: f64,
    /// Seconds that are measured, after the warm-up
    #[arg(long = "duration", value_name = "SECONDS", default_value_t = 10.0)]
    pub duration_s: f64,
    /// Seconds before the measured part; its records are sent and not counted
    #[arg(long = "warmup", value_name = "SECONDS", default_value_t = 0.0)]
    pub warmup_s: f64,
    /// Stop after that many records, warm-up included, if that is earlier
    #[arg(long, value_name = "COUNT")]
    pub records: Option<u64>,
    /// Acknowledgement that is waited for
    #[arg(long, value_enum, default_value_t = Acks::All)]
    pub acks: Acks,
    /// Produce as an idempotent producer (needs acks=all)
    #[arg(long)]
    pub idempotent: bool,
    /// Producers, each with a connection of its own to every broker
    #[arg(long, default_value_t = 1)]
    pub producers: u32,
    /// How long a record may wait for others of its partition
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub linger_ms: f64,
    /// Largest batch of a partition, before compression; a record that is larger travels alone
    #[arg(long, value_name = "BYTES", default_value_t = 16384)]
    pub batch_bytes: usize,
    /// Requests on the way per connection
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub max_in_flight: u32,
    /// Codec of the batches
    #[arg(long, value_enum, default_value_t = Compression::None)]
    pub compression: Compression,
    /// Keys of the records; partitions are taken in turn whatever the key
    #[arg(long, value_enum, default_value_t = Keys::None)]
    pub keys: Keys,
    /// Random share of each value, 0 to 1; the rest is zeros
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    pub entropy: f64,
    /// Seed of the values
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// A record that is sent later than this after it was due (and its linger) makes the run invalid
    #[arg(long, value_name = "MS", default_value_t = 1000.0)]
    pub slack_ms: f64,
}

/// How records are fetched.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Fetching {
    /// Consumers, each with a connection of its own; the partitions are divided among them
    #[arg(long, default_value_t = 1)]
    pub consumers: u32,
    /// How long a broker may hold a fetch that has nothing to answer
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pub fetch_wait_ms: i32,
    /// Bytes that end a broker's wait
    #[arg(long, value_name = "BYTES", default_value_t = 1)]
    pub fetch_min_bytes: i32,
    /// Most bytes of one fetch
    #[arg(long, value_name = "BYTES", default_value_t = 52_428_800)]
    pub fetch_max_bytes: i32,
    /// Most bytes of one partition in one fetch
    #[arg(long, value_name = "BYTES", default_value_t = 1_048_576)]
    pub fetch_partition_bytes: i32,
}

/// What is common to every run: the generator itself and what it writes down.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Generator {
    /// Threads of the generator
    #[arg(long, default_value_t = 1)]
    pub shards: u16,
    /// Write the histograms of each second to this file (HdrHistogram interval log, can be merged)
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub hlog: Option<PathBuf>,
    /// Process whose CPU time and resident memory are read before and after (a broker on this machine)
    #[arg(long, value_name = "PID")]
    #[serde(skip)]
    pub broker_pid: Option<u32>,
}

/// `millrace bench produce`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct ProduceOptions {
    /// Where to.
    #[command(flatten)]
    #[serde(flatten)]
    pub target: Target,
    /// What.
    #[command(flatten)]
    #[serde(flatten)]
    pub load: Load,
    /// By what means.
    #[command(flatten)]
    #[serde(flatten)]
    pub generator: Generator,
    /// Send nothing and measure how punctual the generator itself is
    #[arg(long)]
    pub null_run: bool,
}

/// `millrace bench consume`: from the earliest offset to the end that the partitions had at the start.
#[derive(Args, Clone, Debug, Serialize)]
pub struct ConsumeOptions {
    /// Where from.
    #[command(flatten)]
    #[serde(flatten)]
    pub target: Target,
    /// Stop after that many records, if that is earlier
    #[arg(long, value_name = "COUNT")]
    pub records: Option<u64>,
    /// Stop after that many seconds, if that is earlier
    #[arg(long = "duration", value_name = "SECONDS")]
    pub duration_s: Option<f64>,
    /// How.
    #[command(flatten)]
    #[serde(flatten)]
    pub fetching: Fetching,
    /// By what means.
    #[command(flatten)]
    #[serde(flatten)]
    pub generator: Generator,
}

/// `millrace bench end-to-end`: producers and consumers in one process, on one clock.
#[derive(Args, Clone, Debug, Serialize)]
pub struct EndToEndOptions {
    /// Where to and from.
    #[command(flatten)]
    #[serde(flatten)]
    pub target: Target,
    /// What.
    #[command(flatten)]
    #[serde(flatten)]
    pub load: Load,
    /// How it is read.
    #[command(flatten)]
    #[serde(flatten)]
    pub fetching: Fetching,
    /// By what means.
    #[command(flatten)]
    #[serde(flatten)]
    pub generator: Generator,
}

/// Kafka's acknowledgement levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Acks {
    /// Every in-sync replica.
    #[value(alias = "-1")]
    All,
    /// The leader.
    #[value(name = "1")]
    #[serde(rename = "1")]
    Leader,
    /// None: the broker does not answer, a record counts as acknowledged when it is written to the socket.
    #[value(name = "0")]
    #[serde(rename = "0")]
    None,
}

impl Acks {
    /// The value of the Produce request's field.
    pub fn wire(self) -> i16 {
        match self {
            Acks::All => -1,
            Acks::Leader => 1,
            Acks::None => 0,
        }
    }
}

/// Codecs of a record batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// As it is.
    None,
    /// gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// Keys of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Keys {
    /// Null.
    None,
    /// The record's number in the run, eight bytes, big-endian.
    Sequence,
}

/// Carries one set of options through clap alone, so that the library has the command line's defaults.
#[derive(Parser)]
struct Only<T: Args> {
    #[command(flatten)]
    options: T,
}

fn with_defaults<T: Args>(bootstrap: &str, topic: &str) -> T {
    Only::<T>::parse_from(["bench", "--bootstrap", bootstrap, "--topic", topic]).options
}

impl ProduceOptions {
    /// The command line's defaults for one topic.
    pub fn new(bootstrap: &str, topic: &str) -> Self {
        with_defaults(bootstrap, topic)
    }

    /// Finds what contradicts itself, before anything is sent.
    pub fn check(&self) -> Result<(), BenchError> {
        self.target.check()?;
        self.load.check()?;
        self.generator.check()?;
        if self.null_run && self.load.rate == 0.0 {
            return Err(BenchError::option("--null-run needs a --rate"));
        }
        Ok(())
    }
}

impl ConsumeOptions {
    /// The command line's defaults for one topic.
    pub fn new(bootstrap: &str, topic: &str) -> Self {
        with_defaults(bootstrap, topic)
    }

    /// Finds what contradicts itself, before anything is sent.
    pub fn check(&self) -> Result<(), BenchError> {
        self.target.check()?;
        self.fetching.check()?;
        self.generator.check()?;
        check_seconds("--duration", self.duration_s.unwrap_or(1.0), false)
    }
}

impl EndToEndOptions {
    /// The command line's defaults for one topic.
    pub fn new(bootstrap: &str, topic: &str) -> Self {
        with_defaults(bootstrap, topic)
    }

    /// Finds what contradicts itself, before anything is sent.
    pub fn check(&self) -> Result<(), BenchError> {
        self.target.check()?;
        self.load.check()?;
        self.fetching.check()?;
        self.generator.check()?;
        if self.load.rate == 0.0 {
            return Err(BenchError::option(
                "end-to-end needs a --rate: latency counts from when a record is due",
            ));
        }
        if self.load.record_size_bytes < STAMP_BYTES {
            return Err(BenchError::option(format!(
                "end-to-end needs a --record-size of {STAMP_BYTES} or more"
            )));
        }
        Ok(())
    }
}

impl Target {
    fn check(&self) -> Result<(), BenchError> {
        if self.partitions < 1 {
            return Err(BenchError::option("--partitions must be 1 or more"));
        }
        self.topic_config_pairs()?;
        check_seconds("--wait", self.wait_s, true)
    }

    /// The topic's configuration as names and values.
    pub fn topic_config_pairs(&self) -> Result<Vec<(&str, &str)>, BenchError> {
        self.topic_configs
            .iter()
            .map(|pair| {
                pair.split_once('=')
                    .ok_or_else(|| BenchError::option(format!("--topic-config {pair}: NAME=VALUE expected")))
            })
            .collect()
    }
}

impl Load {
    fn check(&self) -> Result<(), BenchError> {
        check_seconds("--duration", self.duration_s, false)?;
        check_seconds("--warmup", self.warmup_s, true)?;
        check_seconds("--linger-ms", self.linger_ms, true)?;
        check_seconds("--slack-ms", self.slack_ms, true)?;
        if !(self.rate == 0.0 || (0.001..=1e9).contains(&self.rate)) {
            return Err(BenchError::option("--rate must be 0, or from 0.001 to 1e9 records per second"));
        }
        if !(0.0..=1.0).contains(&self.entropy) {
            return Err(BenchError::option("--entropy must be from 0 to 1"));
        }
        if self.record_size_bytes > RECORD_BYTES_MAX || self.batch_bytes > RECORD_BYTES_MAX {
            return Err(BenchError::option(format!(
                "--record-size and --batch-bytes must be at most {RECORD_BYTES_MAX}"
            )));
        }
        if self.producers == 0 || self.max_in_flight == 0 {
            return Err(BenchError::option("--producers and --max-in-flight must be 1 or more"));
        }
        if self.idempotent && (self.acks != Acks::All || self.max_in_flight > 5) {
            return Err(BenchError::option("--idempotent needs --acks all and --max-in-flight of at most 5"));
        }
        Ok(())
    }
}

impl Fetching {
    fn check(&self) -> Result<(), BenchError> {
        let least = [self.fetch_max_bytes, self.fetch_partition_bytes].into_iter().min().unwrap_or(1);
        if self.consumers == 0 || least < 1 || self.fetch_wait_ms < 0 || self.fetch_min_bytes < 0 {
            return Err(BenchError::option("--consumers and the fetch sizes must be 1 or more"));
        }
        Ok(())
    }
}

impl Generator {
    fn check(&self) -> Result<(), BenchError> {
        if self.shards == 0 { Err(BenchError::option("--shards must be 1 or more")) } else { Ok(()) }
    }
}

/// A time option must be a sane number: at most a month, so that no sum of them overflows.
fn check_seconds(name: &str, value: f64, zero_is_fine: bool) -> Result<(), BenchError> {
    let least = if zero_is_fine { 0.0 } else { 0.001 };
    if (least..=2_678_400.0).contains(&value) {
        Ok(())
    } else {
        Err(BenchError::option(format!("{name} must be from {least} to 2678400")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_command_line_and_pass_their_own_check() {
        let produce = ProduceOptions::new("127.0.0.1:9092", "t");
        assert_eq!((produce.load.rate, produce.load.max_in_flight, produce.load.linger_ms), (1000.0, 5, 0.0));
        produce.check().unwrap();
        ConsumeOptions::new("127.0.0.1:9092", "t").check().unwrap();
        EndToEndOptions::new("127.0.0.1:9092", "t").check().unwrap();
    }

    #[test]
    fn contradictions_are_named() {
        let mut options = ProduceOptions::new("127.0.0.1:9092", "t");
        options.load.idempotent = true;
        options.load.acks = Acks::Leader;
        assert!(options.check().unwrap_err().to_string().contains("--idempotent"));

        let mut options = EndToEndOptions::new("127.0.0.1:9092", "t");
        options.load.record_size_bytes = STAMP_BYTES - 1;
        assert!(options.check().unwrap_err().to_string().contains("--record-size"));

        let mut options = ProduceOptions::new("127.0.0.1:9092", "t");
        options.load.duration_s = f64::NAN;
        assert!(options.check().unwrap_err().to_string().contains("--duration"));

        let mut options = ProduceOptions::new("127.0.0.1:9092", "t");
        options.target.topic_configs = vec!["flush.messages".into()];
        assert!(options.check().unwrap_err().to_string().contains("NAME=VALUE"));
    }

    #[test]
    fn acks_read_as_kafka_writes_them() {
        for (text, wire) in [("all", -1), ("-1", -1), ("1", 1), ("0", 0)] {
            assert_eq!(Acks::from_str(text, false).unwrap().wire(), wire);
        }
    }
}
