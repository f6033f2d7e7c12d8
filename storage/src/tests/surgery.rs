//! Torn tails, corrupt middles, damaged segments and derived files, made by editing bytes.

use std::path::{Path, PathBuf};

use super::rig::{append, config, crash, create, id, open, read_all, run};
use crate::{LogConfig, ReadError, Storage, StorageError};

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("readable");
    bytes[at] ^= 1;
    std::fs::write(path, bytes).expect("writable");
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(dir.join("partitions/topic-0")).expect("a directory");
    let mut files: Vec<_> = listing.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

/// A cleanly closed storage with 200 batches of about 1 KiB in several segments.
async fn closed(dir: &Path) -> Vec<bytes::Bytes> {
    let (storage, _) = open(config(dir)).await.expect("opens");
    let log = create(&storage, 0).await;
    log.set_config(LogConfig { segment_bytes: 50_000, index_interval_bytes: 4096, ..LogConfig::default() });
    for _ in 0..200 {
        append(&storage, &log, 2, 500).await;
    }
    let batches = read_all(&log, 1 << 20).await.into_iter().map(|(_, bytes)| bytes).collect();
    storage.close().await.expect("closes");
    batches
}

#[test]
fn a_flipped_byte_in_a_segment_spoils_one_batch_only() {
    run(|dir| async move {
        let batches = closed(&dir).await;
        let segments = files(&dir, "log");
        assert!(segments.len() > 3);
        flip(&segments[0], 20_500);
        let (storage, _) = open(config(&dir)).await.expect("opens");
        let log = storage.log(id(0)).expect("there");
        let mut bad = 0;
        for (n, batch) in batches.iter().enumerate() {
            match log.read(n as i64 * 2, 1, i64::MAX, true).await {
                Ok(read) => assert_eq!(read.chunks.concat(), *batch),
                Err(ReadError::Storage(StorageError::Corrupt { .. })) => bad += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(bad, 1);
        assert_eq!(append(&storage, &log, 1, 10).await.base_offset, 400);
        storage.close().await.expect("closes");
    });
}

#[test]
fn damaged_and_missing_indexes_are_rebuilt() {
    run(|dir| async move {
        let batches = closed(&dir).await;
        for (n, path) in files(&dir, "index").into_iter().chain(files(&dir, "rix")).enumerate() {
            if n % 2 == 0 { flip(&path, n % 7) } else { std::fs::remove_file(path).expect("removed") }
        }
        files(&dir, "timeindex").iter().for_each(|path| std::fs::write(path, b"").expect("emptied"));
        let (storage, _) = open(config(&dir)).await.expect("opens");
        let log = storage.log(id(0)).expect("there");
        for n in (0..batches.len()).rev() {
            let read = log.read(n as i64 * 2 + 1, 1, i64::MAX, true).await.expect("readable");
            assert_eq!(read.chunks.concat(), batches[n]);
        }
        assert_eq!(log.find_by_timestamp(1101).await.expect("readable"), Some((101, 1101, 0)));
        assert_eq!(log.max_timestamp().await.expect("readable"), Some((399, 1399, 0)));
        storage.close().await.expect("closes");
        assert_eq!(files(&dir, "index").len(), files(&dir, "log").len());
    });
}

/// Positions of the journal blocks that follow the checkpoint, found by their magic number.
fn blocks(dir: &Path) -> (PathBuf, Vec<usize>) {
    let path = dir.join("journal/0000.journal");
    let bytes = std::fs::read(&path).expect("readable");
    let positions = (0..bytes.len()).step_by(4096).filter(|at| bytes[*at..].starts_with(b"MJBK")).collect();
    (path, positions)
}

async fn killed(dir: &Path) -> i64 {
    let (storage, _) = open(config(dir)).await.expect("opens");
    let log = create(&storage, 0).await;
    for _ in 0..30 {
        let appended = append(&storage, &log, 1, 600).await;
        log.durable(appended.ticket).await.expect("durable");
    }
    crash(storage).await;
    30
}

#[test]
fn a_torn_last_block_is_cut_off() {
    run(|dir| async move {
        let end = killed(&dir).await;
        let (path, positions) = blocks(&dir);
        flip(&path, positions.last().expect("blocks") + 200);
        let (storage, report) = open(config(&dir)).await.expect("opens");
        assert_eq!(report.given_up, Vec::<String>::new());
        let log = storage.log(id(0)).expect("there");
        assert_eq!(log.log_end_offset(), end - 1);
        assert_eq!(read_all(&log, 1000).await.len() as i64, end - 1);
        assert_eq!(append(&storage, &log, 1, 10).await.base_offset, end - 1);
        storage.close().await.expect("closes");
        let (storage, _) = open(config(&dir)).await.expect("opens");
        assert_eq!(storage.log(id(0)).expect("there").log_end_offset(), end);
        storage.close().await.expect("closes");
    });
}

#[test]
fn a_journal_file_that_lost_its_length_keeps_its_blocks() {
    run(|dir| async move {
        let end = killed(&dir).await;
        let (path, positions) = blocks(&dir);
        let file = std::fs::File::options().write(true).open(&path).expect("opens");
        file.set_len(*positions.last().expect("blocks") as u64 + 4096).expect("cut");
        let (storage, _) = open(config(&dir)).await.expect("opens");
        assert_eq!(storage.log(id(0)).expect("there").log_end_offset(), end);
        assert_eq!(file.metadata().expect("there").len(), config(&dir).journal_file_bytes);
        crash(storage).await;
        // Of a size that nobody wants any more, it looks as short.
        let larger = crate::StorageConfig { journal_file_bytes: 2 << 20, ..config(&dir) };
        let (storage, _) = open(larger).await.expect("opens");
        let log = storage.log(id(0)).expect("there");
        assert_eq!((log.log_end_offset(), read_all(&log, 1000).await.len() as i64), (end, end));
        storage.close().await.expect("closes");
    });
}

#[test]
fn a_corrupt_middle_refuses_the_start_unless_it_is_given_up() {
    run(|dir| async move {
        killed(&dir).await;
        let (path, positions) = blocks(&dir);
        let at = positions[positions.len() - 10];
        flip(&path, at + 200);
        match Storage::open(config(&dir)).await {
            Err(StorageError::Corrupt { path: found, position, .. }) => {
                assert_eq!((found, position), (path.clone(), at as u64));
            }
            other => panic!("{other:?}"),
        }
        let repair = crate::StorageConfig { repair: true, ..config(&dir) };
        let (storage, report) = open(repair).await.expect("opens");
        assert!(!report.given_up.is_empty());
        let log = storage.log(id(0)).expect("there");
        assert!((15..30).contains(&log.log_end_offset()));
        storage.close().await.expect("closes");
        open(config(&dir)).await.expect("opens without repair from now on").0.close().await.expect("closes");
    });
}

fn findings(dir: &Path) -> Vec<(PathBuf, u64, bool)> {
    let found = crate::inspect::shard(dir).expect("readable").findings;
    found.into_iter().map(|finding| (finding.path, finding.position, finding.damage)).collect()
}

#[test]
fn an_inspection_tells_what_a_start_would_find() {
    run(|dir| async move {
        killed(&dir).await;
        let shard = crate::inspect::shard(&dir).expect("readable");
        assert_eq!(shard.findings, []);
        let counted: Vec<_> = shard.checkpoints.iter().map(|copy| copy.counts).collect();
        assert_eq!(counted, [true, false]);
        let content = shard.checkpoints[0].content.expect("whole");
        assert_eq!((content.logs, content.closed, content.replay_from_block), (0, false, 1));
        // The creation, and thirty batches.
        let file = &shard.journal[0];
        assert_eq!((file.entries, file.entry_numbers), (31, Some((1, 31))));

        let (path, positions) = blocks(&dir);
        let (middle, last) = (positions[positions.len() - 10], *positions.last().expect("blocks"));
        flip(&path, last + 200);
        assert_eq!(findings(&dir), [(path.clone(), last as u64, false)], "a torn write");
        flip(&path, last + 200);
        flip(&path, middle + 200);
        assert_eq!(findings(&dir), [(path.clone(), middle as u64, true)]);
        flip(&path, middle + 200);
        flip(&path, middle);
        assert_eq!(findings(&dir), [(path.clone(), middle as u64, true)], "not even recognizable");
        flip(&path, middle);
        flip(&dir.join("checkpoint.a"), 100);
        assert_eq!(findings(&dir), [(dir.join("checkpoint.a"), 0, true)]);
        flip(&dir.join("checkpoint.b"), 100);
        assert_eq!(findings(&dir).len(), 3);
    });
}

#[test]
fn one_damaged_checkpoint_is_harmless_and_two_refuse_the_start() {
    run(|dir| async move {
        let batches = closed(&dir).await;
        flip(&dir.join("checkpoint.a"), 100);
        let (storage, report) = open(config(&dir)).await.expect("opens");
        assert_eq!(report.findings.len(), 1);
        assert_eq!(read_all(&storage.log(id(0)).expect("there"), 9999).await.len(), batches.len());
        storage.close().await.expect("closes");
        flip(&dir.join("checkpoint.a"), 100);
        flip(&dir.join("checkpoint.b"), 100);
        assert!(matches!(Storage::open(config(&dir)).await, Err(StorageError::Corrupt { .. })));
    });
}
