//! Offsets follow each other, from the log start to the high watermark, in every read.

use crate::history::History;

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = history.torn_reads.clone();
    for (place, log) in &history.logs {
        let mut expected = log.log_start;
        for (offset, _) in &log.records {
            if *offset != expected {
                found.push(format!("{place}: offset {offset} where {expected} should follow"));
            }
            expected = offset + 1;
        }
        if expected != log.high_watermark {
            found.push(format!(
                "{place}: ends at {expected}, but its high watermark is {}",
                log.high_watermark
            ));
        }
    }
    found
}
