//! Every acknowledged record is there, at its offset, with its value.

use crate::history::History;

pub(super) fn check(history: &History) -> Vec<String> {
    let lost = history.acks.iter().filter(|ack| {
        let log = history.final_log(ack.value.place);
        let found = log.records.binary_search_by_key(&ack.offset, |(offset, _)| *offset);
        found.ok().and_then(|at| log.records.get(at)).is_none_or(|(_, value)| *value != ack.value)
    });
    lost.map(|ack| format!("{} was acknowledged at offset {}", ack.value, ack.offset)).collect()
}
