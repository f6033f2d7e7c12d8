//! Bugs that are planted in the storage, each of which must be caught by the check that is there for it.
//!
//! The feature `sabotage` of the storage crate is a dev-dependency of this crate alone: the resolver gives it to what
//! `cargo test` builds, where nothing is planted until [`storage::sabotage::set`] is called on the thread of a run, and to no
//! build of the program (`the_program_is_built_without_planted_bugs`).

use std::process::Command;

use storage::sabotage::{self, Sabotage};

use crate::run;

/// Seeds within which a planted bug must be caught.
const SEEDS: std::ops::Range<u64> = 0..60;

/// Plants a bug and runs seeds until one of the checks named fires; then the same seed must pass without the bug.
fn is_caught(bug: Sabotage, by: &[&str]) {
    let caught = SEEDS.clone().find_map(|seed| {
        sabotage::set(Some(bug));
        let outcome = run::run(seed);
        sabotage::set(None);
        (!outcome.breaches.is_empty()).then_some(outcome)
    });
    let Some(caught) = caught else { panic!("{bug:?} is not caught by {SEEDS:?}") };
    let fired = caught.fired();
    assert!(
        by.iter().any(|check| fired.contains(check)),
        "{bug:?} makes {fired:?} fire:\n{}",
        caught.report()
    );
    let sound = run::run(caught.seed);
    assert!(sound.breaches.is_empty(), "without a planted bug:\n{}", sound.report());
}

#[test]
fn acknowledge_before_flush_is_caught() {
    is_caught(Sabotage::AcknowledgeBeforeFlush, &["acknowledged records survive"]);
}

#[test]
fn forget_producer_state_is_caught() {
    is_caught(Sabotage::ForgetProducerState, &["no duplicates"]);
}

#[test]
fn accept_stale_block_is_caught() {
    is_caught(Sabotage::AcceptStaleBlock, &["starts again"]);
}

#[test]
fn cut_off_corrupt_middle_is_caught() {
    is_caught(Sabotage::CutOffCorruptMiddle, &["acknowledged records survive"]);
}

/// What `cargo build` makes of the whole workspace has no planted bugs in it.
#[test]
fn the_program_is_built_without_planted_bugs() {
    let arguments = ["tree", "--offline", "--workspace", "--edges", "normal,build", "--format", "{p} {f}"];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.expect("cargo runs");
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && tree.contains("millrace-storage"), "{output:?}");
    assert!(!tree.contains("sabotage"), "a build of the program would have the feature:\n{tree}");
}
