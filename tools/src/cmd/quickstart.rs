//! `millrace quickstart`: a broker on an empty directory, a topic, a short load, its latencies, and how to connect.

use std::fs;
use std::path::PathBuf;

use bench::options::EndToEndOptions;
use bench::progress::unobserved;
use bench::report::{Percentiles, Report as BenchReport};
use broker::config::{Entry, load};
use clap::Args;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::logging;
use crate::node::Node;
use crate::output::{Format, OutputArgs, Report, line, print, table};
use crate::progress::{bar, millis};
use crate::startup::prepare;

/// The topic of the load.
const TOPIC: &str = "quickstart";
const PARTITIONS: i32 = 4;
const RECORD_BYTES: usize = 1024;

/// How to look at Millrace for the first time.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  millrace quickstart                          on ./millrace-data and port 9092, until Ctrl-C
  millrace quickstart --exit --format json     the figures alone, for a script
  millrace quickstart --data-dir /mnt/nvme/try --rate 10000 --seconds 20

The data stays in the directory; `millrace serve --data-dir DIR` serves it again.")]
pub(crate) struct QuickstartArgs {
    /// A directory that is empty or does not exist yet; use the device that you want to measure
    #[arg(long, value_name = "DIR", default_value = "millrace-data")]
    data_dir: PathBuf,
    /// Where clients connect; port 0 takes a free one
    #[arg(long, value_name = "PLAINTEXT://HOST:PORT", default_value = "PLAINTEXT://127.0.0.1:9092")]
    listener: String,
    /// Number of shards; by default one for each CPU
    #[arg(long, value_name = "N", default_value = "0")]
    shards: String,
    /// Records a second
    #[arg(long, default_value_t = 1000.0)]
    rate: f64,
    /// Length of the load
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Stop after the report instead of serving on
    #[arg(long)]
    exit: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What was measured, and where the broker is.
#[derive(Serialize)]
struct Quickstart {
    bootstrap: String,
    data_dir: String,
    topic: &'static str,
    partitions: i32,
    load: BenchReport,
}

pub(crate) fn run(args: &QuickstartArgs) -> Result<(), Failure> {
    must_be_empty(&args.data_dir)?;
    let people = args.output.format == Format::Text;
    let say = |text: &str| {
        if people {
            line(text);
        }
    };
    let dir = args.data_dir.display().to_string();
    let flags = vec![
        Entry::flag("--data-dir", "log.dirs", &dir),
        Entry::flag("--listener", "listeners", &args.listener),
        Entry::flag("--shards", "shards", &args.shards),
        // The port of the metrics may be taken, and a first look does not need them.
        Entry::flag("--http", "http.listener", "off"),
    ];
    let config = load(None, flags)?.config;
    logging::start("warn", args.output.format)?;
    let node = Node::start(prepare(config)?)?;
    let Some(bootstrap) = node.config.advertised(0).map(broker::config::Listener::host_port) else {
        return Err(Failure::new(Exit::Refused, "the node has no listener", "name one with --listener"));
    };
    say(&format!("A broker with {} shards serves {bootstrap}, its data is in {dir}.", node.config.shards));
    say(&format!(
        "Load: {} records of {RECORD_BYTES} bytes a second for {} s over {PARTITIONS} partitions, acks=all; each is read again.",
        args.rate, args.seconds
    ));
    let load = measure(args, &bootstrap, people);
    let load = match load {
        Ok(load) => load,
        Err(failure) => {
            node.stop()?;
            return Err(failure);
        }
    };
    let valid = load.valid;
    print(
        args.output.format,
        &Quickstart { bootstrap, data_dir: dir, topic: TOPIC, partitions: PARTITIONS, load },
    );
    if args.exit {
        node.stop()?;
        return if valid { Ok(()) } else { Err(not_valid()) };
    }
    say("\nThe broker goes on serving; Ctrl-C stops it.");
    node.serve()
}

fn must_be_empty(dir: &PathBuf) -> Result<(), Failure> {
    let Ok(mut entries) = fs::read_dir(dir) else { return Ok(()) };
    if entries.next().is_none() {
        return Ok(());
    }
    let name = dir.display();
    Err(Failure::new(
        Exit::Environment,
        format!("{name} is not empty, and a first look starts on an empty directory"),
        format!(
            "serve what is there with `millrace serve --data-dir {name}`, remove it, or name another with --data-dir"
        ),
    ))
}

fn measure(args: &QuickstartArgs, bootstrap: &str, people: bool) -> Result<BenchReport, Failure> {
    let mut options = EndToEndOptions::new(bootstrap, TOPIC);
    options.target.partitions = PARTITIONS;
    options.load.record_size_bytes = RECORD_BYTES;
    options.load.rate = args.rate;
    options.load.duration_s = args.seconds;
    options.load.warmup_s = 1.0;
    let observer = if people { bar() } else { unobserved() };
    bench::run_end_to_end(&options, observer).map_err(|error| {
        let cure = "the broker is fine if `millrace bench` works on it; else its log says more";
        Failure::new(Exit::Refused, format!("the load did not run: {error}"), cure)
    })
}

fn not_valid() -> Failure {
    let cure = "this machine is too busy or too slow for the load: lower --rate";
    Failure::new(Exit::Refused, "the figures are not valid, for the reasons printed with them", cure)
}

impl Report for Quickstart {
    fn text(&self) -> String {
        let latencies = [
            ("produced, until acknowledged as durable", "response"),
            ("read again, from when it was due", "end_to_end"),
        ];
        let row = |(name, key): (&str, &str)| {
            let p: &Percentiles = self.load.latency_us.get(key)?;
            let cells = [p.p50, p.p90, p.p99, p.p99_9, p.max].map(millis);
            Some(std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>())
        };
        let rows: Vec<Vec<String>> = latencies.into_iter().filter_map(row).collect();
        let mut text = format!("\n{}\n", table(&["LATENCY", "p50", "p90", "p99", "p99.9", "max"], &rows));
        for reason in &self.load.invalid_reasons {
            text.push_str(&format!("not valid: {reason}\n"));
        }
        text + "\n" + &how_to_connect(&self.bootstrap)
    }
}

/// First steps with the clients that most people have.
fn how_to_connect(bootstrap: &str) -> String {
    format!(
        "\
Connect:
  kcat     echo hello | kcat -b {bootstrap} -t hello -P
           kcat -b {bootstrap} -t hello -C -o beginning
  Java     props.put(\"bootstrap.servers\", \"{bootstrap}\");   // org.apache.kafka:kafka-clients, any version from 2.1
           kafka-console-consumer.sh --bootstrap-server {bootstrap} --topic {TOPIC}
  Python   from confluent_kafka import Producer             # pip install confluent-kafka
           p = Producer({{\"bootstrap.servers\": \"{bootstrap}\"}}); p.produce(\"{TOPIC}\", b\"hello\"); p.flush()
  here     millrace topic describe {TOPIC} --bootstrap {bootstrap}"
    )
}
