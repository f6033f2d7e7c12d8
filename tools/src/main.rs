//! `millrace`: the one binary. Reads the command line, runs the command, ends with a documented exit code.

mod cli;
mod client;
mod cmd;
mod exit;
mod groups;
mod inspection;
mod logging;
mod node;
mod output;
mod progress;
mod segment_file;
mod settings;
mod shards;
mod startup;
mod topics;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command, format_of};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    abort_on_panic();
    let Cli { command } = Cli::parse();
    let format = format_of(&command);
    let done = match command {
        Command::Serve(args) => cmd::serve::run(&args),
        Command::Quickstart(args) => cmd::quickstart::run(&args),
        Command::Topic(command) => cmd::topic::run(command),
        Command::Group(command) => cmd::group::run(command),
        Command::Log(command) => cmd::log::run(command),
        Command::Config(command) => cmd::config::run(command),
        Command::Bench(args) => return cmd::bench::run(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(format),
    }
}

/// A broken invariant ends the process in every profile, whichever thread finds it: a shard that went on without one of its
/// tasks would serve from half a state.
fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
}
