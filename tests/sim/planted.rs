//! Bugs that are planted in the storage, each of which must be caught by the check that is there for it.
//!
//! Builds with debug assertions have the bugs compiled in, switched off until [`storage::sabotage::set`] is called on the thread of
//! a run; a release has none.

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
