//! How the program ends when something is wrong: documented exit codes, and problems that say what to do.

use std::process::ExitCode;

use broker::config::{Mistake, Mistakes, Place};
use serde::Serialize;

use crate::output::Format;

/// The exit codes, which scripts may rely on; `EXIT_CODES` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The request was refused, or did not finish.
    Refused = 1,
    /// The command line is wrong (clap itself ends with this one).
    Usage = 2,
    /// The configuration is wrong.
    Configuration = 3,
    /// This machine or the data directory does not serve.
    Environment = 4,
    /// Storage failed while serving.
    Storage = 5,
    /// No broker answers.
    Unreachable = 6,
    /// An inspection found damage.
    Damage = 7,
}

/// The exit codes for `--help` and the operations page.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done, or stopped by SIGTERM or SIGINT
  1  the broker refused the request, or it did not finish
  2  the command line is wrong
  3  the configuration is wrong, every mistake was printed
  4  this machine or the data directory does not serve (kernel, limits, file system, port in use, directory locked)
  5  storage failed while serving; what was acknowledged is on disk, find the cause before starting again
  6  no broker answers at the address
  7  `log inspect` found damage
  8  `bench` measured, but the figures are not valid (the result says why)";

/// One thing that is wrong, and what to do.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Problem {
    /// Where it stands, for a mistake in a configuration.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<Place>,
    /// The setting, for a mistake in a configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// What is wrong.
    pub(crate) what: String,
    /// What to do.
    pub(crate) cure: String,
}

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) problems: Vec<Problem>,
}

impl Problem {
    pub(crate) fn new(what: impl Into<String>, cure: impl Into<String>) -> Problem {
        Problem { place: None, key: None, what: what.into(), cure: cure.into() }
    }
}

impl From<Mistake> for Problem {
    fn from(mistake: Mistake) -> Problem {
        Problem { place: Some(mistake.place), key: mistake.key, what: mistake.what, cure: mistake.cure }
    }
}

impl From<Mistakes> for Failure {
    fn from(mistakes: Mistakes) -> Failure {
        let problems = mistakes.0.into_iter().map(Problem::from).collect();
        Failure { exit: Exit::Configuration, problems }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        write!(f, "{}\n    -> {}", self.what, self.cure)
    }
}

impl Failure {
    /// A failure of one problem.
    pub(crate) fn new(exit: Exit, what: impl Into<String>, cure: impl Into<String>) -> Failure {
        Failure { exit, problems: vec![Problem::new(what, cure)] }
    }

    /// Prints every problem to standard error and gives the exit code.
    pub(crate) fn report(&self, format: Format) -> ExitCode {
        match format {
            Format::Json => {
                let value = serde_json::json!({ "exit_code": self.exit as u8, "problems": self.problems });
                eprintln!("{value}");
            }
            Format::Text => {
                for problem in &self.problems {
                    eprintln!("error: {problem}");
                }
            }
        }
        ExitCode::from(self.exit as u8)
    }
}
