//! Every acknowledged record is there, at its offset, with its value.

use crate::history::{Ack, FinalLog, History};

pub(super) fn check(history: &History) -> Vec<String> {
    let nothing = FinalLog::default();
    let lost = history.acks.iter().filter_map(|ack| {
        let log = history.logs.get(&ack.value.place).unwrap_or(&nothing);
        let found = log.records.binary_search_by_key(&ack.offset, |(offset, _)| *offset);
        let kept = found.ok().and_then(|at| log.records.get(at)).map(|(_, value)| *value);
        (kept != Some(ack.value)).then_some((ack, kept, log.high_watermark))
    });
    lost.map(|(Ack { value, offset, .. }, kept, end)| match kept {
        Some(other) => format!("{value} was acknowledged at offset {offset}, where {other} is"),
        None => format!("{value} was acknowledged at offset {offset}; the log ends at {end}"),
    })
    .collect()
}
