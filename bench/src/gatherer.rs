//! Which records go into the next request of one connection. Pure: owns the backlogs of the partitions that one
//! producer sends over one connection, knows no clock and no socket. Times in nanoseconds since the start of the run.
//!
//! 1. A partition's records leave in the order of their schedule, each exactly once.
//! 2. A request holds at most one batch of a partition, as Kafka's own producer sends it, and batches of at most
//!    `REQUEST_BYTES` unless its first batch alone is larger.
//! 3. A batch is ready when it is full, or when its oldest record has lingered long enough.
//! 4. Without a rate, the backlog of all partitions together never exceeds one full batch for each.

use std::collections::VecDeque;
use std::ops::Range;

use crate::schedule::{Backlog, Schedule};

/// Bytes of batches that end a request, the size of Kafka's own producer.
const REQUEST_BYTES: usize = 1 << 20;

/// Records of one partition that make a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Position of the partition among those of the connection.
    pub(crate) slot: usize,
    /// Indexes of the records among this producer's records of the partition.
    pub(crate) records: Range<u64>,
}

impl Piece {
    /// How many records.
    pub(crate) fn len(&self) -> u64 {
        self.records.end - self.records.start
    }
}

/// What a connection's producer knows about its partitions, and the next record of the schedule.
pub(crate) struct Gatherer {
    schedule: Schedule,
    producer: u32,
    partitions: Vec<u32>,
    partitions_of_topic: u64,
    /// Position by partition; `None` for a partition that another connection sends.
    slots: Vec<Option<usize>>,
    backlogs: Vec<Backlog>,
    /// Slots with a backlog, each once.
    waiting: VecDeque<usize>,
    pending: u64,
    next: u64,
    records: u64,
    linger_ns: u64,
    batch: BatchSize,
}

/// How many records fill a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchSize {
    /// Records of a full batch, at least 1.
    pub(crate) records: u64,
    /// Bytes of each record in it.
    pub(crate) record_bytes: usize,
}

impl BatchSize {
    /// Bytes of a record beside its key and value, at most: its varints and no headers.
    const RECORD_OVERHEAD_BYTES: usize = 20;
    /// Header of a batch.
    const HEADER_BYTES: usize = 61;

    /// For records of `value_bytes` with keys of `key_bytes` in batches of at most `batch_bytes`.
    pub(crate) fn new(value_bytes: usize, key_bytes: usize, batch_bytes: usize) -> Self {
        let record_bytes = value_bytes + key_bytes + Self::RECORD_OVERHEAD_BYTES;
        let records = batch_bytes.saturating_sub(Self::HEADER_BYTES) / record_bytes;
        BatchSize { records: (records as u64).max(1), record_bytes }
    }
}

impl Gatherer {
    /// `partitions` are those that the connection sends, of `partitions_of_topic` that the topic has.
    pub(crate) fn new(
        schedule: Schedule,
        producer: u32,
        partitions: Vec<u32>,
        partitions_of_topic: u32,
        linger_ns: u64,
        batch: BatchSize,
    ) -> Self {
        let mut slots = vec![None; partitions_of_topic as usize];
        for (slot, partition) in partitions.iter().enumerate() {
            if let Some(entry) = slots.get_mut(*partition as usize) {
                *entry = Some(slot);
            }
        }
        Gatherer {
            backlogs: vec![Backlog::default(); partitions.len()],
            records: schedule.producer_records(producer),
            schedule,
            producer,
            partitions,
            partitions_of_topic: u64::from(partitions_of_topic),
            slots,
            waiting: VecDeque::new(),
            pending: 0,
            next: 0,
            linger_ns,
            batch,
        }
    }

    /// Partition at a slot.
    pub(crate) fn partition(&self, slot: usize) -> u32 {
        self.partitions[slot]
    }

    /// Number in the run of the `k`-th record of a slot.
    pub(crate) fn number(&self, slot: usize, k: u64) -> u64 {
        let j = k * self.partitions_of_topic + u64::from(self.partitions[slot]);
        self.schedule.number(self.producer, j)
    }

