//! What a leader checks of the records that a producer sends to one partition, before it appends them.
//!
//! [`one_batch`] needs the header and the CRC alone; [`lengths`] steps over the records of a batch that is not compressed, by
//! their lengths; [`records`] walks the records, decompressing them. All follow Apache Kafka's checks and their error codes.
//! Whether topic, leader, producer and sequence fit is for the caller.

use bytes::Bytes;
use thiserror::Error;

use super::{
    BatchHeader, Codec, HEADER_BYTES, NO_TIMESTAMP, RecordError, RecordIter, TimestampType, split_batches,
    verify_crc,
};
use crate::ErrorCode;
use crate::wire::varint;

/// The first Produce version that may carry zstd (KIP-110).
const ZSTD_FROM_VERSION: i16 = 7;

/// What the topic, and the request, allow.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Version of the Produce request.
    pub version: i16,
    /// `max.message.bytes`: size of the largest batch.
    pub max_batch_bytes: usize,
    /// The timestamps that are allowed; `None` where the broker sets them itself.
    pub timestamps: Option<TimestampRules>,
    /// Whether the topic is compacted, so that every record needs a key.
    pub keys_required: bool,
}

/// `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms`, as moments in Unix milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct TimestampRules {
    /// The earliest that is allowed.
    pub earliest_ms: i64,
    /// The latest that is allowed.
    pub latest_ms: i64,
}

impl TimestampRules {
    fn allow(self, timestamp: i64) -> bool {
        timestamp == NO_TIMESTAMP || (self.earliest_ms..=self.latest_ms).contains(&timestamp)
    }
}

/// Why records are not appended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// There is no batch, or not all of it.
    #[error("no complete record batch")]
    NoBatch,
    /// There is more than one batch.
    #[error("more than one record batch")]
    MoreThanOneBatch,
    /// The bytes are not a valid batch.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// zstd, in a request of a version that does not have it.
    #[error("zstd in Produce version {0}")]
    ZstdTooEarly(i16),
    /// Larger than `max.message.bytes`.
    #[error("batch of {size} bytes, {limit} are allowed")]
    TooLarge {
        /// Bytes of the batch.
        size: usize,
        /// Bytes that are allowed.
        limit: usize,
    },
    /// A base offset other than 0.
    #[error("base offset {0} from a producer")]
    BaseOffset(i64),
    /// The number of records is not that of the offsets.
    #[error("{record_count} records, last offset delta {last_offset_delta}")]
    Count {
        /// The number of records by the header.
        record_count: i32,
        /// The last offset delta by the header.
        last_offset_delta: i32,
    },
    /// Control records, which only brokers write.
    #[error("control records from a producer")]
    Control,
    /// A producer id without a sequence number.
    #[error("producer id with base sequence {0}")]
    Sequence(i32),
    /// `LogAppendTime`, which only brokers set.
    #[error("LogAppendTime from a producer")]
    LogAppendTime,
    /// A timestamp too far from the broker's clock.
    #[error("timestamp {0} is out of bounds")]
    Timestamp(i64),
    /// A record without a key in a compacted topic.
    #[error("record {index} has no key, and the topic is compacted")]
    NoKey {
        /// Position in the batch, from 0.
        index: i32,
    },
}

impl Refusal {
    /// What the producer is told.
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::Record(error) => error.error_code(),
            Self::ZstdTooEarly(_) => ErrorCode::UnsupportedCompressionType,
            Self::TooLarge { .. } => ErrorCode::MessageTooLarge,
            Self::LogAppendTime | Self::Timestamp(_) => ErrorCode::InvalidTimestamp,
            Self::NoBatch
            | Self::MoreThanOneBatch
            | Self::BaseOffset(_)
            | Self::Count { .. }
            | Self::Control
            | Self::Sequence(_)
            | Self::NoKey { .. } => ErrorCode::InvalidRecord,
        }
    }
}

/// The one batch that `bytes` must hold, its CRC and header checked against `rules`. A second batch that is cut off is
/// dropped, as Kafka does. Looks at no record: where keys are required, or records are to be trusted, [`records`] is
/// called too.
pub fn one_batch(bytes: Bytes, rules: &Rules) -> Result<(BatchHeader, Bytes), Refusal> {
    let mut batches = split_batches(bytes);
    let (header, batch) = match batches.next() {
        None | Some(Err(RecordError::Truncated { .. })) => return Err(Refusal::NoBatch),
        Some(first) => first?,
    };
    match batches.next() {
        None | Some(Err(RecordError::Truncated { .. })) => {}
        Some(_) => return Err(Refusal::MoreThanOneBatch),
    }
    if header.compression()? == Codec::Zstd && rules.version < ZSTD_FROM_VERSION {
        return Err(Refusal::ZstdTooEarly(rules.version));
    }
    if header.base_offset != 0 {
        return Err(Refusal::BaseOffset(header.base_offset));
    }
    if batch.len() > rules.max_batch_bytes {
        return Err(Refusal::TooLarge { size: batch.len(), limit: rules.max_batch_bytes });
    }
    verify_crc(&batch)?;
    check_header(&header, rules)?;
    Ok((header, batch))
}

fn check_header(header: &BatchHeader, rules: &Rules) -> Result<(), Refusal> {
    let BatchHeader { record_count, last_offset_delta, .. } = *header;
    if record_count <= 0 || last_offset_delta != record_count - 1 {
        return Err(Refusal::Count { record_count, last_offset_delta });
    }
    if header.is_control() {
        return Err(Refusal::Control);
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        return Err(Refusal::Sequence(header.base_sequence));
    }
    if let Some(timestamps) = rules.timestamps {
        if header.timestamp_type() == TimestampType::LogAppendTime {
            return Err(Refusal::LogAppendTime);
        }
        if !timestamps.allow(header.max_timestamp) {
            return Err(Refusal::Timestamp(header.max_timestamp));
        }
    }
    Ok(())
}

/// Steps over the records of a batch that [`one_batch`] accepted and that is not compressed, by their lengths alone: there must
/// be as many as the header says, and they must fill the batch. A few nanoseconds for each record.
pub fn lengths(header: &BatchHeader, batch: &[u8]) -> Result<(), Refusal> {
    let mut left = batch.get(HEADER_BYTES..).unwrap_or_default();
    let reason = "the lengths of the records do not fill the batch";
    for index in 0..header.record_count {
        left = varint::read_i32(left)
            .and_then(|(len, prefix_len)| left.get(prefix_len.checked_add(usize::try_from(len).ok()?)?..))
            .ok_or(RecordError::Record { index, reason })?;
    }
    if left.is_empty() {
        Ok(())
    } else {
        Err(RecordError::Record { index: header.record_count, reason }.into())
    }
}

/// Walks the records of a batch that [`one_batch`] accepted: each must be whole, have the next offset, a timestamp within
/// bounds, and a key where one is required. Decompresses to at most `limit_bytes`.
pub fn records(batch: &Bytes, rules: &Rules, limit_bytes: usize) -> Result<(), Refusal> {
    for (index, record) in (0..).zip(RecordIter::of_batch(batch, limit_bytes)?) {
        let record = record?;
        // Accepted batches have base offset 0.
        if record.offset != i64::from(index) {
            let reason = "offset does not follow the one before";
            return Err(RecordError::Record { index, reason }.into());
        }
        if rules.keys_required && record.key.is_none() {
            return Err(Refusal::NoKey { index });
        }
        if rules.timestamps.is_some_and(|timestamps| !timestamps.allow(record.timestamp)) {
            return Err(Refusal::Timestamp(record.timestamp));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
