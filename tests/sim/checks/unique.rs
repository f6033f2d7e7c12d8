//! An offset has one value, whoever reads it and whenever, and the value that its producer was told.

use std::collections::BTreeMap;

use crate::history::History;

pub(super) fn check(history: &History) -> Vec<String> {
    let mut all: BTreeMap<_, _> = history.shown.clone();
    for ack in &history.acks {
        all.entry((ack.value.place, ack.offset)).or_default().insert(ack.value);
    }
    for (place, log) in &history.logs {
        for (offset, value) in &log.records {
            all.entry((*place, *offset)).or_default().insert(*value);
        }
    }
    let several = all.into_iter().filter(|(_, values)| values.len() > 1);
    several.map(|((place, offset), values)| format!("{place} at offset {offset}: {values:?}")).collect()
}