    /// Takes note of every record that is due at `now_ns`.
    pub(crate) fn admit(&mut self, now_ns: u64) {
        if self.schedule.open_loop() {
            while self.next < self.records && self.due_ns(self.next) <= now_ns {
                self.admit_next();
            }
        } else if now_ns < self.schedule.end_ns() {
            let room = self.batch.records * self.partitions.len() as u64;
            // Skipped partitions of other connections end the round as well: the loop is bounded by the room.
            let mut rounds = self.batch.records * self.partitions_of_topic;
            while self.next < self.records && self.pending < room && rounds > 0 {
                self.admit_next();
                rounds -= 1;
            }
        }
    }

    fn admit_next(&mut self) {
        let partition = (self.next % self.partitions_of_topic) as usize;
        self.next += 1;
        let Some(slot) = self.slots.get(partition).copied().flatten() else { return };
        let backlog = &mut self.backlogs[slot];
        if backlog.is_empty() {
            self.waiting.push_back(slot);
        }
        backlog.admit();
        self.pending += 1;
    }

    /// Whether a batch can be sent at `now_ns`.
    pub(crate) fn has_ready(&self, now_ns: u64) -> bool {
        self.waiting.iter().any(|slot| self.ready_ns(*slot) <= now_ns)
    }

    /// When something may have become ready that is not now; `None` when every record of the run was taken.
    pub(crate) fn next_wake_ns(&self, now_ns: u64) -> Option<u64> {
        let lingering = self.waiting.iter().map(|slot| self.ready_ns(*slot)).min();
        let due = match self.next < self.records {
            true if self.schedule.open_loop() => Some(self.due_ns(self.next)),
            true if now_ns < self.schedule.end_ns() => Some(now_ns),
            _ => None,
        };
        match (lingering, due) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes the batches of the next request, ordered by partition (invariants 1 to 3).
    pub(crate) fn take(&mut self, now_ns: u64) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut bytes = 0;
        for _ in 0..self.waiting.len() {
            let Some(slot) = self.waiting.pop_front() else { break };
            if self.ready_ns(slot) > now_ns {
                self.waiting.push_back(slot);
                continue;
            }
            let backlog = &mut self.backlogs[slot];
            let batch_bytes = backlog.len().min(self.batch.records) as usize * self.batch.record_bytes;
            if !pieces.is_empty() && bytes + batch_bytes > REQUEST_BYTES {
                self.waiting.push_front(slot);
                break;
            }
            bytes += batch_bytes;
            let records = backlog.take(self.batch.records);
            self.pending -= records.end - records.start;
            if !backlog.is_empty() {
                self.waiting.push_back(slot);
            }
            pieces.push(Piece { slot, records });
        }
        pieces.sort_by_key(|piece| self.partitions[piece.slot]);
        pieces
    }

    /// Records of this connection that were due before the schedule's end and not taken: those that were noted, and
    /// those of the rest of the schedule.
    pub(crate) fn untaken(&self) -> u64 {
        if !self.schedule.open_loop() {
            return self.pending;
        }
        let left = self.records.saturating_sub(self.next);
        let rounds = left / self.partitions_of_topic * self.partitions.len() as u64;
        let started = (0..left % self.partitions_of_topic).filter(|step| {
            let partition = ((self.next + step) % self.partitions_of_topic) as usize;
            self.slots.get(partition).is_some_and(Option::is_some)
        });
        self.pending + rounds + started.count() as u64
    }

    fn due_ns(&self, j: u64) -> u64 {
        self.schedule.due_ns(self.schedule.number(self.producer, j))
    }

