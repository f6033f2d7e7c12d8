//! [`RecordError`]: bytes that are not the record batch they claim to be.

use thiserror::Error;

use super::Codec;
use crate::ErrorCode;

/// Why bytes are no valid record batch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The bytes end inside a batch.
    #[error("batch of {wanted} bytes, {left} are left")]
    Truncated {
        /// The bytes that the header, or the length in it, asks for.
        wanted: usize,
        /// The bytes there are.
        left: usize,
    },
    /// A length that no batch can have.
    #[error("batch length {0}")]
    BatchLength(i32),
    /// Another format than v2.
    #[error("magic {0}, only 2 is supported")]
    Magic(i8),
    /// The checksum does not fit the bytes.
    #[error("stored CRC {stored:#010x}, computed {computed:#010x}")]
    Crc {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A compression codec that does not exist.
    #[error("unknown compression codec {0}")]
    UnknownCodec(u8),
    /// Compressed bytes that cannot be decompressed.
    #[error("{codec} data is corrupt: {reason}")]
    Decompress {
        /// The codec.
        codec: Codec,
        /// What it says.
        reason: String,
    },
    /// The records are larger than the caller wants to hold.
    #[error("records are over the limit of {limit_bytes} bytes once decompressed")]
    DecompressLimit {
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// A record that contradicts itself or its batch.
    #[error("record {index}: {reason}")]
    Record {
        /// Position in the batch, from 0.
        index: i32,
        /// What is wrong.
        reason: &'static str,
    },
}

impl RecordError {
    /// What a client is told.
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Self::Truncated { .. } | Self::BatchLength(_) | Self::Crc { .. } | Self::Decompress { .. } => {
                ErrorCode::CorruptMessage
            }
            // Kafka knows the two old formats, and accepts them from nobody any more.
            Self::Magic(0 | 1) => ErrorCode::InvalidRecord,
            Self::Magic(_) => ErrorCode::CorruptMessage,
            Self::UnknownCodec(_) => ErrorCode::UnsupportedCompressionType,
            Self::DecompressLimit { .. } => ErrorCode::MessageTooLarge,
            Self::Record { .. } => ErrorCode::InvalidRecord,
        }
    }
}
