//! What Kafka demands of a batch from a client, as far as its header tells. Pure.
//!
//! Records are not looked at one by one, and compressed ones not decompressed: what the header and its CRC vouch for is
//! believed. `docs/compatibility.md` lists what that lets through.

use crate::config::TimestampType;
use crate::metadata::TopicSettings;
use bytes::Bytes;
use protocol::record::{self, BatchHeader, Codec, RecordError};
use protocol::{ErrorCode, Records};

/// A batch that is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rejected {
    pub(super) error: ErrorCode,
    pub(super) message: Option<String>,
}

impl Rejected {
    pub(super) fn new(error: ErrorCode, message: impl Into<String>) -> Rejected {
        Rejected { error, message: Some(message.into()) }
    }

    pub(super) fn bare(error: ErrorCode) -> Rejected {
        Rejected { error, message: None }
    }
}

/// Gives the one batch of a partition's records, with its header.
pub(super) fn validate(
    records: Option<Records>,
    version: i16,
    settings: &TopicSettings,
    has_transactional_id: bool,
    now_ms: i64,
) -> Result<(Bytes, BatchHeader), Rejected> {
    let invalid = |text: &str| Rejected::new(ErrorCode::InvalidRecord, text);
    let batch = records.map(Records::into_bytes).unwrap_or_default();
    if batch.is_empty() {
        return Err(invalid("A partition must have exactly one record batch, but has none"));
    }
    let header = BatchHeader::read(&batch).map_err(|error| malformed(&error))?;
    if header.size() > batch.len() {
        return Err(Rejected::new(ErrorCode::CorruptMessage, "The record batch is truncated"));
    }
    if header.size() < batch.len() {
        return Err(invalid("A partition must have exactly one record batch"));
    }
    if batch.len() > settings.max_message_bytes {
        let text = format!("The batch has {} bytes, the topic takes {} at most", batch.len(), settings.max_message_bytes);
        return Err(Rejected::new(ErrorCode::MessageTooLarge, text));
    }
    let Ok(codec) = header.compression() else { return Err(invalid("Unknown compression type")) };
    if codec == Codec::Zstd && version < 7 {
        let text = "Produce requests before version 7 cannot use zstd";
        return Err(Rejected::new(ErrorCode::UnsupportedCompressionType, text));
    }
    record::verify_crc(&batch).map_err(|error| malformed(&error))?;
    check_header(&header, has_transactional_id)?;
    check_timestamps(&header, settings, now_ms)?;
    Ok((batch, header))
}

fn malformed(error: &RecordError) -> Rejected {
    Rejected::new(error.error_code(), error.to_string())
}

fn check_header(header: &BatchHeader, has_transactional_id: bool) -> Result<(), Rejected> {
    let invalid = |text: String| Err(Rejected::new(ErrorCode::InvalidRecord, text));
    if header.base_offset != 0 {
        return invalid(format!("The base offset of the record batch should be 0, but it is {}", header.base_offset));
    }
    if header.record_count <= 0 {
        return invalid(format!("The record batch has a count of {}", header.record_count));
    }
    if header.last_offset_delta != header.record_count - 1 {
        let (delta, count) = (header.last_offset_delta, header.record_count);
        return invalid(format!("The record batch ends at offset delta {delta}, but has {count} records"));
    }
    if header.is_control() {
        return invalid("Clients are not allowed to write control records".to_owned());
    }
    if header.delete_horizon_ms().is_some() {
        return invalid("Clients are not allowed to set a delete horizon".to_owned());
    }
    if header.producer_id >= 0 && header.base_sequence < 0 {
        return invalid(format!("Invalid sequence number {} in a batch with a producer id", header.base_sequence));
    }
    if header.is_transactional() {
        let error = if has_transactional_id {
            ErrorCode::InvalidTxnState
        } else {
            ErrorCode::TransactionalIdAuthorizationFailed
        };
        return Err(Rejected::new(error, "This broker has no transactions"));
    }
    Ok(())
}

fn check_timestamps(header: &BatchHeader, settings: &TopicSettings, now_ms: i64) -> Result<(), Rejected> {
    // The broker's time replaces whatever the client sent.
    if settings.timestamp_type == TimestampType::LogAppendTime {
        return Ok(());
    }
    let invalid = |text: String| Err(Rejected::new(ErrorCode::InvalidTimestamp, text));
    if header.timestamp_type() == record::TimestampType::LogAppendTime {
        return invalid("Producers should not set the timestamp type to LogAppendTime".to_owned());
    }
    let earliest = now_ms.saturating_sub(settings.timestamp_before_max_ms);
    let latest = now_ms.saturating_add(settings.timestamp_after_max_ms);
    // -1 stands for no timestamp.
    for timestamp in [header.base_timestamp, header.max_timestamp] {
        if timestamp != -1 && !(earliest..=latest).contains(&timestamp) {
            return invalid(format!("Timestamp {timestamp} is outside of {earliest} to {latest}"));
        }
    }
    Ok(())
}
