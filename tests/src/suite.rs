//! Wraps every process-level test: what its failure prints, what a missing tool means, what may run at once.
//!
//! 1. A test that needs a tool that the machine lacks says so on the real standard error and passes; where the
//!    environment says `CI=true` it fails.
//! 2. Tests of `Cost::Heavy` (a JVM, a compiler) of one program run one after the other.
//! 3. Notes (log tails) are printed only when the test failed; a `problem` fails a test whose body passed.

use std::cell::RefCell;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow, bail};

/// How much of the machine a test takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Runs beside others.
    Light,
    /// Has the machine to itself, as far as other heavy tests go.
    Heavy,
}

/// Something that the machine lacks and that a test cannot do without.
#[derive(Debug)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this machine lacks {}", self.0)
    }
}

impl std::error::Error for Missing {}

/// The error by which a test body says that it cannot run here: `what` names what is to be installed.
pub fn missing(what: impl Into<String>) -> anyhow::Error {
    anyhow!(Missing(what.into()))
}

thread_local! {
    static NOTES: RefCell<Vec<(String, String)>> = const { RefCell::new(Vec::new()) };
    static PROBLEMS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

static HEAVY: Mutex<()> = Mutex::new(());

/// Keeps a text (the end of a log) that is printed if the running test fails.
pub fn note(title: impl Into<String>, text: impl Into<String>) {
    NOTES.with_borrow_mut(|notes| notes.push((title.into(), text.into())));
}

/// Fails the running test at its end: for what is found where no error can be returned.
pub fn problem(text: impl Into<String>) {
    PROBLEMS.with_borrow_mut(|problems| problems.push(text.into()));
}

/// Why a test failed, printed as one line: where in a harness an error came from is of no interest.
pub struct Failure(String);

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a test returns.
pub type Outcome = Result<(), Failure>;

/// Runs the body of a test.
pub fn run<F: FnOnce() -> Result<()>>(cost: Cost, body: F) -> Outcome {
    let name = std::any::type_name::<F>().trim_end_matches("::{{closure}}");
    // A test that failed while it had the machine leaves nothing behind that the next one minds.
    let _turn = (cost == Cost::Heavy).then(|| HEAVY.lock().unwrap_or_else(PoisonError::into_inner));
    NOTES.with_borrow_mut(Vec::clear);
    PROBLEMS.with_borrow_mut(Vec::clear);
    let outcome = body().and_then(|()| {
        let problems = PROBLEMS.take();
        if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n")) }
    });
    match outcome {
        Err(error) if error.is::<Missing>() && !in_ci() => {
            say(&format!("SKIPPED {name}: {error}"));
            Ok(())
        }
        Err(error) => {
            for (title, text) in NOTES.take() {
                say(&format!("--- {name}: {title}\n{}\n---", text.trim_end()));
            }
            Err(Failure(format!("{name}: {error:#}")))
        }
        Ok(()) => Ok(()),
    }
}

/// Whether a missing tool is a failure.
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false" && value != "0")
}

/// Writes a line that the test harness does not capture.
pub fn say(line: &str) {
    // Nothing can be done about a closed standard error.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
