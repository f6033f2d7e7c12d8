//! Random work on logs in the simulated world, with power cuts, kills and faults, against a model.
//!
//! Checked after every restart: what was acknowledged is there, what is there was appended, byte for byte, without gaps;
//! producers are known exactly; votes and deletions that were acknowledged hold. `STORAGE_SEEDS=from..to` runs others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use protocol::Uuid;
use protocol::record::{BatchHeader, Producer};
use runtime::random::below;

use super::lives::{self, lock};
use super::rig;
use crate::producer::Producers;
use crate::test_batches;
use crate::{
    AppendError, Log, LogConfig, PartitionId, ProducerCheck, Storage, StorageConfig, StorageError, Vote,
};

const PRODUCERS: u64 = 3;

/// What the storage is to hold.
#[derive(Default)]
struct Model {
    logs: BTreeMap<PartitionId, ModelLog>,
    logs_made: u128,
    restarts: u64,
    acknowledged: u64,
    error: Option<String>,
}

#[derive(Default)]
struct ModelLog {
    topic: String,
    batches: Vec<(BatchHeader, Bytes)>,
    acknowledged_end: i64,
    /// Lowest and highest log start offset that may be found.
    start: (i64, i64),
    vote: (Option<Vote>, Option<Vote>),
    deletion: Deletion,
}

#[derive(Default, PartialEq, Clone, Copy)]
enum Deletion {
    #[default]
    No,
    Asked,
    Acknowledged,
}

impl ModelLog {
    fn end(&self) -> i64 {
        self.batches.last().map_or(0, |(header, _)| header.next_offset())
    }
}

type Shared = Arc<Mutex<Model>>;

impl lives::Model for Model {
    fn lives(&self) -> u64 {
        self.restarts
    }

    fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

fn config() -> StorageConfig {
    StorageConfig {
        journal_file_bytes: 64 << 10,
        journal_files_max: 6,
        gather_bytes_max: 64 << 10,
        cache_bytes: 96 << 10,
        reserve_bytes: 256 << 10,
        checkpoint_interval_ms: 300,
        retention_interval_ms: 500,
        open_files_max: 8,
        ..StorageConfig::new("/data/shard", 3)
    }
}

fn log_config() -> LogConfig {
    LogConfig {
        segment_bytes: 20_000,
        index_interval_bytes: 700,
        retention_ms: -1,
        retention_bytes: if below(4) == 0 { 60_000 } else { -1 },
        ..LogConfig::default()
    }
}

/// One life of the process: recover, check, work until something ends it.
async fn live(model: Shared) {
    runtime::disk::create_dir_all("/data".as_ref()).await.expect("a root directory");
    if runtime::disk::sync_dir("/".as_ref()).await.is_err() {
        return;
    }
    let (storage, report) = match rig::open(config()).await {
        Ok(opened) => opened,
        Err(error) => {
            // The fault of the test may strike during recovery, too; damage may not.
            if matches!(error, StorageError::Io { .. }) {
                return;
            }
            lock(&model).error = Some(format!("open: {error}"));
            return;
        }
    };
    assert_eq!(report.given_up, Vec::<String>::new());
    check(&storage, &model).await;
    lock(&model).restarts += 1;
    loop {
        if storage.failed().is_some() || step(&storage, &model).await.is_err() {
            // As the process would: it exits.
            return;
        }
        if below(3) == 0 {
            runtime::time::sleep(Duration::from_micros(below(3000))).await;
        }
    }
}

/// Compares all that was recovered with the model, then makes the model what was recovered.
async fn check(storage: &Storage, model: &Shared) {
    let known: Vec<PartitionId> = lock(model).logs.keys().copied().collect();
    for (id, _) in storage.logs() {
        assert!(known.contains(&id), "log {id} was never made");
    }
    for id in known {
        let Some(log) = storage.log(id) else {
            let gone = lock(model).logs.remove(&id).expect("known");
            let nothing_lost = gone.acknowledged_end == 0 && gone.vote.0.is_none();
            assert!(gone.deletion != Deletion::No || nothing_lost, "log {id} is gone");
            continue;
        };
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        {
            let model = lock(model);
            let expected = &model.logs[&id];
            assert!(expected.deletion != Deletion::Acknowledged, "log {id} was deleted");
            assert!(
                (expected.acknowledged_end..=expected.end()).contains(&end),
                "end {end} of {id}: {}..={}",
                expected.acknowledged_end,
                expected.end()
            );
            assert!(
                (expected.start.0..=expected.start.1).contains(&start),
                "start {start} of {id}: {:?}",
                expected.start
            );
            assert!([expected.vote.0, expected.vote.1].contains(&log.vote()), "vote of {id}");
        }
        assert_eq!(log.durable_end_offset(), end);
        let found = rig::read_all(&log, 1 + below(20_000) as usize).await;
        log.set_config(log_config());
        let mut model = lock(model);
        let expected = model.logs.get_mut(&id).expect("known");
        expected.batches.retain(|(header, _)| header.next_offset() <= end);
        let kept: Vec<_> =
            expected.batches.iter().filter(|(header, _)| header.next_offset() > start).cloned().collect();
        assert!(found == kept, "contents of {id}: {} batches, {} expected", found.len(), kept.len());
        check_producers(&log, &expected.batches);
        expected.acknowledged_end = end;
        expected.start = (start, i64::MAX);
        expected.vote = (log.vote(), log.vote());
        expected.deletion = Deletion::No;
    }
}

/// The producers must be what all batches make of them, also of those that retention took.
fn check_producers(log: &Log, batches: &[(BatchHeader, Bytes)]) {
    let mut exact = Producers::default();
    batches.iter().for_each(|(header, _)| exact.apply(header, i64::MAX));
    for (header, _) in batches.iter().rev().take(40) {
        assert_eq!(log.check_producer(header), exact.check(header), "{header:?}");
    }
}

async fn step(storage: &Storage, model: &Shared) -> Result<(), StorageError> {
    let logs: Vec<PartitionId> = {
        let model = lock(model);
        model.logs.iter().filter(|(_, log)| log.deletion == Deletion::No).map(|(id, _)| *id).collect()
    };
    if logs.is_empty() || (logs.len() < 6 && below(30) == 0) {
        return create(storage, model).await;
    }
    let id = logs[below(logs.len() as u64) as usize];
    let log = storage.log(id).expect("known");
    match below(100) {
        0..60 => append(storage, &log, model),
        60..80 => read(&log, model).await,
        80..84 => vote(storage, &log, model).await,
        84..87 => raise_start(&log, model).await,
        87..88 => delete(storage, id, model).await,
        88..92 => storage.checkpoint().await.or_else(full_is_fine),
        92..96 => storage.retain_once().await.or_else(full_is_fine),
        _ => {
            runtime::time::sleep(Duration::from_millis(below(1500))).await;
            Ok(())
        }
    }
}

fn full_is_fine(error: StorageError) -> Result<(), StorageError> {
    if error.is_no_space() { Ok(()) } else { Err(error) }
}

async fn create(storage: &Storage, model: &Shared) -> Result<(), StorageError> {
    let id = {
        let mut model = lock(model);
        model.logs_made += 1;
        PartitionId { topic_id: Uuid::from_u128(model.logs_made), partition: 0 }
    };
    // Few names, so that a new log often takes the name of a deleted one.
    let topic = {
        let model = lock(model);
        let free =
            |name: &String| model.logs.values().all(|log| log.topic != *name || log.deletion != Deletion::No);
        (0..8).map(|n| format!("t{n}")).find(free)
    };
    let Some(topic) = topic else { return Ok(()) };
    let made = ModelLog { topic: topic.clone(), start: (0, i64::MAX), ..ModelLog::default() };
    lock(model).logs.insert(id, made);
    match storage.create_log(id, &topic, log_config()).await {
        Ok(_) => Ok(()),
        Err(StorageError::Full) => {
            lock(model).logs.remove(&id);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn append(storage: &Storage, log: &Log, model: &Shared) -> Result<(), StorageError> {
    let id = log.id();
    let records = 1 + below(4) as i32;
    let producer_id = below(PRODUCERS) as i64;
    let last = {
        let model = lock(model);
        let of_producer = |header: &&BatchHeader| header.producer_id == producer_id;
        model.logs[&id].batches.iter().map(|(header, _)| header).rfind(of_producer).copied()
    };
    let next_epoch = below(15) == 0;
    let producer = (producer_id > 0).then(|| match last {
        Some(last) if next_epoch => {
            Producer { id: producer_id, epoch: last.producer_epoch + 1, base_sequence: 0 }
        }
        Some(last) => {
            Producer { id: producer_id, epoch: last.producer_epoch, base_sequence: last.last_sequence() + 1 }
        }
        None => Producer { id: producer_id, epoch: 0, base_sequence: 0 },
    });
    let value_bytes = if below(20) == 0 { 4000 } else { 20 + below(600) as usize };
    let (header, batch) = test_batches::batch(records, value_bytes, runtime::time::wall_ms(), producer);
    assert_eq!(log.check_producer(&header), ProducerCheck::New);
    let appended = match log.append(batch.clone(), &header, 0) {
        Ok(appended) => appended,
        Err(AppendError::Busy | AppendError::Full) => return Ok(()),
        Err(AppendError::Failed(error)) => return Err(error),
        Err(error) => panic!("{error}"),
    };
    let mut bytes = batch.to_vec();
    protocol::record::set_base_offset(&mut bytes, appended.base_offset);
    protocol::record::set_leader_epoch(&mut bytes, 0);
    let header = BatchHeader::read(&bytes).expect("a batch");
    let mut locked = lock(model);
    let known = locked.logs.get_mut(&id).expect("known");
    assert_eq!(appended.base_offset, known.end(), "offsets have no gaps");
    known.batches.push((header, bytes.into()));
    drop(locked);
    let (storage, model) = (storage.clone(), Arc::clone(model));
    runtime::task::spawn(async move {
        if storage.durable(appended.ticket).await.is_ok() {
            let mut model = lock(&model);
            model.acknowledged += 1;
            if let Some(log) = model.logs.get_mut(&id) {
                log.acknowledged_end = log.acknowledged_end.max(appended.last_offset + 1);
            }
        }
    });
    Ok(())
}

async fn read(log: &Log, model: &Shared) -> Result<(), StorageError> {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    let from = start + below((end - start + 1) as u64) as i64;
    let bytes_max = below(12_000) as usize;
    let limit = if below(2) == 0 { end } else { log.durable_end_offset() };
    let found = log.read(from, bytes_max, limit, true).await;
    let model = lock(model);
    let expected = &model.logs[&log.id()];
    let found = match found {
        Ok(found) => found,
        Err(crate::ReadError::OutOfRange { .. }) if log.log_start_offset() > from => return Ok(()),
        Err(crate::ReadError::Storage(error)) => panic!("read: {error}"),
        Err(error) => panic!("read at {from} of {start}..{end}: {error}"),
    };
    let mut wanted = Vec::new();
    for (header, bytes) in expected.batches.iter().filter(|(header, _)| header.last_offset() >= from) {
        let fits = wanted.len() + bytes.len() <= bytes_max || wanted.is_empty();
        if header.last_offset() >= limit || !fits {
            break;
        }
        wanted.extend_from_slice(bytes);
    }
    let got = found.chunks.concat();
    assert!(wanted.starts_with(&got), "bytes at {from}");
    assert!(!got.is_empty() || wanted.is_empty(), "progress at {from}");
    Ok(())
}

async fn vote(storage: &Storage, log: &Log, model: &Shared) -> Result<(), StorageError> {
    let id = log.id();
    let vote = Vote { term: log.vote().map_or(1, |vote| vote.term + 1), committed: below(2) == 0, node: 4 };
    lock(model).logs.get_mut(&id).expect("known").vote.1 = Some(vote);
    storage.save_vote(id, vote).await?;
    lock(model).logs.get_mut(&id).expect("known").vote.0 = Some(vote);
    Ok(())
}

async fn raise_start(log: &Log, model: &Shared) -> Result<(), StorageError> {
    let (start, end) = (log.log_start_offset(), log.durable_end_offset());
    let offset = start + below((end - start).max(0) as u64 / 3 + 1) as i64;
    match log.set_log_start_offset(offset).await {
        Err(StorageError::UnknownLog(_)) => return Ok(()),
        other => other?,
    }
    let mut model = lock(model);
    let known = model.logs.get_mut(&log.id()).expect("known");
    known.start.0 = known.start.0.max(offset);
    Ok(())
}

async fn delete(storage: &Storage, id: PartitionId, model: &Shared) -> Result<(), StorageError> {
    lock(model).logs.get_mut(&id).expect("known").deletion = Deletion::Asked;
    storage.delete_log(id).await?;
    lock(model).logs.get_mut(&id).expect("known").deletion = Deletion::Acknowledged;
    Ok(())
}

const COURSE: lives::Course = lives::Course {
    before_ms: 1500,
    room_bytes: 300_000,
    after: Duration::from_millis(1200),
    after_step: Duration::from_millis(1),
};

/// Runs one seed. Returns what was acknowledged, and a hash.
fn run_seed(seed: u64) -> (u64, u64) {
    let model = Shared::default();
    let sim = lives::run(seed, &COURSE, &model, live);
    (lock(&model).acknowledged, sim.trace_hash())
}

#[test]
#[expect(clippy::print_stdout, reason = "a seed that fails by a panic must be known")]
fn nothing_acknowledged_is_lost() {
    let mut acknowledged = 0;
    for seed in lives::seeds(0..60) {
        println!("seed {seed}");
        acknowledged += run_seed(seed).0;
    }
    assert!(acknowledged > 1000, "the test did its work: {acknowledged}");
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    assert_eq!(run_seed(7), run_seed(7));
}
