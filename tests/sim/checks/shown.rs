//! What a fetch ever showed is still there.

use std::collections::BTreeSet;

use crate::history::History;

pub(super) fn check(history: &History) -> Vec<String> {
    let logs = history.logs.iter();
    let kept: BTreeSet<_> =
        logs.flat_map(|(place, log)| log.records.iter().map(|(offset, _)| (*place, *offset))).collect();
    let gone = history.shown.keys().filter(|at| !kept.contains(at));
    gone.map(|(place, offset)| format!("{place}: offset {offset} was shown and is gone")).collect()
}
