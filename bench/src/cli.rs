//! `millrace bench`: the command line of the load generator. Owns what goes to standard output and the exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use crate::error::BenchError;
use crate::options::{ConsumeOptions, EndToEndOptions, ProduceOptions};
use crate::progress::Observer;
use crate::run::{run_consume, run_end_to_end, run_produce};
use crate::text::Text;

/// Exit code of a run whose result says that it is not valid; the others are those of the `millrace` program.
pub const INVALID: u8 = 8;
const USAGE: u8 = 2;
const UNREACHABLE: u8 = 6;

/// Loads a broker that speaks Kafka's protocol, and measures it
///
/// Open loop: a record is due at its time whatever became of those before it, and its latency counts from then.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: Command,
    /// How the result is written
    #[arg(long, value_enum, default_value_t = Format::Text, global = true)]
    format: Format,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Produces records at a rate and measures their acknowledgement
    Produce(Box<ProduceOptions>),
    /// Reads a topic from its start and measures the rate
    Consume(Box<ConsumeOptions>),
    /// Produces and reads at once and measures from due to read
    EndToEnd(Box<EndToEndOptions>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table.
    Text,
    /// One line of JSON.
    Json,
}

impl BenchArgs {
    /// Whether the result is for a program, which wants no progress bar.
    pub fn for_programs(&self) -> bool {
        self.format == Format::Json
    }
}

/// Makes the run and prints its result: 0 when it is valid, [`INVALID`] when the result says that it is not, and
/// another code when there is none.
pub fn run(args: BenchArgs, observer: Observer) -> ExitCode {
    let report = match &args.command {
        Command::Produce(options) => run_produce(options, observer),
        Command::Consume(options) => run_consume(options, observer),
        Command::EndToEnd(options) => run_end_to_end(options, observer),
    };
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            // Nobody is left to tell when standard error is closed.
            let _ = writeln!(io::stderr(), "error: {error}");
            return match error {
                BenchError::Option(_) => ExitCode::from(USAGE),
                BenchError::Connect { .. } => ExitCode::from(UNREACHABLE),
                _ => ExitCode::FAILURE,
            };
        }
    };
    let mut out = io::stdout().lock();
    let written = match args.format {
        Format::Json => writeln!(out, "{}", report.to_json()),
        Format::Text => write!(out, "{}", Text(&report)),
    };
    match written {
        Err(_) => ExitCode::FAILURE,
        Ok(()) if report.valid => ExitCode::SUCCESS,
        Ok(()) => ExitCode::from(INVALID),
    }
}
