//! An idempotent producer's values lie in the order in which it sent them, without a gap. The others may change the
//! connection, and nothing promises an order across connections.

use std::collections::BTreeMap;

use crate::history::History;

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for log in history.logs.values() {
        let mut next = BTreeMap::new();
        for (offset, value) in log.records.iter().filter(|(_, v)| history.idempotent.contains(&v.producer)) {
            let expected = next.insert(value.producer, value.counter + 1).unwrap_or(0);
            if value.counter != expected {
                found.push(format!("{value} at offset {offset}, where value {expected} is next"));
            }
        }
    }
    found
}
