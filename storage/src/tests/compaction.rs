//! Compaction of a log that is written, read, crashed and recovered in the simulated world, against a model.
//!
//! Checked: what is read was appended, at its offset, in order; the last record of each key is there unless it is a tombstone;
//! what goes is what had to; producers know their last batch. `STORAGE_SEEDS=from..to` runs others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use protocol::record::{BatchHeader, Builder, Codec, Producer, RecordIter, split_batches};
use runtime::random::below;

use super::lives::{self, lock};
use super::rig;
use crate::{
    AppendError, CleanupPolicy, Log, LogConfig, ProducerCheck, ReadError, Storage, StorageConfig,
    StorageError,
};

const KEYS: u64 = 40;

/// Key and value.
type Pair = (Vec<u8>, Option<Vec<u8>>);

#[derive(Default)]
struct Model {
    /// All that was appended and not lost, by offset.
    records: BTreeMap<i64, Pair>,
    end: i64,
    acknowledged_end: i64,
    last_of_producer: BTreeMap<i64, BatchHeader>,
    lives: u64,
    smallest_share: Option<f64>,
    error: Option<String>,
}

type Shared = Arc<Mutex<Model>>;

impl lives::Model for Model {
    fn lives(&self) -> u64 {
        self.lives
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
        cache_bytes: 64 << 10,
        reserve_bytes: 64 << 10,
        checkpoint_interval_ms: 300,
        retention_interval_ms: 150,
        open_files_max: 8,
        compaction_keys_max: if below(2) == 0 { 15 } else { 1000 },
        ..StorageConfig::new("/data/shard", 0)
    }
}

fn log_config() -> LogConfig {
    LogConfig {
        segment_bytes: 8_000,
        index_interval_bytes: 500,
        retention_ms: -1,
        cleanup_policy: CleanupPolicy::Compact,
        delete_retention_ms: below(2) as i64 * 400,
        min_cleanable_dirty_ratio: below(2) as f64 * 0.3,
        ..LogConfig::default()
    }
}

async fn live(model: Shared) {
    runtime::disk::create_dir_all("/data".as_ref()).await.expect("a root directory");
    if runtime::disk::sync_dir("/".as_ref()).await.is_err() {
        return;
    }
    let storage = match rig::open(config()).await {
        Ok((storage, _)) => storage,
        Err(StorageError::Io { .. }) => return,
        Err(error) => {
            lock(&model).error = Some(format!("open: {error}"));
            return;
        }
    };
    let log = match storage.log(rig::id(0)) {
        Some(log) => log,
        None if lock(&model).acknowledged_end == 0 => {
            let Ok(log) = storage.create_log(rig::id(0), "t", log_config()).await else { return };
            log
        }
        None => panic!("the log is gone"),
    };
    log.set_config(log_config());
    {
        let mut model = lock(&model);
        let end = log.log_end_offset();
        assert!((model.acknowledged_end..=model.end).contains(&end), "{end}");
        model.records.retain(|offset, _| *offset < end);
        model.last_of_producer.retain(|_, last| last.last_offset() < end);
        model.end = end;
        model.lives += 1;
    }
    check(&log, &model).await;
    for round in 0.. {
        if storage.failed().is_some() {
            return;
        }
        match below(40) {
            0 => check(&log, &model).await,
            1..6 => fetch(&log, &model).await,
            _ => append(&storage, &log, &model),
        }
        if round % 2 == 0 {
            runtime::time::sleep(Duration::from_micros(below(3000))).await;
        }
    }
}

fn append(storage: &Storage, log: &Log, model: &Shared) {
    let codecs = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
    let mut builder = Builder::new(codecs[below(5) as usize]);
    let producer_id = below(4) as i64;
    let last = lock(model).last_of_producer.get(&producer_id).copied();
    if producer_id > 0 {
        let base_sequence = last.map_or(0, |last| last.last_sequence() + 1);
        builder = builder.producer(Producer { id: producer_id, epoch: 0, base_sequence });
    }
    let mut pairs = Vec::new();
    for _ in 0..=below(4) {
        let key = format!("key{}", below(KEYS)).into_bytes();
        let value = (below(5) > 0).then(|| vec![below(256) as u8; below(300) as usize]);
        builder.push(runtime::time::wall_ms(), Some(&key), value.as_deref(), &[]);
        pairs.push((key, value));
    }
    let batch = builder.build();
    let mut header = BatchHeader::read(&batch).expect("a header");
    // After a crash a producer's last batch may be one that the model gave up.
    if log.check_producer(&header) != ProducerCheck::New {
        return;
    }
    let appended = match log.append(batch, &header, 0) {
        Ok(appended) => appended,
        Err(AppendError::Busy | AppendError::Full | AppendError::Failed(_)) => return,
        Err(error) => panic!("{error}"),
    };
    header.base_offset = appended.base_offset;
    {
        let mut model = lock(model);
        model.records.extend((appended.base_offset..).zip(pairs));
        model.end = appended.last_offset + 1;
        if producer_id > 0 {
            model.last_of_producer.insert(producer_id, header);
        }
    }
    let (storage, model) = (storage.clone(), Arc::clone(model));
    runtime::task::spawn(async move {
        if storage.durable(appended.ticket).await.is_ok() {
            let mut model = lock(&model);
            model.acknowledged_end = model.acknowledged_end.max(appended.last_offset + 1);
        }
    });
}

