//! A producer's values lie in the order in which it sent them; an idempotent one's have no gap.

use std::collections::BTreeMap;

use crate::history::History;

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for log in history.logs.values() {
        let mut last = BTreeMap::new();
        for (offset, value) in &log.records {
            let expected = last.get(&value.producer).map_or(0, |last| last + 1);
            let idempotent = history.idempotent.contains(&value.producer);
            if value.counter < expected || (idempotent && value.counter != expected) {
                found.push(format!("{value} at offset {offset}, where value {expected} is next"));
            }
            last.insert(value.producer, value.counter.max(expected.saturating_sub(1)));
        }
    }
    found
}
