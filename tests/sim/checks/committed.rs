//! A group's offset that was acknowledged is what the group gets later, or a later one. The one committer counts up.

use crate::history::History;

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    for fetched in &history.fetched {
        let known =
            history.committed.iter().chain(&history.fetched).filter(|s| s.answered_at < fetched.asked_at);
        let floor = known.map(|stored| stored.offset).max().unwrap_or(-1);
        if fetched.offset < floor {
            found.push(format!("offset {} after {floor}", fetched.offset));
        }
    }
    found
}