/// Offsets and pairs in these batches, which begin at or behind `from` but for the first.
fn pairs(chunks: Vec<Bytes>) -> Vec<(i64, Pair)> {
    let mut found: Vec<(i64, Pair)> = Vec::new();
    for batch in split_batches(chunks.concat().into()) {
        let (_, bytes) = batch.expect("whole batches");
        for record in RecordIter::of_batch(&bytes, 1 << 20).expect("a batch") {
            let record = record.expect("a record");
            let key = record.key.expect("a key").to_vec();
            assert!(found.last().is_none_or(|(before, _)| *before < record.offset), "offsets rise");
            found.push((record.offset, (key, record.value.map(|value| value.to_vec()))));
        }
    }
    found
}

/// What a read at `from` gives: every record that is the last of its key up to where the read ends, none that was not appended.
fn assert_complete(model: &Model, from: i64, next_offset: i64, found: &[(i64, Pair)]) {
    for (offset, pair) in found {
        assert_eq!(model.records.get(offset), Some(pair), "at {offset}");
    }
    let found: BTreeMap<i64, &Pair> = found.iter().map(|(offset, pair)| (*offset, pair)).collect();
    let mut last: BTreeMap<&[u8], (i64, bool)> = BTreeMap::new();
    for (offset, (key, value)) in &model.records {
        last.insert(key, (*offset, value.is_some()));
    }
    for (offset, has_value) in last.into_values() {
        let wanted = has_value && (from..next_offset).contains(&offset);
        assert!(!wanted || found.contains_key(&offset), "the last record of its key at {offset} is gone");
    }
}

async fn read_from(log: &Log, from: i64, bytes_max: usize) -> Option<(Vec<Bytes>, i64)> {
    match log.read(from, bytes_max, i64::MAX, true).await {
        Ok(found) => Some((found.chunks, found.next_offset)),
        // The disk's faults, not damage.
        Err(ReadError::Storage(StorageError::Io { .. })) => None,
        Err(error) => panic!("read at {from}: {error}"),
    }
}

async fn check(log: &Log, model: &Shared) {
    let (mut from, mut chunks) = (0, Vec::new());
    let end = log.log_end_offset();
    while from < end {
        let Some((more, next)) = read_from(log, from, 1 + below(6000) as usize).await else { return };
        assert!(next > from, "progress at {from}");
        chunks.extend(more);
        from = next;
    }
    // Between two of the reads, a record may have been superseded and taken away; then the later one is further on.
    let found = pairs(chunks);
    let mut model = lock(model);
    assert_complete(&model, 0, from, &found);
    for last in model.last_of_producer.values() {
        let known = log.check_producer(last);
        assert!(matches!(known, ProducerCheck::Duplicate { .. }), "{known:?} {last:?}");
    }
    if end > 400 {
        let share = found.len() as f64 / model.records.len() as f64;
        model.smallest_share = Some(model.smallest_share.map_or(share, |before| before.min(share)));
    }
}

async fn fetch(log: &Log, model: &Shared) {
    let from = below(log.log_end_offset() as u64 + 1) as i64;
    let Some((chunks, next)) = read_from(log, from, 1 + below(9000) as usize).await else { return };
    if let Some(first) = chunks.first() {
        let first = BatchHeader::read(first).expect("a batch");
        assert!(first.last_offset() >= from, "the batch holds the offset or follows it");
    }
    assert_complete(&lock(model), from, next, &pairs(chunks));
}

const COURSE: lives::Course = lives::Course {
    before_ms: 2500,
    room_bytes: 100_000,
    after: Duration::from_millis(400),
    after_step: Duration::from_micros(1),
};

fn run_seed(seed: u64) -> Option<f64> {
    let model = Shared::default();
    lives::run(seed, &COURSE, &model, live);
    lock(&model).smallest_share
}

#[test]
#[expect(clippy::print_stdout, reason = "a seed that fails by a panic must be known")]
fn the_last_record_of_each_key_survives() {
    let mut smallest = 1.0_f64;
    for seed in lives::seeds(0..10) {
        println!("seed {seed}");
        smallest = smallest.min(run_seed(seed).unwrap_or(1.0));
    }
    assert!(smallest < 0.5, "compaction did its work: {smallest} of the records were left");
}

#[test]
fn a_compacted_log_is_small_and_whole() {
    rig::run(|dir| async move {
        let config =
            || StorageConfig { cache_bytes: 32 << 10, compaction_keys_max: 1000, ..rig::config(&dir) };
        let (storage, _) = rig::open(config()).await.expect("opens");
        let log = rig::create(&storage, 0).await;
        let settings = LogConfig { min_cleanable_dirty_ratio: 0.0, ..log_config() };
        log.set_config(settings.clone());
        let model = Shared::default();
        let mut before = (0, 0);
        for end in [3000, 3200] {
            while log.log_end_offset() < end {
                append(&storage, &log, &model);
                storage.room().await;
            }
            log.durable_watch().wait_until(|durable| durable == log.log_end_offset()).await;
            storage.checkpoint().await.expect("written");
            before = (log.size_bytes().max(before.0), log.segment_count().max(before.1));
            // The first pass makes the segments small, the second puts them together.
            storage.compact_once().await.expect("compacted");
        }
        storage.checkpoint().await.expect("files are gone");
        let after = (log.size_bytes(), log.segment_count());
        assert!(after.0 < before.0 / 5 && after.1 < before.1 / 5, "{before:?} {after:?}");
        check(&log, &model).await;
        for _ in 0..50 {
            fetch(&log, &model).await;
        }
        assert!(log.0.state.borrow().damaged_indexes.is_empty(), "a hole is no damage");
        rig::crash(storage).await;
        let (storage, report) = rig::open(config()).await.expect("opens");
        assert_eq!(report.given_up.len() + report.findings.len(), 0, "{report:?}");
        let log = storage.log(rig::id(0)).expect("there");
        assert_eq!((log.size_bytes(), log.segment_count()), after);
        check(&log, &model).await;
        storage.close().await.expect("closes");
    });
}
