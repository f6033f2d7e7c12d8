//! Loading: the stored state of a coordinator out of its log, by the same `apply` that keeps it up to date later.

use protocol::record::{self, RecordIter, split_batches};
use raft::Group;
use runtime::task;
use storage::ReadError;

use super::group::{ConsumerGroups, GroupConfig, Record, RecordError};

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;
/// Most bytes that one batch of this topic may hold when it is decompressed.
const BATCH_BYTES_MAX: usize = 256 << 20;

/// A log that does not give a state.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error("reading the log: {0}")]
    Read(#[from] ReadError),
    #[error("offset {0} is missing")]
    Missing(i64),
    #[error("reading a batch: {0}")]
    Batch(#[from] record::RecordError),
    #[error("record at offset {offset}: {error}")]
    Record { offset: i64, error: RecordError },
}

/// Applies all that the log holds. Returns once everything that was read is raft-committed.
pub(super) async fn load(raft: &Group, config: GroupConfig) -> Result<ConsumerGroups, LoadError> {
    let mut groups = ConsumerGroups::new(config);
    let log = raft.log();
    let end = log.log_end_offset();
    let mut next = log.log_start_offset();
    while next < end {
        let read = log.read(next, READ_BYTES, end, true).await?;
        if read.next_offset <= next {
            return Err(LoadError::Missing(next));
        }
        for chunk in read.chunks {
            for batch in split_batches(chunk) {
                let (header, batch) = batch?;
                if !header.is_control() {
                    apply_batch(&mut groups, RecordIter::of_batch(&batch, BATCH_BYTES_MAX)?, next)?;
                }
                task::yield_if_needed().await;
            }
        }
        next = read.next_offset;
    }
    raft.watch_high_watermark().wait_until(|mark| mark >= end).await;
    Ok(groups)
}

/// Applies the records of one batch from offset `from` on.
fn apply_batch(groups: &mut ConsumerGroups, records: RecordIter, from: i64) -> Result<(), LoadError> {
    for stored in records {
        let stored = stored?;
        let offset = stored.offset;
        if offset < from {
            continue;
        }
        let record = Record::decode(stored.key, stored.value);
        match record.map_err(|error| LoadError::Record { offset, error })? {
            Some(record) => groups.apply(&record),
            None => tracing::debug!(offset, "leaving out a record of another kind of group"),
        }
    }
    Ok(())
}
