//! A log holds values that were sent to it, byte for byte, and none that was refused.

use crate::history::History;
use crate::value::{Place, Value};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = history.garbage.clone();
    let shown = history.shown.iter();
    let shown =
        shown.flat_map(|((place, offset), values)| values.iter().map(|value| (*place, *offset, *value)));
    let logs = history.logs.iter();
    let logs =
        logs.flat_map(|(place, log)| log.records.iter().map(|(offset, value)| (*place, *offset, *value)));
    found.extend(shown.chain(logs).filter_map(|(place, offset, value)| wrong(history, place, offset, value)));
    found
}

fn wrong(history: &History, place: Place, offset: i64, value: Value) -> Option<String> {
    let sent = history.sent.get(&value.producer).is_some_and(|sent| value.counter < *sent);
    let why = match () {
        () if value.place != place => "is in a wrong place",
        () if !sent => "was never sent",
        () if history.refused.contains(&value) => "was refused",
        () => return None,
    };
    Some(format!("{place} at offset {offset}: {value} {why}"))
}
