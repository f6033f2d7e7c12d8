//! The simulator: whole nodes under load in seeded worlds that lose power, tear writes, fill disks and fail flushes; no
//! acknowledged record is lost, offsets have no gaps, nothing is there twice.
//!
//! One `u64` decides everything of a run; a failing seed prints its story and the command that repeats it (`seeds`).
//!
//! | file | owns |
//! |---|---|
//! | `plan`, `dice` | what a seed decides; its streams of random numbers |
//! | `world` | the node: its start, what it tells, its end |
//! | `nemesis` | faults, and what an operator does about them |
//! | `producer`, `fetcher`, `committer`, `client`, `value` | the load |
//! | `history`, `timeline` | what clients saw; what happened, and how often what must happen sometimes did |
//! | `checks` | one check per file |
//! | `run`, `seeds` | one run; many |
//! | `planted` | bugs that must be caught |
//!
//! It proves the logic of broker and storage, not io_uring or `O_DIRECT`: the process-level suites do that.

mod checks;
mod client;
mod committer;
mod dice;
mod fetcher;
mod history;
mod nemesis;
mod plan;
#[cfg(debug_assertions)]
mod planted;
mod producer;
mod run;
mod seeds;
mod timeline;
mod value;
mod world;

/// One seed in so many runs twice.
const REPEATED: usize = 50;

#[test]
#[expect(clippy::print_stdout, reason = "whoever runs many seeds wants to know what they met")]
fn nothing_is_lost() {
    let wanted = seeds::wanted();
    let total = seeds::run_all(wanted.clone());
    if let Some(failed) = total.failed {
        panic!("{}", failed.report());
    }
    println!("{} runs, {} records read at the end; {:?}", total.runs, total.records, total.met);
    let never_met = total.never_met();
    assert!(wanted.end - wanted.start < 1000 || never_met.is_empty(), "these runs never met {never_met:?}");
}

#[test]
fn seeds_that_found_bugs_pass() {
    for (seed, bug) in seeds::REGRESSIONS {
        let outcome = run::run(seed);
        assert!(outcome.breaches.is_empty(), "{bug}:\n{}", outcome.report());
    }
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    for seed in seeds::wanted().step_by(REPEATED).take(20) {
        let (first, second) = (run::run(seed), run::run(seed));
        assert_eq!(first.story, second.story, "seed {seed}");
        assert_eq!((first.trace, first.records), (second.trace, second.records), "seed {seed}");
    }
}
