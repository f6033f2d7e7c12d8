//! `cargo gen`: writes the Rust types of Kafka's messages into `protocol`, from the definitions in Kafka's jars.
//!
//! The jars are read at generation time only. What is taken from them is names, types, versions, defaults and
//! nullability; none of their text. `--check` writes nothing and fails when the checked-in output differs.

mod conditions;
mod emit;
mod jars;
mod model;
mod names;
mod output;
mod resolve;
mod versions;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;

/// The Kafka release whose messages are generated.
const KAFKA_VERSION: &str = "4.4.0";
/// The jars that define messages this broker reads or writes.
const ARTIFACTS: [&str; 5] = [
    "kafka-clients",
    "kafka-group-coordinator",
    "kafka-metadata",
    "kafka-share-coordinator",
    "kafka-transaction-coordinator",
];

/// Generates `millrace-protocol`'s messages from Kafka's jars.
#[derive(Parser)]
struct Args {
    /// Compare with the checked-in files instead of writing them; fail on any difference.
    #[arg(long)]
    check: bool,
    /// Directory that holds the jars; without it, Maven fetches them.
    #[arg(long, value_name = "DIR")]
    jars: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let protocol = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let definitions = jars::read_definitions(&jars::locate(args.jars.as_deref())?)?;
    let messages = resolve::messages(definitions).context("Kafka's definitions are not as expected")?;
    let files = emit::files(&messages)?;
    output::publish(&protocol, &files, args.check)
}
