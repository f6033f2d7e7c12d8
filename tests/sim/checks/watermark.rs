//! The high watermark never goes back, and lies above every acknowledged record, across restarts, too: an answer to a
//! question that was asked later tells no lower one.

use std::collections::BTreeMap;

use crate::history::History;

pub(super) fn check(history: &History) -> Vec<String> {
    // Per place: what was known for certain, by the moment at which it was known.
    let mut known: BTreeMap<_, Vec<(u64, i64)>> = BTreeMap::new();
    for ack in &history.acks {
        known.entry(ack.value.place).or_default().push((ack.answered_at, ack.offset + 1));
    }
    for mark in &history.marks {
        known.entry(mark.place).or_default().push((mark.answered_at, mark.high_watermark));
    }
    for floors in known.values_mut() {
        floors.sort_unstable();
        let mut highest = 0;
        for (_, floor) in floors {
            highest = highest.max(*floor);
            *floor = highest;
        }
    }
    let mut found = Vec::new();
    for mark in &history.marks {
        let floors = known.get(&mark.place).map_or(&[][..], Vec::as_slice);
        let before = floors.partition_point(|(at, _)| *at < mark.asked_at);
        let floor = before.checked_sub(1).and_then(|at| floors.get(at)).map_or(0, |(_, floor)| *floor);
        if mark.high_watermark < floor {
            found.push(format!("{}: {} after {floor}", mark.place, mark.high_watermark));
        }
    }
    found
}
