//! Offsets and batches out of a partition, and waiting for more.
//!
//! Invariant: a client sees nothing at or beyond the high watermark. Without transactions the last stable offset is the same.

use super::Partition;
use bytes::Bytes;
use futures::future;
use protocol::ErrorCode;
use std::pin::pin;
use storage::{ReadError, StorageError};

/// Batches that were read, with the offsets that go with them.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Whole batches, of which the first holds the offset asked for; empty at the end.
    pub chunks: Vec<Bytes>,
    /// Their bytes.
    pub bytes: usize,
    /// High watermark when they were read.
    pub high_watermark: i64,
    /// Log start offset when they were read.
    pub log_start_offset: i64,
}

impl Fetched {
    /// Drops the batches; the offsets stay.
    pub(crate) fn take_back(&mut self) {
        self.chunks.clear();
        self.bytes = 0;
    }
}

/// A fetch that a partition cannot serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchError {
    /// An error for the client.
    Code(ErrorCode),
    /// The client's log has diverged (KIP-320): the largest leader epoch not above its own, and where that ends.
    Diverging {
        /// Leader epoch.
        leader_epoch: i32,
        /// End offset.
        end_offset: i64,
    },
}

impl From<ErrorCode> for FetchError {
    fn from(error: ErrorCode) -> FetchError {
        FetchError::Code(error)
    }
}

/// What a client is told about a read that failed.
pub(crate) fn read_error(error: &ReadError) -> ErrorCode {
    match error {
        ReadError::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        ReadError::Deleted => ErrorCode::UnknownTopicOrPartition,
        ReadError::Storage(_) => ErrorCode::KafkaStorageError,
    }
}

/// What a client is told about a change of the log that failed.
pub(crate) fn storage_error(error: &StorageError) -> ErrorCode {
    match error {
        StorageError::UnknownLog(_) => ErrorCode::UnknownTopicOrPartition,
        StorageError::Io { .. }
        | StorageError::Corrupt { .. }
        | StorageError::UnsupportedVersion { .. }
        | StorageError::WrongShard { .. }
        | StorageError::Closed
        | StorageError::Full
        | StorageError::LogExists(_)
        | StorageError::InvalidName(_)
        | StorageError::InvalidConfig(_) => ErrorCode::KafkaStorageError,
    }
}

impl Partition {
    /// First offset that clients cannot see yet.
    #[must_use]
    pub fn high_watermark(&self) -> i64 {
        self.group.high_watermark()
    }

    /// First offset that is kept.
    #[must_use]
    pub fn log_start_offset(&self) -> i64 {
        self.group.log().log_start_offset()
    }

    /// Leader epoch of this leadership.
    #[must_use]
    pub fn leader_epoch(&self) -> i32 {
        self.group.leader_epoch()
    }

    /// Checks the leader epoch that a client believes in, -1 for none (KIP-320).
    pub fn check_leader_epoch(&self, believed: i32) -> Result<(), ErrorCode> {
        match believed.cmp(&self.leader_epoch()) {
            _ if believed < 0 => Ok(()),
            std::cmp::Ordering::Less => Err(ErrorCode::FencedLeaderEpoch),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(ErrorCode::UnknownLeaderEpoch),
        }
    }

    /// Checks that the client's log up to `offset`, whose last batch had this leader epoch, is a prefix of this one.
    pub fn check_diverging(&self, last_fetched_epoch: i32, offset: i64) -> Result<(), FetchError> {
        if last_fetched_epoch < 0 {
            return Ok(());
        }
        let (leader_epoch, end_offset) = self.group.log().epoch_end_offset(last_fetched_epoch);
        if leader_epoch < 0 || end_offset < 0 {
            return Err(ErrorCode::OffsetOutOfRange.into());
        }
        if leader_epoch < last_fetched_epoch || end_offset < offset {
            return Err(FetchError::Diverging { leader_epoch, end_offset });
        }
        Ok(())
    }

    /// Reads batches from `offset` up to the high watermark: at most `bytes_max`, but one batch at least if `progress` is set.
    pub async fn read(&self, offset: i64, bytes_max: usize, progress: bool) -> Result<Fetched, FetchError> {
        if self.has_ended() {
            return Err(ErrorCode::UnknownTopicOrPartition.into());
        }
        let log = self.group.log();
        if offset < log.log_start_offset() || offset > log.log_end_offset() {
            return Err(ErrorCode::OffsetOutOfRange.into());
        }
        let high_watermark = self.high_watermark();
        let (mut chunks, mut bytes) = (Vec::new(), 0);
        if offset < high_watermark && (bytes_max > 0 || progress) {
            let read = log.read(offset, bytes_max, high_watermark, progress).await;
            let read = read.map_err(|error| {
                if let ReadError::Storage(reason) = &error {
                    tracing::error!(topic = %self.topic, partition = self.id.partition, offset, %reason, "reading");
                }
                read_error(&error)
            })?;
            (chunks, bytes) = (read.chunks, read.bytes);
        }
        Ok(Fetched { chunks, bytes, high_watermark, log_start_offset: log.log_start_offset() })
    }

    /// Waits until the high watermark is beyond `seen`, or the partition ends.
    pub async fn moved_beyond(&self, seen: i64) {
        let ending = self.ending();
        if self.has_ended() {
            return;
        }
        let watch = self.group.watch_high_watermark();
        let moved = pin!(watch.wait_until(|mark| mark > seen));
        future::select(moved, ending).await;
    }
}
