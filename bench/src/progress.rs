//! How far a run is, for whoever draws a progress bar.

use std::time::Duration;

use crate::plan::Plan;
use crate::tally::Tally;

/// Called a few times a second while a run lasts, on the thread that asked for the run.
pub type Observer = Box<dyn FnMut(&Progress)>;

/// An observer for those who do not look.
pub fn unobserved() -> Observer {
    Box::new(|_| {})
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Load that is not measured.
    WarmUp,
    /// Load that is measured.
    Measuring,
    /// The schedule is over, answers are missing.
    Draining,
}

impl Phase {
    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::WarmUp => "warm-up",
            Phase::Measuring => "measuring",
            Phase::Draining => "draining",
        }
    }
}

/// A run at one moment.
#[derive(Clone, Debug)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Time since the start.
    pub elapsed: Duration,
    /// Part that is done, 0 to 1.
    pub done: f64,
    /// Records acknowledged (or read, when nothing is produced), warm-up included.
    pub records: u64,
    /// Bytes of their values (or of the batches read).
    pub bytes: u64,
    /// 99 % of the response times (or the next best) since the last call, µs.
    pub p99_us: Option<u64>,
}

/// What a run has to do, to tell how much of it is done.
pub(crate) struct Pace {
    warmup: Duration,
    end: Option<Duration>,
    records: Option<u64>,
    produces: bool,
}

impl Pace {
    pub(crate) fn of(plan: &Plan) -> Self {
        let consumed = plan.consume.as_ref().and_then(|consume| {
            let to = consume.to.as_ref()?;
            let there: i64 = to.iter().zip(&consume.from).map(|(to, from)| to - from).sum();
            let asked = consume.records_each.saturating_mul(u64::from(consume.fetching.consumers));
            Some(asked.min(there.max(0) as u64))
        });
        match &plan.produce {
            Some(produce) => Pace {
                warmup: Duration::from_nanos(produce.schedule.warmup_ns()),
                end: Some(Duration::from_nanos(produce.schedule.end_ns())),
                records: produce.load.records,
                produces: true,
            },
            None => Pace {
                warmup: Duration::ZERO,
                end: plan
                    .consume
                    .as_ref()
                    .and_then(|consume| consume.duration_s)
                    .map(Duration::from_secs_f64),
                records: consumed,
                produces: false,
            },
        }
    }

    /// Progress after `elapsed`, of what was counted in all and lately.
    pub(crate) fn progress(&self, elapsed: Duration, all: &Tally, lately: &Tally) -> Progress {
        let (records, bytes) = match self.produces {
            true => (all.acked_records + all.warmup_records, all.acked_bytes_all),
            false => (all.read_records, all.read_bytes),
        };
        let by_time = self.end.map_or(0.0, |end| elapsed.as_secs_f64() / end.as_secs_f64().max(1e-9));
        let by_count = self.records.map_or(0.0, |whole| records as f64 / whole.max(1) as f64);
        let times = [&lately.response_us, &lately.service_us, &lately.fetch_us];
        let times = times.into_iter().find(|times| !times.is_empty());
        Progress {
            phase: match self.end {
                _ if elapsed < self.warmup => Phase::WarmUp,
                Some(end) if elapsed > end => Phase::Draining,
                _ => Phase::Measuring,
            },
            elapsed,
            done: by_time.max(by_count).min(1.0),
            records,
            bytes,
            p99_us: times.map(|times| times.value_at_quantile(0.99)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn done_is_whichever_limit_is_nearer() {
        let pace = Pace {
            warmup: Duration::from_secs(1),
            end: Some(Duration::from_secs(10)),
            records: Some(100),
            produces: true,
        };
        let all = Tally { acked_records: 40, warmup_records: 10, ..Tally::default() };
        let at = |seconds| pace.progress(Duration::from_secs_f64(seconds), &all, &Tally::default());
        assert_eq!((at(0.5).phase, at(0.5).done), (Phase::WarmUp, 0.5));
        assert_eq!((at(9.0).phase, at(9.0).done), (Phase::Measuring, 0.9));
        assert_eq!((at(12.0).phase, at(12.0).done, at(12.0).p99_us), (Phase::Draining, 1.0, None));
    }
}
