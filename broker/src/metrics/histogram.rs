//! A histogram of latencies: buckets of equal relative width, as in HdrHistogram, counted without allocation.
//!
//! Invariant: a recorded value lies in the bucket whose bound is the first that is not below it; bounds differ by 1/16 at most.

use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Buckets per power of two.
const SUB_BUCKETS: usize = 16;
/// Powers of two of microseconds, the last about 19 hours.
const POWERS: usize = 36;

/// Counts of latencies.
pub struct Histogram {
    counts: RefCell<Vec<u64>>,
    count: Cell<u64>,
    sum_us: Cell<u64>,
    max_us: Cell<u64>,
}

/// What a histogram held at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistogramStats {
    /// Values recorded.
    pub count: u64,
    /// Their sum in microseconds.
    pub sum_us: u64,
    /// The largest, in microseconds.
    pub max_us: u64,
    /// Largest value of a bucket in microseconds, and how many values lie in it; empty buckets are left out.
    pub buckets: Vec<(u64, u64)>,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            counts: RefCell::new(Vec::new()),
            count: Cell::new(0),
            sum_us: Cell::new(0),
            max_us: Cell::new(0),
        }
    }
}

impl Histogram {
    /// Counts one latency.
    pub fn record(&self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let mut counts = self.counts.borrow_mut();
        if counts.is_empty() {
            counts.resize(SUB_BUCKETS * POWERS, 0);
        }
        let last = counts.len() - 1;
        if let Some(count) = counts.get_mut(bucket(us).min(last)) {
            *count += 1;
        }
        self.count.set(self.count.get() + 1);
        self.sum_us.set(self.sum_us.get().saturating_add(us));
        self.max_us.set(self.max_us.get().max(us));
    }

    /// Values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// A copy that may leave the shard.
    #[must_use]
    pub fn stats(&self) -> HistogramStats {
        let counts = self.counts.borrow();
        let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        HistogramStats {
            count: self.count.get(),
            sum_us: self.sum_us.get(),
            max_us: self.max_us.get(),
            buckets: filled.map(|(bucket, count)| (bound(bucket), *count)).collect(),
        }
    }
}

impl HistogramStats {
    /// Adds what another histogram counted.
    pub fn merge(&mut self, other: &HistogramStats) {
        self.count += other.count;
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.max_us = self.max_us.max(other.max_us);
        for (bound, count) in &other.buckets {
            match self.buckets.binary_search_by_key(bound, |(b, _)| *b) {
                Ok(at) => self.buckets[at].1 += count,
                Err(at) => self.buckets.insert(at, (*bound, *count)),
            }
        }
    }

    /// The value in microseconds that `fraction` of all values do not exceed; 0 without values.
    #[must_use]
    pub fn quantile_us(&self, fraction: f64) -> u64 {
        #[expect(clippy::cast_precision_loss, reason = "a rank need not be exact")]
        let rank = self.count as f64 * fraction;
        let mut below = 0;
        for (bound, count) in &self.buckets {
            below += count;
            #[expect(clippy::cast_precision_loss, reason = "a rank need not be exact")]
            if below as f64 >= rank {
                return (*bound).min(self.max_us);
            }
        }
        self.max_us
    }
}

/// Values below `SUB_BUCKETS` have a bucket each; above, every power of two has `SUB_BUCKETS`.
fn bucket(us: u64) -> usize {
    let sub = SUB_BUCKETS as u64;
    if us < sub {
        return usize::try_from(us).unwrap_or(0);
    }
    let shift = us.ilog2() - SUB_BUCKETS.ilog2();
    let within = (us >> shift) - sub;
    SUB_BUCKETS * (shift as usize + 1) + usize::try_from(within).unwrap_or(0)
}

/// The largest value of a bucket.
fn bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let sub = SUB_BUCKETS as u64;
    if bucket < sub {
        return bucket;
    }
    let shift = bucket / sub - 1;
    ((sub + bucket % sub + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(us in 0_u64..1 << 36) {
            let at = bucket(us);
            prop_assert!(us <= bound(at));
            prop_assert!(at == 0 || us > bound(at - 1));
            prop_assert!(bound(at) - us <= us / 16 + 1);
        }
    }

    #[test]
    fn quantiles_and_merging() {
        let (a, b) = (Histogram::default(), Histogram::default());
        for ms in 1..=100 {
            (if ms % 2 == 0 { &a } else { &b }).record(Duration::from_millis(ms));
        }
        let mut all = a.stats();
        all.merge(&b.stats());
        assert_eq!((all.count, all.max_us), (100, 100_000));
        let p50 = all.quantile_us(0.5);
        assert!((50_000..=53_200).contains(&p50), "{p50}");
        assert_eq!(all.quantile_us(1.0), 100_000);
        assert_eq!(HistogramStats::default().quantile_us(0.5), 0);
    }
}
