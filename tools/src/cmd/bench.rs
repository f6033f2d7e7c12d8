//! `millrace bench`: the load generator's own command line, with a progress bar on a terminal.

use std::process::ExitCode;

use bench::cli::BenchArgs;
use bench::progress::unobserved;

use crate::progress::bar;

pub(crate) fn run(args: BenchArgs) -> ExitCode {
    let observer = if args.for_programs() { unobserved() } else { bar() };
    bench::cli::run(args, observer)
}
