//! What a topic demands of a batch from a client. Pure.
//!
//! Owns: the topic's settings as rules. Does not own: the rules themselves (`protocol::record::validate`).
//! Of records that are not compressed only the lengths are looked at, and compressed ones are not decompressed: what the header
//! and its CRC vouch for is believed (`docs/decisions/005-what-is-checked-of-records.md`). Exceptions are compacted topics,
//! where each record needs a key, and topics with a codec of their own.

use super::recompress::recompress;
use crate::config::TimestampType;
use crate::metadata::TopicSettings;
use bytes::Bytes;
use protocol::record::validate::{self, Refusal, Rules, TimestampRules};
use protocol::record::{BatchHeader, Codec};
use protocol::{ErrorCode, Records};

/// Bytes that a batch may have when it is decompressed, where it must be.
const DECOMPRESSED_LEN_MAX: usize = 64 << 20;

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

impl From<Refusal> for Rejected {
    fn from(refusal: Refusal) -> Rejected {
        Rejected::new(refusal.error_code(), refusal.to_string())
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
    let rules = Rules {
        version,
        max_batch_bytes: settings.max_message_bytes,
        timestamps: (settings.timestamp_type == TimestampType::CreateTime).then_some(TimestampRules {
            earliest_ms: now_ms.saturating_sub(settings.timestamp_before_max_ms),
            latest_ms: now_ms.saturating_add(settings.timestamp_after_max_ms),
        }),
        keys_required: settings.cleanup.compact,
    };
    let bytes = records.map(Records::into_bytes).unwrap_or_default();
    let (header, batch) = validate::one_batch(bytes, &rules)?;
    if rules.keys_required {
        validate::records(&batch, &rules, DECOMPRESSED_LEN_MAX)?;
    } else if header.compression() == Ok(Codec::None) {
        validate::lengths(&header, &batch)?;
    }
    if header.is_transactional() {
        let error = if has_transactional_id {
            ErrorCode::InvalidTxnState
        } else {
            ErrorCode::TransactionalIdAuthorizationFailed
        };
        return Err(Rejected::new(error, "This broker has no transactions"));
    }
    match settings.codec() {
        Some(codec) if header.compression() != Ok(codec) => {
            Ok(recompress(&header, &batch, codec, DECOMPRESSED_LEN_MAX)?)
        }
        _ => Ok((batch, header)),
    }
}
