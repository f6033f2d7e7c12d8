//! A storage in a temporary directory, on the real runtime.

use std::future::Future;
use std::path::Path;

use bytes::Bytes;
use protocol::Uuid;
use protocol::record::{BatchHeader, split_batches};
use runtime::task::Queue;

use crate::test_batches;
use crate::{Log, LogConfig, PartitionId, RecoveryReport, Storage, StorageConfig, StorageError};

/// Runs `main` on one real shard with an empty directory.
pub(super) fn run<T: 'static, F>(main: impl FnOnce(std::path::PathBuf) -> F + 'static) -> T
where
    F: Future<Output = T> + 'static,
{
    runtime::shard::block_on_one(async move {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let output = main(dir.path().to_owned()).await;
        drop(dir);
        output
    })
}

/// A small configuration.
pub(super) fn config(dir: &Path) -> StorageConfig {
    StorageConfig {
        journal_file_bytes: 1 << 20,
        journal_files_max: 8,
        cache_bytes: 1 << 20,
        reserve_bytes: 1 << 20,
        ..StorageConfig::new(dir, 0)
    }
}

/// Opens with background work.
pub(super) async fn open(config: StorageConfig) -> Result<(Storage, RecoveryReport), StorageError> {
    let (storage, report) = Storage::open(config).await?;
    runtime::task::spawn_in(Queue::Background, storage.clone().run_background());
    Ok((storage, report))
}

/// Ends a storage as a crash of the process would: nothing more is written.
pub(super) async fn crash(storage: Storage) {
    storage.0.shared.failure.set(StorageError::Closed);
    for _ in 0..20 {
        runtime::task::yield_now().await;
    }
    runtime::time::sleep(std::time::Duration::from_millis(20)).await;
}

pub(super) fn id(n: i32) -> PartitionId {
    PartitionId { topic_id: Uuid::from_u128(77), partition: n }
}

pub(super) async fn create(storage: &Storage, n: i32) -> Log {
    storage.create_log(id(n), "topic", LogConfig::default()).await.expect("created")
}

/// Appends a batch, waiting for room, and returns its base offset.
pub(super) async fn append(
    storage: &Storage,
    log: &Log,
    records: i32,
    value_bytes: usize,
) -> crate::Appended {
    let (header, batch) = test_batches::batch(records, value_bytes, 1000 + log.log_end_offset(), None);
    append_batch(storage, log, batch, &header).await
}

pub(super) async fn append_batch(
    storage: &Storage,
    log: &Log,
    batch: Bytes,
    header: &BatchHeader,
) -> crate::Appended {
    loop {
        match log.append(batch.clone(), header, 0) {
            Ok(appended) => return appended,
            Err(crate::AppendError::Busy) => storage.room().await,
            Err(error) => panic!("append: {error}"),
        }
    }
}

/// All batches of a log, read in steps of `bytes_max`; checks that offsets follow on each other.
pub(super) async fn read_all(log: &Log, bytes_max: usize) -> Vec<(BatchHeader, Bytes)> {
    let mut batches = Vec::new();
    let mut from = log.log_start_offset();
    while from < log.log_end_offset() {
        let read = log.read(from, bytes_max, i64::MAX, true).await.expect("readable");
        assert!(read.next_offset > from, "progress at {from}");
        let all: Vec<u8> = read.chunks.concat();
        assert_eq!(all.len(), read.bytes);
        for batch in split_batches(all.into()) {
            let (header, bytes) = batch.expect("whole batches");
            batches.push((header, bytes));
        }
        from = read.next_offset;
    }
    batches
}
