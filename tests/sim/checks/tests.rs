//! Tests of the checks: each fires at its own kind of broken history, and a sound one passes all.

use super::judge;
use crate::history::{Ack, FinalLog, History, Mark, Stored};
use crate::value::{Place, Value};

const PLACE: Place = Place { topic: 0, partition: 0 };

fn value(counter: u32) -> Value {
    Value { place: PLACE, producer: 7, counter }
}

/// Three acknowledged records of an idempotent producer, of which two were fetched.
fn sound() -> History {
    let mut history = History::default();
    history.idempotent.insert(7);
    history.sent.insert(7, 3);
    let records: Vec<_> = (0..3).map(|at| (i64::from(at), value(at))).collect();
    for (offset, value) in &records {
        history.shown.entry((PLACE, *offset)).or_default().insert(*value);
        let answered_at = history.tick();
        history.acks.push(Ack { value: *value, offset: *offset, answered_at });
    }
    let (asked_at, answered_at) = (history.tick(), history.tick());
    history.marks.push(Mark { place: PLACE, asked_at, answered_at, high_watermark: 3 });
    history.committed.push(Stored { asked_at, answered_at, offset: 5 });
    let (asked_at, answered_at) = (history.tick(), history.tick());
    history.fetched.push(Stored { asked_at, answered_at, offset: 5 });
    history.logs.insert(PLACE, FinalLog { log_start: 0, high_watermark: 3, records });
    history
}

/// Names of the checks that fire when the sound history is broken.
fn fired(break_it: impl FnOnce(&mut History)) -> Vec<&'static str> {
    let mut history = sound();
    break_it(&mut history);
    let mut names: Vec<_> = judge(&history).into_iter().map(|breach| breach.check).collect();
    names.dedup();
    names
}

fn log(history: &mut History) -> &mut FinalLog {
    history.logs.get_mut(&PLACE).expect("the log is there")
}

#[test]
fn a_sound_history_passes() {
    assert_eq!(fired(|_| ()), [""; 0]);
}

#[test]
fn a_lost_tail_is_found() {
    let found = fired(|history| {
        history.shown.remove(&(PLACE, 2));
        history.marks.clear();
        log(history).records.pop();
        log(history).high_watermark = 2;
    });
    assert_eq!(found, ["acknowledged records survive"]);
}

#[test]
fn a_gap_is_found() {
    let found = fired(|history| {
        history.acks.clear();
        history.shown.clear();
        history.idempotent.clear();
        log(history).records.remove(1);
    });
    assert_eq!(found, ["offsets without gaps"]);
}

#[test]
fn two_values_of_one_offset_are_found() {
    let found = fired(|history| {
        history.sent.insert(8, 1);
        let other = Value { producer: 8, ..value(0) };
        history.shown.entry((PLACE, 1)).or_default().insert(other);
    });
    assert_eq!(found, ["one value per offset"]);
}

#[test]
fn a_record_that_was_shown_and_is_gone_is_found() {
    let found = fired(|history| {
        history.acks.pop();
        history.marks.clear();
        log(history).records.pop();
        log(history).high_watermark = 2;
    });
    assert_eq!(found, ["nothing shown vanishes"]);
}

#[test]
fn a_watermark_that_goes_back_is_found() {
    let found = fired(|history| {
        let (asked_at, answered_at) = (history.tick(), history.tick());
        history.marks.push(Mark { place: PLACE, asked_at, answered_at, high_watermark: 2 });
    });
    assert_eq!(found, ["high watermark never goes back"]);
}

#[test]
fn a_duplicate_is_found() {
    let found = fired(|history| {
        history.idempotent.clear();
        log(history).records.push((3, value(2)));
        log(history).high_watermark = 4;
    });
    assert!(found.contains(&"no duplicates"), "{found:?}");
}

#[test]
fn a_gap_of_an_idempotent_producer_is_found() {
    let found = fired(|history| {
        history.sent.insert(7, 9);
        log(history).records.push((3, value(5)));
        log(history).high_watermark = 4;
    });
    assert_eq!(found, ["order of each producer"]);
}

#[test]
fn what_was_never_sent_or_was_refused_is_found() {
    let found = fired(|history| {
        history.sent.insert(7, 2);
    });
    assert_eq!(found, ["only what was sent"]);
    let found = fired(|history| {
        history.refused.insert(value(1));
    });
    assert_eq!(found, ["only what was sent"]);
}

#[test]
fn a_stored_offset_that_goes_back_is_found() {
    let found = fired(|history| {
        let (asked_at, answered_at) = (history.tick(), history.tick());
        history.fetched.push(Stored { asked_at, answered_at, offset: 4 });
    });
    assert_eq!(found, ["stored offsets survive"]);
}