    /// When the batch of a slot with a backlog is ready (invariant 3).
    fn ready_ns(&self, slot: usize) -> u64 {
        let backlog = self.backlogs[slot];
        if self.linger_ns == 0 || backlog.len() >= self.batch.records {
            return 0;
        }
        self.schedule.due_ns(self.number(slot, backlog.first())).saturating_add(self.linger_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn gatherer(rate: f64, partitions: &[u32], of: u32, linger_ns: u64, batch_records: u64) -> Gatherer {
        let schedule = Schedule::new(rate, 0.0, 1.0, None, 1);
        let batch = BatchSize { records: batch_records, record_bytes: 1000 };
        Gatherer::new(schedule, 0, partitions.to_vec(), of, linger_ns, batch)
    }

    fn piece(slot: usize, records: Range<u64>) -> Piece {
        Piece { slot, records }
    }

    #[test]
    fn records_due_go_round_the_partitions() {
        let mut gatherer = gatherer(1000.0, &[0, 1], 2, 0, 10);
        assert!(!gatherer.has_ready(0));
        gatherer.admit(4 * MS);
        assert_eq!(gatherer.take(4 * MS), [piece(0, 0..3), piece(1, 0..2)]);
        assert_eq!(gatherer.next_wake_ns(4 * MS), Some(5 * MS));
        gatherer.admit(5 * MS);
        assert_eq!(gatherer.take(5 * MS), [piece(1, 2..3)]);
        assert_eq!(gatherer.number(1, 2), 5);
    }

    #[test]
    fn a_stalled_broker_leaves_a_backlog_that_goes_out_in_full_batches() {
        let mut gatherer = gatherer(1000.0, &[0], 1, 0, 10);
        gatherer.admit(24 * MS);
        assert_eq!(gatherer.take(24 * MS), [piece(0, 0..10)]);
        assert_eq!(gatherer.take(24 * MS), [piece(0, 10..20)]);
        assert_eq!(gatherer.take(24 * MS), [piece(0, 20..25)]);
        assert!(!gatherer.has_ready(24 * MS));
        assert_eq!(gatherer.untaken(), 975);
    }

    #[test]
    fn a_batch_lingers_unless_it_is_full() {
        let mut gatherer = gatherer(1000.0, &[0], 1, 5 * MS, 3);
        gatherer.admit(MS);
        assert!(!gatherer.has_ready(MS));
        assert_eq!(gatherer.take(MS), []);
        gatherer.admit(2 * MS);
        assert_eq!(gatherer.take(2 * MS), [piece(0, 0..3)]);
        gatherer.admit(3 * MS);
        assert_eq!(
            gatherer.next_wake_ns(3 * MS),
            Some(4 * MS),
            "the next record is due before the linger ends"
        );
        assert!(gatherer.has_ready(8 * MS));
    }

    #[test]
    fn a_request_ends_at_its_size_and_the_next_goes_on_there() {
        let partitions: Vec<u32> = (0..4).collect();
        let mut gatherer = gatherer(0.0, &partitions, 4, 0, 400);
        gatherer.admit(0);
        assert_eq!(gatherer.take(0), [piece(0, 0..400), piece(1, 0..400)]);
        assert_eq!(gatherer.take(0), [piece(2, 0..400), piece(3, 0..400)]);
        assert_eq!(gatherer.take(0), []);
    }

    #[test]
    fn without_a_rate_a_backlog_is_one_batch_and_ends_with_the_time() {
        let mut gatherer = gatherer(0.0, &[1], 2, 0, 10);
        gatherer.admit(0);
        assert_eq!((gatherer.untaken(), gatherer.next_wake_ns(0)), (10, Some(0)));
        assert_eq!(gatherer.take(0), [piece(0, 0..10)]);
        gatherer.admit(1_000 * MS);
        assert_eq!((gatherer.untaken(), gatherer.next_wake_ns(1_000 * MS)), (0, None));
    }

    #[test]
    fn connections_of_one_producer_divide_its_records() {
        let mut all = Vec::new();
        for mine in [[0, 2], [1, 3]] {
            let mut gatherer = gatherer(100.0, &mine, 4, 0, 1000);
            assert_eq!(gatherer.untaken(), 50);
            gatherer.admit(20 * MS);
            assert_eq!(gatherer.untaken(), 50);
            gatherer.admit(2_000 * MS);
            for piece in gatherer.take(2_000 * MS) {
                all.extend(piece.records.map(|k| gatherer.number(piece.slot, k)));
            }
            assert_eq!((gatherer.untaken(), gatherer.next_wake_ns(2_000 * MS)), (0, None));
        }
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_batch_holds_what_fits_and_at_least_one() {
        assert_eq!(BatchSize::new(1024, 0, 16384).records, 15);
        assert_eq!(BatchSize::new(100_000, 0, 16384).records, 1);
    }
}
