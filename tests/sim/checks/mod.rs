//! What must hold of every history, one check per file, each with the name by which a failure is reported.
//!
//! What only the run itself can see is judged there and has names of its own: [`STARTS_AGAIN`] and the others below.

mod acknowledged;
mod committed;
mod duplicates;
mod gaps;
mod garbage;
mod order;
mod shown;
#[cfg(test)]
mod tests;
mod unique;
mod watermark;

use crate::history::{Breach, History};

/// After any crash the node starts, unless something keeps it from that which the operator must mend.
pub(crate) const STARTS_AGAIN: &str = "starts again";
/// A node whose flush failed ends.
pub(crate) const ENDS_AFTER_FAILURE: &str = "ends after a failed flush";
/// Soon after the last fault everything is served again.
pub(crate) const SERVES_AGAIN: &str = "serves again in time";
/// No client gets an answer that the situation does not justify.
pub(crate) const FITTING_ANSWERS: &str = "answers fit";
/// No part of the node panics.
pub(crate) const NO_PANIC: &str = "no panic";
/// A damaged block is named, or the start goes on with all that was durable.
pub(crate) const DAMAGE_IS_NAMED: &str = "damage is named";

/// A check: why the history breaks it, in words; nothing when it holds.
type Check = fn(&History) -> Vec<String>;

/// All checks.
const CHECKS: [(&str, Check); 9] = [
    ("acknowledged records survive", acknowledged::check),
    ("offsets without gaps", gaps::check),
    ("one value per offset", unique::check),
    ("nothing shown vanishes", shown::check),
    ("high watermark never goes back", watermark::check),
    ("no duplicates", duplicates::check),
    ("order of each producer", order::check),
    ("only what was sent", garbage::check),
    ("stored offsets survive", committed::check),
];

/// Judges a history.
pub(crate) fn judge(history: &History) -> Vec<Breach> {
    let found = CHECKS
        .iter()
        .flat_map(|(check, judge)| judge(history).into_iter().map(|what| Breach { check, what }));
    history.breaches.iter().cloned().chain(found).collect()
}
