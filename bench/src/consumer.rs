//! One consumer's connection to one broker: fetches its partitions, one request at a time as Kafka's own consumer does,
//! and counts what comes. Owns the offsets.
//!
//! 1. An offset never goes back: records before it that a batch brings along are not counted again.
//! 2. It reads up to the end it was given; in an end-to-end run, up to the high watermark after the last
//!    acknowledgement.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use protocol::messages::fetch_response::PartitionData;
use protocol::messages::{FetchRequest, FetchResponse};
use protocol::record::{BatchHeader, split_batches};
use runtime::sync::Watch;
use runtime::time;

use crate::batch;
use crate::client::cluster::{Cluster, End};
use crate::client::connection::Connection;
use crate::error::BenchError;
use crate::payload::Stamp;
use crate::plan::{ConsumePlan, Stamps};
use crate::tally::Tally;

/// How long a consumer goes on without progress once it knows where to end.
const STALL: Duration = Duration::from_secs(30);

/// A connection that is ready to fetch.
pub(crate) struct Fetcher {
    connection: Connection,
    cluster: Arc<Cluster>,
    plan: Arc<ConsumePlan>,
    positions: Vec<Position>,
    /// Records that may still be read, shared by the connections of one consumer.
    budget: Rc<Cell<u64>>,
    tally: Rc<RefCell<Tally>>,
}

/// One partition's place, and where to end once that is known.
struct Position {
    partition: u32,
    offset: i64,
    end: Option<i64>,
}

impl Fetcher {
    /// Connects to `broker` for those of its `partitions`.
    pub(crate) async fn open(
        plan: &Arc<ConsumePlan>,
        cluster: &Arc<Cluster>,
        broker: i32,
        partitions: &[u32],
        budget: &Rc<Cell<u64>>,
        tally: &Rc<RefCell<Tally>>,
    ) -> Result<Self, BenchError> {
        let offset = |ends: &[i64], partition: u32| ends.get(partition as usize).copied();
        let position = |partition: &u32| Position {
            partition: *partition,
            offset: offset(&plan.from, *partition).unwrap_or(0),
            end: plan.to.as_ref().and_then(|ends| offset(ends, *partition)),
        };
        Ok(Fetcher {
            connection: cluster.connect(broker).await?,
            cluster: Arc::clone(cluster),
            plan: Arc::clone(plan),
            positions: partitions.iter().map(position).collect(),
            budget: Rc::clone(budget),
            tally: Rc::clone(tally),
        })
    }

