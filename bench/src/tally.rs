//! What a run counts: latencies in histograms, records by what became of them. Owns the rules of the accounting; knows
//! no socket and no clock. Times in nanoseconds since the start of the run, histograms in microseconds.
//!
//! 1. Response time counts from when a record was due, service time from when its request was sent. A record that
//!    waited for the generator, the connection or the broker has waited (no coordinated omission).
//! 2. Every record of the measured part ends in exactly one of: acknowledged, failed by code, unanswered, unsent.
//! 3. Histograms keep three significant digits and grow with their values; nothing is clamped.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Significant decimal digits of every histogram.
const SIGNIFICANT_DIGITS: u8 = 3;

/// An empty histogram that grows as far as its values need.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are valid")
}

/// Counts of one worker over one interval, or, merged, of a whole run. `Send`, so that it can be handed over.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Due to acknowledged, µs. Empty without a rate.
    pub(crate) response_us: Histogram<u64>,
    /// Sent to acknowledged, µs.
    pub(crate) service_us: Histogram<u64>,
    /// Round trip of each fetch that brought records, µs; a broker may hold it until there are some.
    pub(crate) fetch_us: Histogram<u64>,
    /// Due to read by the consumer, µs.
    pub(crate) end_to_end_us: Histogram<u64>,
    /// How late the generator's own timer woke it for a record that nothing else held back, µs.
    pub(crate) jitter_us: Histogram<u64>,
    /// Records acknowledged in the measured part.
    pub(crate) acked_records: u64,
    /// Bytes of their values.
    pub(crate) acked_bytes: u64,
    /// Records of the warm-up that were answered.
    pub(crate) warmup_records: u64,
    /// Bytes of values of all acknowledged records, warm-up included.
    pub(crate) acked_bytes_all: u64,
    /// Produce requests sent, warm-up included.
    pub(crate) requests: u64,
    /// Records that the broker refused, by the name of the error.
    pub(crate) failed: BTreeMap<String, u64>,
    /// Records that were sent and not answered when the run gave up.
    pub(crate) unanswered: u64,
    /// Records that were due and never sent.
    pub(crate) unsent: u64,
    /// Records read.
    pub(crate) read_records: u64,
    /// Bytes of batches read, as they came over the wire.
    pub(crate) read_bytes: u64,
    /// Records read that this run did not write.
    pub(crate) foreign_records: u64,
    /// Longest time that a record was sent after it was due and its linger was over, ns, warm-up excluded.
    pub(crate) behind_max_ns: u64,
    /// First acknowledgement of the run.
    pub(crate) first_ack_ns: Option<u64>,
    /// Last acknowledgement of a record of the measured part.
    pub(crate) last_ack_ns: u64,
    /// Last records read.
    pub(crate) last_read_ns: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            response_us: histogram(),
            service_us: histogram(),
            fetch_us: histogram(),
            end_to_end_us: histogram(),
            jitter_us: histogram(),
            acked_records: 0,
            acked_bytes: 0,
            warmup_records: 0,
            acked_bytes_all: 0,
            requests: 0,
            failed: BTreeMap::new(),
            unanswered: 0,
            unsent: 0,
            read_records: 0,
            read_bytes: 0,
            foreign_records: 0,
            behind_max_ns: 0,
            first_ack_ns: None,
            last_ack_ns: 0,
            last_read_ns: 0,
        }
    }
}

/// One acknowledged record, or `records` of one request that share its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    /// When it was due; `None` without a rate.
    pub(crate) due_ns: Option<u64>,
    /// When its request was handed to the socket.
    pub(crate) sent_ns: u64,
    /// When the answer was there.
    pub(crate) answered_ns: u64,
    /// Bytes of its value.
    pub(crate) value_bytes: u64,
    /// Whether it belongs to the measured part.
    pub(crate) measured: bool,
}

impl Tally {
    /// Counts one acknowledged record (invariant 1).
    pub(crate) fn acked(&mut self, record: Acked) {
        self.first_ack_ns =
            Some(self.first_ack_ns.map_or(record.answered_ns, |ns| ns.min(record.answered_ns)));
        self.acked_bytes_all += record.value_bytes;
        if !record.measured {
            self.warmup_records += 1;
            return;
        }
        self.acked_records += 1;
        self.acked_bytes += record.value_bytes;
        self.last_ack_ns = self.last_ack_ns.max(record.answered_ns);
        record_us(&mut self.service_us, record.answered_ns.saturating_sub(record.sent_ns));
        if let Some(due_ns) = record.due_ns {
            record_us(&mut self.response_us, record.answered_ns.saturating_sub(due_ns));
        }
    }

    /// Counts records that were refused or lost, by name.
    pub(crate) fn failed(&mut self, code: &str, records: u64) {
        match self.failed.get_mut(code) {
            Some(count) => *count += records,
            None => drop(self.failed.insert(code.to_owned(), records)),
        }
    }

