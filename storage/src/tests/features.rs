//! Look-ups by time, retention, deletion, votes, truncation, producers, many partitions, a journal that is full.

use super::rig::{append, append_batch, config, crash, create, id, open, read_all, run};
use crate::{AppendError, LogConfig, ProducerCheck, StorageConfig, Vote, test_batches};
use protocol::record::Producer;

#[test]
fn many_partitions_are_cheap() {
    run(|dir| async move {
        let started = runtime::time::now();
        let (storage, _) = open(StorageConfig { cache_bytes: 8 << 20, ..config(&dir) }).await.expect("opens");
        let mut last = None;
        for n in 0..1024 {
            let log = create(&storage, n).await;
            last = Some((log.clone(), append(&storage, &log, 1, 100).await));
        }
        let (log, appended) = last.expect("made");
        log.durable(appended.ticket).await.expect("durable");
        assert!(storage.usage().journal_blocks < 200, "flushes are shared: {:?}", storage.usage());
        assert!(started.elapsed().as_secs() < 60);
        crash(storage).await;
        let (storage, report) = open(config(&dir)).await.expect("opens");
        assert_eq!((report.logs, report.entries), (1024, 2048));
        storage.close().await.expect("closes");
        let (storage, report) = open(config(&dir)).await.expect("opens");
        assert_eq!((report.logs, report.entries), (1024, 0));
        for (_, log) in storage.logs() {
            assert_eq!(read_all(&log, 1).await.len(), 1);
        }
        storage.close().await.expect("closes");
    });
}

#[test]
fn votes_and_truncations_survive() {
    run(|dir| async move {
        let (storage, _) = open(config(&dir)).await.expect("opens");
        let log = create(&storage, 0).await;
        log.set_config(LogConfig {
            segment_bytes: 20_000,
            index_interval_bytes: 1000,
            ..LogConfig::default()
        });
        for _ in 0..100 {
            append(&storage, &log, 2, 300).await;
        }
        let vote = Vote { term: 3, committed: true, node: 7 };
        storage.save_vote(id(0), vote).await.expect("saved");
        storage.checkpoint().await.expect("written");
        let all = read_all(&log, 5000).await;
        storage.truncate_after(id(0), 41).await.expect("cut in segments");
        assert_eq!((log.last_index(), log.log_end_offset()), (41, 82));
        for _ in 0..3 {
            append(&storage, &log, 1, 50).await;
        }
        storage.truncate_after(id(0), 43).await.expect("cut in memory");
        assert_eq!(log.log_end_offset(), 84);
        let cut = read_all(&log, 5000).await;
        assert!(cut[..41] == all[..41] && cut.len() == 43);
        crash(storage).await;
        let (storage, _) = open(config(&dir)).await.expect("opens");
        let log = storage.log(id(0)).expect("there");
        assert_eq!((log.vote(), log.last_index()), (Some(vote), 43));
        assert!(read_all(&log, 5000).await == cut);
        storage.close().await.expect("closes");
    });
}

#[test]
fn retention_removes_segments_and_their_files() {
    run(|dir| async move {
        let (storage, _) = open(config(&dir)).await.expect("opens");
        let log = create(&storage, 0).await;
        let limits = LogConfig {
            segment_bytes: 10_000,
            retention_bytes: 25_000,
            retention_ms: -1,
            ..LogConfig::default()
        };
        log.set_config(limits);
        for _ in 0..100 {
            let appended = append(&storage, &log, 1, 1000).await;
            log.durable(appended.ticket).await.expect("durable");
        }
        storage.checkpoint().await.expect("written");
        storage.retain_once().await.expect("retained");
        assert!((20_000..36_000).contains(&log.size_bytes()), "{}", log.size_bytes());
        assert_eq!(log.log_start_offset() + read_all(&log, 5000).await.len() as i64, 100);
        let names = std::fs::read_dir(dir.join("partitions/topic-0")).expect("there");
        let logs = names
            .filter(|name| name.as_ref().expect("a name").path().extension().is_some_and(|e| e == "log"));
        assert_eq!(logs.count(), log.segment_count());
        log.set_log_start_offset(98).await.expect("raised");
        storage.retain_once().await.expect("retained");
        assert!(log.log_start_offset() == 98 && log.segment_count() <= 2);
        storage.close().await.expect("closes");
    });
}

