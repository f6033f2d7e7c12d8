//! Append, durability, reads from memory and from disk, clean and unclean restarts.

use super::rig::{append, config, crash, create, id, open, read_all, run};
use crate::ReadError;

#[test]
fn batches_come_back_from_memory_from_disk_and_after_restarts() {
    run(|dir| async move {
        let (storage, report) = open(config(&dir)).await.expect("opens");
        assert_eq!(report.logs, 0);
        let log = create(&storage, 0).await;
        let mut last = None;
        for n in 0..3000 {
            last = Some(append(&storage, &log, 1 + n % 3, 1000).await);
        }
        let last = last.expect("appended");
        log.durable(last.ticket).await.expect("durable");
        assert_eq!(log.durable_end_offset(), last.last_offset + 1);
        assert_eq!(log.log_end_offset(), 6000);
        let before = read_all(&log, 100_000).await;
        assert_eq!(before.len(), 3000);
        assert!(before.windows(2).all(|pair| pair[0].0.next_offset() == pair[1].0.base_offset));

        crash(storage).await;
        let (storage, report) = open(config(&dir)).await.expect("opens after a crash");
        assert_eq!((report.logs, report.given_up), (1, vec![]));
        let log = storage.log(id(0)).expect("still there");
        assert_eq!((log.log_end_offset(), log.durable_end_offset()), (6000, 6000));
        assert!(read_all(&log, 100_000).await == before);

        storage.close().await.expect("closes");
        let (storage, report) = open(config(&dir)).await.expect("opens after a clean end");
        assert_eq!(report.entries, 0, "a clean end leaves nothing to replay");
        let log = storage.log(id(0)).expect("still there");
        assert!(read_all(&log, 5_000).await == before);
        assert!(matches!(log.read(6001, 1, i64::MAX, true).await, Err(ReadError::OutOfRange { .. })));
        assert_eq!(append(&storage, &log, 1, 10).await.base_offset, 6000);
        storage.close().await.expect("closes");
    });
}