    /// Counts how far behind its schedule a record of the measured part was sent.
    pub(crate) fn behind(&mut self, ns: u64) {
        self.behind_max_ns = self.behind_max_ns.max(ns);
    }

    /// Counts how late the generator's timer was.
    pub(crate) fn jitter(&mut self, ns: u64) {
        record_us(&mut self.jitter_us, ns);
    }

    /// Counts one record read by the consumer of an end-to-end run.
    pub(crate) fn end_to_end(&mut self, due_ns: u64, read_ns: u64) {
        record_us(&mut self.end_to_end_us, read_ns.saturating_sub(due_ns));
    }

    /// Counts one fetch that brought something: its records, its bytes and its round trip.
    pub(crate) fn read(&mut self, records: u64, bytes: u64, sent_ns: u64, answered_ns: u64) {
        self.read_records += records;
        self.read_bytes += bytes;
        self.last_read_ns = self.last_read_ns.max(answered_ns);
        record_us(&mut self.fetch_us, answered_ns.saturating_sub(sent_ns));
    }

    /// Adds what another worker, or the next interval, counted.
    pub(crate) fn merge(&mut self, other: &Tally) {
        add(&mut self.response_us, &other.response_us);
        add(&mut self.service_us, &other.service_us);
        add(&mut self.fetch_us, &other.fetch_us);
        add(&mut self.end_to_end_us, &other.end_to_end_us);
        add(&mut self.jitter_us, &other.jitter_us);
        self.acked_records += other.acked_records;
        self.acked_bytes += other.acked_bytes;
        self.warmup_records += other.warmup_records;
        self.acked_bytes_all += other.acked_bytes_all;
        self.requests += other.requests;
        for (code, records) in &other.failed {
            self.failed(code, *records);
        }
        self.unanswered += other.unanswered;
        self.unsent += other.unsent;
        self.read_records += other.read_records;
        self.read_bytes += other.read_bytes;
        self.foreign_records += other.foreign_records;
        self.behind_max_ns = self.behind_max_ns.max(other.behind_max_ns);
        self.first_ack_ns = match (self.first_ack_ns, other.first_ack_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.last_ack_ns = self.last_ack_ns.max(other.last_ack_ns);
        self.last_read_ns = self.last_read_ns.max(other.last_read_ns);
    }

    /// Hands over what was counted and starts anew.
    pub(crate) fn take(&mut self) -> Tally {
        std::mem::take(self)
    }
}

fn record_us(histogram: &mut Histogram<u64>, ns: u64) {
    histogram.record((ns + 500) / 1000).expect("a growing histogram takes every value");
}

fn add(into: &mut Histogram<u64>, from: &Histogram<u64>) {
    into.add(from).expect("a growing histogram takes every value");
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn acked(due_ms: u64, sent_ms: u64, answered_ms: u64) -> Acked {
        Acked {
            due_ns: Some(due_ms * MS),
            sent_ns: sent_ms * MS,
            answered_ns: answered_ms * MS,
            value_bytes: 10,
            measured: true,
        }
    }

    #[test]
    fn response_counts_from_due_and_service_from_sent() {
        let mut tally = Tally::default();
        tally.acked(acked(0, 90, 100));
        assert!(tally.response_us.equivalent(tally.response_us.max(), 100_000));
        assert!(tally.service_us.equivalent(tally.service_us.max(), 10_000));
    }

    #[test]
    fn values_beyond_a_minute_are_not_clamped() {
        let mut tally = Tally::default();
        tally.acked(acked(0, 0, 3_600_000));
        assert!(tally.response_us.equivalent(tally.response_us.max(), 3_600_000_000));
    }

    #[test]
    fn a_warm_up_record_is_counted_apart() {
        let mut tally = Tally::default();
        tally.acked(Acked { measured: false, ..acked(0, 0, 5) });
        assert_eq!((tally.acked_records, tally.warmup_records, tally.response_us.len()), (0, 1, 0));
        assert_eq!((tally.first_ack_ns, tally.acked_bytes_all), (Some(5 * MS), 10));
    }

    #[test]
    fn intervals_add_up_to_the_run() {
        let (mut run, mut interval) = (Tally::default(), Tally::default());
        interval.acked(acked(0, 0, 1));
        interval.failed("NOT_LEADER", 2);
        interval.behind(7);
        run.merge(&interval.take());
        interval.acked(acked(1, 1, 3));
        interval.failed("NOT_LEADER", 1);
        run.merge(&interval.take());
        assert_eq!((run.acked_records, run.response_us.len(), run.behind_max_ns), (2, 2, 7));
        assert_eq!(run.failed.get("NOT_LEADER"), Some(&3));
        assert_eq!(run.first_ack_ns, Some(MS));
        assert_eq!(interval.acked_records, 0);
    }
}
