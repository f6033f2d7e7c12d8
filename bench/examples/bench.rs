//! The load generator as a program of its own: `cargo run --example bench -- produce --bootstrap …`.

use std::process::ExitCode;

use clap::Parser;
use millrace_bench::cli::{self, BenchArgs};
use millrace_bench::progress;

/// Loads a broker that speaks Kafka's protocol, and measures it
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    cli::run(Cli::parse().bench, progress::unobserved())
}
