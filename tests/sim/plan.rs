//! What one seed decides before the run: topology, sizes, which faults may strike, workload.
//!
//! Swarm testing: each run has a random few of the faults and the sizes, since everything at once hides much.

use std::sync::Arc;
use std::time::Duration;

use broker::config::{HttpListener, Listener, NodeConfig};
use runtime::sim::SimConfig;

use crate::dice::Dice;
use crate::value::Place;

/// Where the node listens.
pub(crate) const PORT: u16 = 9092;
/// The longest time that the disk takes for an answer when it is not stalled.
pub(crate) const DISK_ANSWER_MAX: Duration = Duration::from_millis(8);

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fault {
    /// The power is cut; what was not flushed is kept, lost, torn or garbled.
    PowerCut,
    /// The same again while the node starts, up to three times.
    PowerCutsDuringStart,
    /// kill -9.
    Kill,
    /// The node is told to stop.
    Stop,
    /// A flush fails once.
    FailedFlush,
    /// A write fails once.
    FailedWrite,
    /// A read fails once.
    FailedRead,
    /// The disk is full for a while.
    FullDisk,
    /// The disk is full while the node starts again.
    FullDiskAtStart,
    /// The disk answers nothing for a while.
    StalledDisk,
    /// All connections are reset.
    Resets,
    /// Clients and node do not hear each other for a while.
    Partition,
    /// One bit of a block in the middle of the journal rots while the node is down.
    Rot,
}

const FAULTS: [Fault; 13] = [
    Fault::PowerCut,
    Fault::PowerCutsDuringStart,
    Fault::Kill,
    Fault::Stop,
    Fault::FailedFlush,
    Fault::FailedWrite,
    Fault::FailedRead,
    Fault::FullDisk,
    Fault::FullDiskAtStart,
    Fault::StalledDisk,
    Fault::Resets,
    Fault::Partition,
    Fault::Rot,
];

/// How a producer works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Repeats until it is answered, with sequence numbers; so many requests may be on the way.
    Idempotent { window: usize },
    /// Sends each batch once.
    Plain { acks: i16 },
}

/// One producer.
#[derive(Clone, Debug)]
pub(crate) struct ProducerPlan {
    pub number: u32,
    pub place: Place,
    pub kind: Kind,
    pub batches: u32,
    pub records_max: u64,
    pub filler_max: u32,
    pub pause_max_ms: u64,
}

/// Everything that a seed decides.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub seed: u64,
    pub shards: u16,
    pub places: Vec<Place>,
    pub config: Arc<NodeConfig>,
    pub sim: SimConfig,
    pub producers: Vec<ProducerPlan>,
    pub fetchers: u64,
    pub with_group: bool,
    /// What strikes, and how long after the one before.
    pub faults: Vec<(Duration, Fault)>,
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn new(seed: u64) -> Plan {
        let dice = Dice::new(seed, "plan");
        let shards = dice.between(1..=3) as u16;
        let mut places = Vec::new();
        let partitions = dice.between(1..=6) as i32;
        for topic in 0..=dice.between(0..=1) as u32 {
            let count = if topic == 0 { partitions } else { dice.between(1..=2) as i32 };
            places.extend((0..count).map(|partition| Place { topic, partition }));
        }
        let producers = (0..dice.between(2..=5) as u32).map(|number| producer(&dice, number, &places));
        Plan {
            seed,
            shards,
            producers: producers.collect(),
            config: Arc::new(config(&dice)),
            sim: sim(&dice),
            fetchers: dice.between(1..=2),
            with_group: dice.chance(40),
            faults: faults(&dice),
            places,
        }
    }

    /// How many partitions a topic has.
    pub(crate) fn partitions(&self, topic: u32) -> i32 {
        self.places.iter().filter(|place| place.topic == topic).count() as i32
    }
}

fn producer(dice: &Dice, number: u32, places: &[Place]) -> ProducerPlan {
    let kind = match dice.between(0..=9) {
        0..=5 => Kind::Idempotent { window: dice.between(1..=5) as usize },
        6 | 7 => Kind::Plain { acks: -1 },
        8 => Kind::Plain { acks: 1 },
        _ => Kind::Plain { acks: 0 },
    };
    ProducerPlan {
        number,
        place: dice.pick(places),
        kind,
        batches: dice.between(20..=150) as u32,
        records_max: dice.pick(&[1, 3, 8]),
        filler_max: dice.pick(&[16, 200, 1500]),
        pause_max_ms: dice.pick(&[0, 5, 40]),
    }
}

fn config(dice: &Dice) -> NodeConfig {
    let journal_file_bytes = dice.pick(&[64 << 10, 96 << 10, 256 << 10, 1 << 20]);
    NodeConfig {
        data_dir: "/data".into(),
        listeners: vec![Listener::plaintext("", PORT)],
        http_listener: HttpListener(None),
        memory_bytes: dice.pick(&[2 << 20, 16 << 20, 96 << 20]),
        cache_memory_percent: dice.pick(&[10, 50]),
        message_max_bytes: 32 << 10,
        log_segment_bytes: dice.pick(&[8 << 10, 64 << 10, 1 << 20]),
        log_index_interval_bytes: dice.pick(&[0, 512, 4096]),
        journal_file_bytes,
        journal_files_max: dice.pick(&[2, 3, 4, 8]),
        storage_min_free_bytes: dice.pick(&[128 << 10, 1 << 20]),
        offsets_topic_num_partitions: dice.between(1..=3) as i32,
        ..NodeConfig::default()
    }
}

fn sim(dice: &Dice) -> SimConfig {
    let fates = [[40, 30, 25, 5], [0, 100, 0, 0], [100, 0, 0, 0], [10, 10, 70, 10]];
    SimConfig {
        early_timeout_permille: dice.pick(&[0, 0, 20]),
        disk_latency: Duration::from_micros(20)
            ..=dice.pick(&[Duration::from_micros(200), Duration::from_micros(800), DISK_ANSWER_MAX]),
        unsynced_weights: dice.pick(&fates),
        net_spike_permille: dice.pick(&[0, 5, 50]),
        net_give_up: Duration::from_secs(5),
        ..SimConfig::default()
    }
}

fn faults(dice: &Dice) -> Vec<(Duration, Fault)> {
    let mut chosen: Vec<Fault> = FAULTS.into_iter().filter(|_| dice.chance(35)).collect();
    if chosen.is_empty() {
        chosen.push(Fault::PowerCut);
    }
    let gap_max = dice.pick(&[40, 200, 700]);
    (0..dice.between(2..=9)).map(|_| (dice.millis(1..=gap_max), dice.pick(&chosen))).collect()
}