#[test]
fn the_metadata_log_takes_records_on_a_full_disk() {
    run(|dir| async move {
        let (storage, _) = open(config(&dir)).await.expect("opens");
        create(&storage, 0).await;
        create(&storage, 1).await;
        storage.close().await.expect("closes");
        let full = StorageConfig { reserve_bytes: u64::MAX, ..config(&dir) };
        let (storage, _) = open(full).await.expect("opens");
        let (plain, vital) = (storage.log(id(0)).expect("there"), storage.log(id(1)).expect("there"));
        vital.set_config(LogConfig { uses_reserve: true, ..LogConfig::default() });
        let (header, batch) = test_batches::batch(1, 100, 1000, None);
        assert!(matches!(plain.append(batch.clone(), &header, 0), Err(AppendError::Full)));
        let appended = vital.append(batch, &header, 0).expect("accepted");
        vital.durable(appended.ticket).await.expect("durable");
        storage.delete_log(id(0)).await.expect("deleted");
        storage.checkpoint().await.expect("written");
        storage.close().await.expect("closes");
        let (storage, _) = open(config(&dir)).await.expect("opens");
        assert!(storage.log(id(0)).is_none());
        assert_eq!(storage.log(id(1)).expect("there").log_end_offset(), 1);
        storage.close().await.expect("closes");
    });
}

#[test]
fn a_checkpoint_does_not_wait_for_the_journal_file_that_it_is_to_free() {
    run(|dir| async move {
        let small = StorageConfig { journal_file_bytes: 64 << 10, journal_files_max: 2, ..config(&dir) };
        let (storage, _) = open(small).await.expect("opens");
        let log = create(&storage, 0).await;
        append(&storage, &log, 1, 100).await;
        // The segment ends inside a block now, which is to be journalled before it is written again.
        storage.checkpoint().await.expect("written");
        let shared = storage.0.shared.clone();
        let held = shared.maintenance.acquire(1).await;
        let mut last = append(&storage, &log, 1, 4000).await;
        // Until batches are no longer sure of a place.
        while shared.journal.has_room() {
            last = append(&storage, &log, 1, 4000).await;
        }
        drop(held);
        let patience = std::time::Duration::from_secs(20);
        let durable = runtime::time::timeout(patience, log.durable(last.ticket)).await;
        durable.expect("the checkpoint ends").expect("durable");
        assert_eq!(read_all(&log, 5000).await.len() as i64, log.log_end_offset());
        crash(storage).await;
        let (storage, _) = open(config(&dir)).await.expect("opens");
        let log = storage.log(id(0)).expect("there");
        assert!(log.log_end_offset() > last.last_offset);
        assert_eq!(read_all(&log, 5000).await.len() as i64, log.log_end_offset());
        storage.close().await.expect("closes");
    });
}

#[test]
fn a_stop_with_more_gathered_than_the_journal_holds_comes_to_its_end() {
    run(|dir| async move {
        let small = StorageConfig { journal_file_bytes: 64 << 10, journal_files_max: 2, ..config(&dir) };
        let (storage, _) = open(small.clone()).await.expect("opens");
        let log = create(&storage, 0).await;
        append(&storage, &log, 1, 100).await;
        storage.checkpoint().await.expect("written");
        for _ in 0..150 {
            append(&storage, &log, 1, 4000).await;
        }
        let patience = std::time::Duration::from_secs(20);
        runtime::time::timeout(patience, storage.close()).await.expect("ends").expect("closes");
        let (storage, report) = open(small).await.expect("opens");
        assert_eq!(report.entries, 0);
        let log = storage.log(id(0)).expect("there");
        assert_eq!((log.log_end_offset(), read_all(&log, 5000).await.len()), (151, 151));
        storage.close().await.expect("closes");
    });
}

#[test]
fn producers_are_known_exactly_also_without_their_snapshot() {
    run(|dir| async move {
        let batch = |n: i32| {
            test_batches::batch(2, 100, 5000, Some(Producer { id: 9, epoch: 1, base_sequence: n * 2 }))
        };
        let (storage, _) = open(config(&dir)).await.expect("opens");
        let log = create(&storage, 0).await;
        for n in 0..8 {
            let (header, bytes) = batch(n);
            append_batch(&storage, &log, bytes, &header).await;
        }
        storage.close().await.expect("closes");
        for lose_snapshot in [false, true] {
            if lose_snapshot {
                let snapshot = dir.join("partitions/topic-0/00000000000000000016.producers");
                std::fs::remove_file(snapshot).expect("it was there");
            }
            let (storage, report) = open(config(&dir)).await.expect("opens");
            assert_eq!(report.findings.len(), usize::from(lose_snapshot));
            let log = storage.log(id(0)).expect("there");
            for n in 0..8 {
                let expected = match n {
                    0..3 => ProducerCheck::OutOfOrder { last_sequence: 15 },
                    _ => ProducerCheck::Duplicate {
                        base_offset: i64::from(n) * 2,
                        last_offset: i64::from(n) * 2 + 1,
                        timestamp: 5001,
                    },
                };
                assert_eq!(log.check_producer(&batch(n).0), expected, "batch {n}");
            }
            assert_eq!(log.check_producer(&batch(8).0), ProducerCheck::New);
            storage.close().await.expect("closes");
        }
    });
}
