//! The command line: every command with help that teaches it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cmd;
use crate::exit::EXIT_CODES;
use crate::output::{Format, OutputArgs};

/// A durable broker that speaks Kafka's protocol: one shard per core, one binary, no JVM
#[derive(Debug, Parser)]
#[command(name = "millrace", version, after_long_help = EXIT_CODES, arg_required_else_help = true)]
#[command(long_about = "\
A durable broker that speaks Kafka's protocol: one shard per core, one binary, no JVM.

Start here:
  millrace quickstart                                  a broker, a topic, a short load, and how to connect
  millrace serve --data-dir /var/lib/millrace          a broker
  millrace topic create orders --partitions 6          a topic on it
  millrace bench end-to-end --bootstrap 127.0.0.1:9092 --topic orders --partitions 6

Every command explains itself with --help, and prints JSON with --format json.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a broker until SIGTERM or SIGINT
    Serve(Box<cmd::serve::ServeArgs>),
    /// Start a broker, measure a short load on it, and show how to connect
    Quickstart(cmd::quickstart::QuickstartArgs),
    /// Create, list, describe, delete and extend topics of any Kafka-compatible cluster
    #[command(subcommand)]
    Topic(cmd::topic::TopicCommand),
    /// List, describe and delete consumer groups of any Kafka-compatible cluster
    #[command(subcommand)]
    Group(cmd::group::GroupCommand),
    /// Check and explain a data directory, offline
    #[command(subcommand)]
    Log(cmd::log::LogCommand),
    /// Check a configuration file, print the reference of all settings
    #[command(subcommand)]
    Config(cmd::config::ConfigCommand),
    /// Generate load and measure latency against any Kafka-compatible cluster
    Bench(bench::cli::BenchArgs),
}

/// How an admin command reaches its cluster.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConnectArgs {
    /// Any broker of the cluster
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9092")]
    pub(crate) bootstrap: String,
    /// How long to wait for an answer
    #[arg(long = "timeout", value_name = "SECONDS", default_value_t = 30)]
    pub(crate) timeout_s: u32,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Values that replace those of the configuration file.
#[derive(Debug, Clone, Args)]
pub(crate) struct SourceArgs {
    /// Replace any setting, repeatable; names and units as in the file
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// The format in which a command's failures are printed.
pub(crate) fn format_of(command: &Command) -> Format {
    match command {
        Command::Serve(args) => args.output.format,
        Command::Quickstart(args) => args.output.format,
        Command::Topic(command) => command.format(),
        Command::Group(command) => command.format(),
        Command::Log(command) => command.format(),
        Command::Config(command) => command.format(),
        Command::Bench(_) => Format::Text,
    }
}

/// A configuration file as an argument.
pub(crate) type File = PathBuf;
