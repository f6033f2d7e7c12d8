//! [`Timers`]: what one coordinator waits for, by the monotonic clock of its shard.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use runtime::time::Instant;

use super::group::{Timer, TimerChange};

/// Armed timers. Each is in both maps: by name to change it, by time to find the next.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeMap<Timer, Instant>,
    queue: BTreeSet<(Instant, Timer)>,
}

impl Timers {
    /// Arms or disarms a timer.
    pub(super) fn change(&mut self, now: Instant, change: TimerChange) {
        match change {
            TimerChange::Set { timer, after_ms } => {
                let at = now + Duration::from_millis(after_ms);
                self.cancel(&timer);
                self.queue.insert((at, timer.clone()));
                self.due.insert(timer, at);
            }
            TimerChange::Cancel(timer) => self.cancel(&timer),
        }
    }

    fn cancel(&mut self, timer: &Timer) {
        if let Some((timer, at)) = self.due.remove_entry(timer) {
            self.queue.remove(&(at, timer));
        }
    }

    /// When the next one comes due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes out the next one that is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        let (_, timer) = self.queue.pop_first()?;
        self.due.remove(&timer);
        Some(timer)
    }

    /// Disarms all.
    pub(super) fn clear(&mut self) {
        self.due.clear();
        self.queue.clear();
    }
}
