//! Many seeds over all cores, and what a failed one prints.
//!
//! Environment: `MILLRACE_SIM_SEEDS` says how many seeds run instead of the default, `MILLRACE_SIM_FROM` the first of them;
//! `MILLRACE_SIM_SEED` names the only one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::run::{self, Outcome};
use crate::timeline::{SOMETIMES, Sometimes};

/// How many seeds run when nothing is said.
const SEEDS: u64 = 1000;
/// Lines of a story that are printed at most, from its beginning and from its end.
const STORY_LINES_MAX: usize = 300;
/// Breaches of one check that are printed at most.
const BREACHES_MAX: usize = 5;

/// Seeds that found bugs, and which.
pub(crate) const REGRESSIONS: [(u64, &str); 5] = [
    (14, "after a full disk, a checkpoint waited for the journal and the journal for the checkpoint"),
    (164, "so did a stop"),
    (5949, "a stop waited for a journal file that nobody was left to free"),
    (
        9419,
        "a journal file whose length was lost after a failed flush was taken for half made, blocks and all",
    ),
    (21426, "a start cut short had put an outdated tail into a durable block"),
];

/// The seeds that the environment asks for.
pub(crate) fn wanted() -> std::ops::Range<u64> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name}={text} is no number")))
    };
    match number("MILLRACE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let from = number("MILLRACE_SIM_FROM").unwrap_or(0);
            from..from + number("MILLRACE_SIM_SEEDS").unwrap_or(SEEDS)
        }
    }
}

/// What all runs together came to.
#[derive(Default)]
pub(crate) struct Total {
    pub runs: u64,
    pub records: usize,
    pub met: BTreeMap<Sometimes, u64>,
    /// The failed run with the lowest seed of those that were tried.
    pub failed: Option<Outcome>,
}

/// Runs seeds on all cores until one fails.
pub(crate) fn run_all(seeds: std::ops::Range<u64>) -> Total {
    let (next, failed) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let total = Mutex::new(Total::default());
    let worker = || {
        while !failed.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let outcome = run::run(seed);
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            total.runs += 1;
            total.records += outcome.records;
            for what in &outcome.met {
                *total.met.entry(*what).or_default() += 1;
            }
            if !outcome.breaches.is_empty() {
                failed.store(true, Ordering::Relaxed);
                if total.failed.as_ref().is_none_or(|before| outcome.seed < before.seed) {
                    total.failed = Some(outcome);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Total {
    /// What should have happened somewhere and did not.
    pub(crate) fn never_met(&self) -> Vec<Sometimes> {
        SOMETIMES.into_iter().filter(|what| !self.met.contains_key(what)).collect()
    }
}

impl Outcome {
    /// Everything that one needs to look into a failure.
    pub(crate) fn report(&self) -> String {
        let mut text = format!("seed {}:\n", self.seed);
        let left_out = self.story.len().saturating_sub(2 * STORY_LINES_MAX);
        for (at, line) in self.story.iter().enumerate() {
            if left_out > 0 && at == STORY_LINES_MAX {
                let _ = writeln!(text, "  ({left_out} lines are left out)");
            }
            if !(STORY_LINES_MAX..STORY_LINES_MAX + left_out).contains(&at) {
                let _ = writeln!(text, "  {line}");
            }
        }
        for check in self.fired() {
            let all: Vec<_> = self.breaches.iter().filter(|breach| breach.check == check).collect();
            for breach in all.iter().take(BREACHES_MAX) {
                let _ = writeln!(text, "BREACH of \"{check}\": {}", breach.what);
            }
            if all.len() > BREACHES_MAX {
                let _ = writeln!(text, "  (and {} more of this kind)", all.len() - BREACHES_MAX);
            }
        }
        let _ = write!(
            text,
            "repeat it with: MILLRACE_SIM_SEED={} cargo test -p millrace-tests --test sim nothing_is_lost",
            self.seed
        );
        text
    }

    /// Names of the checks that fired.
    pub(crate) fn fired(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.breaches.iter().map(|breach| breach.check).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
