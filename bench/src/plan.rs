//! What every shard of the generator is told before the load starts: one immutable value for all of them, and the few
//! words that shards and the coordinator exchange while it runs.

use std::sync::Arc;

use runtime::time::Instant;

use crate::client::cluster::Cluster;
use crate::gatherer::BatchSize;
use crate::options::{Fetching, Keys, Load};
use crate::payload::Payloads;
use crate::schedule::Schedule;
use crate::tally::Tally;

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The cluster and its topic; absent in a null run, which has no connection at all.
    pub(crate) cluster: Option<Arc<Cluster>>,
    /// What is produced, if anything.
    pub(crate) produce: Option<Arc<ProducePlan>>,
    /// What is consumed, if anything.
    pub(crate) consume: Option<Arc<ConsumePlan>>,
}

/// The load of a producing run.
#[derive(Debug)]
pub(crate) struct ProducePlan {
    pub(crate) schedule: Schedule,
    pub(crate) load: Load,
    pub(crate) payloads: Payloads,
    pub(crate) partitions: u32,
    /// Version of the Produce requests; 0 in a null run.
    pub(crate) version: i16,
    /// Stamped into the values of an end-to-end run.
    pub(crate) run_id: Option<u64>,
}

/// The reading part of a run.
#[derive(Debug)]
pub(crate) struct ConsumePlan {
    pub(crate) fetching: Fetching,
    /// Version of the Fetch requests.
    pub(crate) version: i16,
    /// First offset to read, by partition.
    pub(crate) from: Vec<i64>,
    /// Offset to end at, by partition; `None` in an end-to-end run, where it is asked when the producers are done.
    pub(crate) to: Option<Vec<i64>>,
    /// Records after which one consumer stops, and seconds after which all do.
    pub(crate) records_each: u64,
    pub(crate) duration_s: Option<f64>,
    /// The stamps to look for in an end-to-end run.
    pub(crate) stamps: Option<Stamps>,
}

/// How the records of an end-to-end run are told from others, and counted from when they were due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    pub(crate) run_id: u64,
    pub(crate) schedule: Schedule,
}

impl ProducePlan {
    pub(crate) fn new(load: &Load, partitions: i32, version: i16, run_id: Option<u64>) -> Self {
        ProducePlan {
            schedule: Schedule::new(load.rate, load.warmup_s, load.duration_s, load.records, load.producers),
            payloads: Payloads::new(load.record_size_bytes, load.entropy, load.seed),
            load: load.clone(),
            partitions: partitions as u32,
            version,
            run_id,
        }
    }

    /// How many records fill a batch.
    pub(crate) fn batch(&self) -> BatchSize {
        let key_bytes = match self.load.keys {
            Keys::None => 0,
            Keys::Sequence => size_of::<u64>(),
        };
        BatchSize::new(self.load.record_size_bytes, key_bytes, self.load.batch_bytes)
    }

    /// How long a record may wait for others, ns.
    pub(crate) fn linger_ns(&self) -> u64 {
        (self.load.linger_ms * 1e6) as u64
    }
}

/// Between the shards of the generator: all start together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gate {
    /// To shard 0: this shard has its connections, or could not make them.
    Ready(bool),
    /// From shard 0: the time that the schedule counts from; `None` when some shard could not get ready.
    Go(Option<Instant>),
    /// To all: the producers of this shard are done.
    Produced,
}

/// From the shards to the coordinator.
#[derive(Debug)]
pub(crate) enum Event {
    /// All shards are ready and count from this moment.
    Started(Instant),
    /// What was counted since the last time.
    Counted(Box<Tally>),
    /// Something ended before it should have; the run is invalid.
    Broken(String),
    /// This shard is done.
    Finished,
}
