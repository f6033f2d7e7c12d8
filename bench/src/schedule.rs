//! When each record is due: the open-loop schedule, shared by all producers, that never waits for an answer.
//! Pure: owns no clock and no socket. Times are nanoseconds since the start of the run.
//!
//! 1. Record `n` of the run is due at `n / rate`, whatever became of the records before it.
//! 2. Producer `i` of `P` sends the records `n` with `n mod P = i`; its `j`-th record is `n = j·P + i`.
//! 3. A producer's `j`-th record goes to partition `j mod partitions`: every partition gets the same load, and a
//!    partition's `k`-th record of a producer is `j = k·partitions + partition`. So a backlog is a pair of numbers
//!    and takes no memory, however long the broker stalls.

/// The schedule of a run. A rate of 0 has no due times: records exist as soon as there is room for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    rate: f64,
    end_ns: u64,
    warmup_ns: u64,
    records_max: u64,
    producers: u64,
}

impl Schedule {
    /// `rate` in records per second over all `producers` (0 = as fast as possible); the measured part starts at
    /// `warmup_s` and lasts `duration_s`; at most `records` are sent.
    pub(crate) fn new(
        rate: f64,
        warmup_s: f64,
        duration_s: f64,
        records: Option<u64>,
        producers: u32,
    ) -> Self {
        let total_s = warmup_s + duration_s;
        let by_rate = if rate > 0.0 { (rate * total_s).ceil() as u64 } else { u64::MAX };
        Schedule {
            rate,
            end_ns: to_ns(total_s),
            warmup_ns: to_ns(warmup_s),
            records_max: by_rate.min(records.unwrap_or(u64::MAX)),
            producers: u64::from(producers.max(1)),
        }
    }

    /// Whether records have due times at all.
    pub(crate) fn open_loop(&self) -> bool {
        self.rate > 0.0
    }

    /// When the run's schedule ends. What is still unanswered then is waited for.
    pub(crate) fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// When the measured part starts.
    pub(crate) fn warmup_ns(&self) -> u64 {
        self.warmup_ns
    }

    /// Records that the schedule puts into the measured part; none when it has no due times.
    pub(crate) fn measured_records(&self) -> Option<u64> {
        self.open_loop().then(|| self.records_max.saturating_sub(self.first_at(self.warmup_ns)))
    }

    /// When record `n` is due. 0 without a rate.
    pub(crate) fn due_ns(&self, n: u64) -> u64 {
        if self.open_loop() { (n as f64 * 1e9 / self.rate) as u64 } else { 0 }
    }

    /// Number in the run of a producer's `j`-th record.
    pub(crate) fn number(&self, producer: u32, j: u64) -> u64 {
        j.saturating_mul(self.producers).saturating_add(u64::from(producer))
    }

    /// How many records a producer sends in the whole run.
    pub(crate) fn producer_records(&self, producer: u32) -> u64 {
        let rest = self.records_max.saturating_sub(u64::from(producer));
        rest.div_ceil(self.producers)
    }

    /// Whether a record that counts from `from_ns` (its due time, or the time it was sent without a rate) belongs
    /// to the measured part.
    pub(crate) fn measured(&self, from_ns: u64) -> bool {
        from_ns >= self.warmup_ns
    }

    /// The first record that is due at `ns` or later.
    fn first_at(&self, ns: u64) -> u64 {
        let mut n = (ns as f64 * self.rate / 1e9) as u64;
        while n > 0 && self.due_ns(n - 1) >= ns {
            n -= 1;
        }
        while self.due_ns(n) < ns {
            n += 1;
        }
        n
    }
}

fn to_ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// One partition's records of one producer: how many are due and how many were taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backlog {
    taken: u64,
    due: u64,
}

impl Backlog {
    /// One more record is due.
    pub(crate) fn admit(&mut self) {
        self.due += 1;
    }

    /// Records that are due and not taken.
    pub(crate) fn len(&self) -> u64 {
        self.due - self.taken
    }

    /// Whether everything due was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.due == self.taken
    }

    /// Index, within this partition, of the record that has waited longest.
    pub(crate) fn first(&self) -> u64 {
        self.taken
    }

    /// Takes up to `most` records and returns the range of their indexes within this partition.
    pub(crate) fn take(&mut self, most: u64) -> std::ops::Range<u64> {
        let from = self.taken;
        self.taken += self.len().min(most);
        from..self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_due_at_even_steps() {
        let schedule = Schedule::new(1000.0, 0.0, 2.0, None, 1);
        assert_eq!(schedule.records_max, 2000);
        assert_eq!(schedule.due_ns(0), 0);
        assert_eq!(schedule.due_ns(1999), 1_999_000_000);
        assert_eq!(schedule.measured_records(), Some(2000));
    }

    #[test]
    fn producers_share_the_schedule_without_gap_or_overlap() {
        let schedule = Schedule::new(1000.0, 0.0, 1.0, Some(100), 3);
        let mut numbers: Vec<u64> = (0..3)
            .flat_map(|producer| {
                (0..schedule.producer_records(producer)).map(move |j| schedule.number(producer, j))
            })
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_warm_up_is_taken_off_by_due_time() {
        let schedule = Schedule::new(3.0, 1.0, 1.0, None, 1);
        assert_eq!(schedule.records_max, 6);
        assert_eq!(schedule.measured_records(), Some(3));
        assert!(!schedule.measured(schedule.due_ns(2)));
        assert!(schedule.measured(schedule.due_ns(3)));
    }

    #[test]
    fn a_rate_of_zero_has_no_due_times_and_ends_by_time_or_count() {
        let schedule = Schedule::new(0.0, 0.0, 1.0, None, 2);
        assert!(!schedule.open_loop());
        assert_eq!(schedule.measured_records(), None);
        assert_eq!(schedule.records_max, u64::MAX);
        assert_eq!(Schedule::new(0.0, 0.0, 1.0, Some(7), 2).producer_records(0), 4);
    }

    #[test]
    fn a_backlog_is_two_numbers() {
        let mut backlog = Backlog::default();
        (0..5).for_each(|_| backlog.admit());
        assert_eq!(backlog.take(3), 0..3);
        assert_eq!((backlog.len(), backlog.first()), (2, 3));
        assert_eq!(backlog.take(9), 3..5);
        assert!(backlog.is_empty());
    }
}
