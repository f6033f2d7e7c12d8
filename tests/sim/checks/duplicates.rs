//! No value is there twice: producers that repeat do so under idempotence, the others send each value once.

use std::collections::BTreeMap;

use crate::history::History;

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for log in history.logs.values() {
        let mut first = BTreeMap::new();
        for (offset, value) in &log.records {
            if let Some(before) = first.insert(value, offset) {
                found.push(format!("{value} is at offsets {before} and {offset}"));
            }
        }
    }
    found
}