    /// Reads until the end, the budget or the time is reached. `produced` becomes true when every producer of the run
    /// is done.
    pub(crate) async fn run(mut self, start: time::Instant, produced: Watch<bool>) -> Result<(), BenchError> {
        time::sleep_until(start).await;
        let deadline = self.plan.duration_s.map(|seconds| start + Duration::from_secs_f64(seconds));
        let mut progress = time::now();
        loop {
            if produced.get() && self.positions.iter().any(|position| position.end.is_none()) {
                self.find_ends().await?;
                progress = time::now();
            }
            let now = time::now();
            if self.at_end() || self.budget.get() == 0 || deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(());
            }
            let sent_ns = now.duration_since(start).as_nanos() as u64;
            let request = self.request();
            let response = self.connection.call(&request, self.plan.version).await?;
            let answered_ns = start.elapsed().as_nanos() as u64;
            let records = self.take_in(response, sent_ns, answered_ns)?;
            if records > 0 {
                progress = time::now();
            } else if self.positions.iter().all(|position| position.end.is_some())
                && progress.elapsed() > STALL
            {
                return Err(BenchError::Stalled(STALL));
            }
        }
    }

    fn at_end(&self) -> bool {
        self.positions.iter().all(|position| position.end.is_some_and(|end| position.offset >= end))
    }

    /// Everything acknowledged is below these offsets (invariant 2).
    async fn find_ends(&mut self) -> Result<(), BenchError> {
        let partitions: Vec<u32> = self.positions.iter().map(|position| position.partition).collect();
        let ends = self.cluster.offsets_on(&mut self.connection, &partitions, End::Latest).await?;
        for (partition, end) in ends {
            if let Some(position) = self.positions.iter_mut().find(|position| position.partition == partition)
            {
                position.end = Some(end);
            }
        }
        Ok(())
    }

    fn request(&self) -> FetchRequest {
        let fetching = &self.plan.fetching;
        let unread =
            self.positions.iter().filter(|position| position.end.is_none_or(|end| position.offset < end));
        let partition = |position: &Position| FetchPartition {
            partition: position.partition as i32,
            fetch_offset: position.offset,
            partition_max_bytes: fetching.fetch_partition_bytes,
            ..Default::default()
        };
        let topic = FetchTopic {
            topic: self.cluster.topic.clone(),
            topic_id: self.cluster.topic_id,
            partitions: unread.map(partition).collect(),
        };
        FetchRequest {
            max_wait_ms: fetching.fetch_wait_ms,
            min_bytes: fetching.fetch_min_bytes,
            max_bytes: fetching.fetch_max_bytes,
            topics: vec![topic],
            ..Default::default()
        }
    }

    /// Counts an answer; gives its records.
    fn take_in(
        &mut self,
        response: FetchResponse,
        sent_ns: u64,
        answered_ns: u64,
    ) -> Result<u64, BenchError> {
        if response.error_code != 0 {
            return Err(BenchError::refused("fetching", response.error_code, None));
        }
        let (mut records, mut bytes) = (0, 0);
        for data in response.responses.into_iter().flat_map(|topic| topic.partitions) {
            let (more_records, more_bytes) = self.take_in_partition(data, answered_ns)?;
            records += more_records;
            bytes += more_bytes;
        }
        if records > 0 {
            self.tally.borrow_mut().read(records, bytes, sent_ns, answered_ns);
        }
        self.budget.set(self.budget.get().saturating_sub(records));
        Ok(records)
    }

    fn take_in_partition(&mut self, data: PartitionData, answered_ns: u64) -> Result<(u64, u64), BenchError> {
        if data.error_code != 0 {
            let what = format!("fetching partition {}", data.partition_index);
            return Err(BenchError::refused(what, data.error_code, None));
        }
        let found =
            self.positions.iter().position(|position| position.partition as i32 == data.partition_index);
        let (Some(place), Some(batches)) = (found, data.records) else { return Ok((0, 0)) };
        let (mut records, mut bytes) = (0, 0);
        for batch in split_batches(batches.into_bytes()) {
            // A broker may cut the last batch of an answer off at the limit: the next fetch brings it whole.
            let Ok((header, batch)) = batch else { break };
            let from = self.positions[place].offset;
            if header.last_offset() < from {
                continue;
            }
            bytes += batch.len() as u64;
            records += self.count_batch(&header, &batch, from, answered_ns)?;
            self.positions[place].offset = header.last_offset() + 1;
        }
        Ok((records, bytes))
    }

    /// Records of a batch at `from` or later that belong to the run.
    fn count_batch(
        &self,
        header: &BatchHeader,
        batch: &Bytes,
        from: i64,
        answered_ns: u64,
    ) -> Result<u64, BenchError> {
        let Some(Stamps { run_id, schedule }) = self.plan.stamps else {
            let unread = header.last_offset() - header.base_offset.max(from) + 1;
            return Ok(unread.min(i64::from(header.record_count)).max(0) as u64);
        };
        let mut tally = self.tally.borrow_mut();
        let mut records = 0;
        batch::for_each_value(batch, |offset, value| match Stamp::read(value) {
            _ if offset < from => {}
            Some(stamp) if stamp.run_id == run_id => {
                records += 1;
                if schedule.measured(stamp.due_ns) {
                    tally.end_to_end(stamp.due_ns, answered_ns);
                }
            }
            _ => tally.foreign_records += 1,
        })?;
        Ok(records)
    }
}
