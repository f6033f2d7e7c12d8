//! What can be wrong with bytes that are read, and with values that are written.

use thiserror::Error;

/// Why bytes are not the message they claim to be. Positions count from the start of the decoder's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes end inside a value.
    #[error("{wanted} bytes wanted at byte {position}, {left} left")]
    UnexpectedEnd {
        /// Where the value begins.
        position: usize,
        /// Its length in bytes.
        wanted: usize,
        /// The bytes that are left.
        left: usize,
    },
    /// A length that no value of its type can have: negative and not null, or text over 32 767 bytes.
    #[error("length {length} before byte {position} is not a length")]
    InvalidLength {
        /// Just behind the length.
        position: usize,
        /// The length as it was read.
        length: i64,
    },
    /// More elements than the bytes that are left could hold.
    #[error("{count} elements before byte {position}, where {left} bytes are left")]
    TooManyElements {
        /// Just behind the count.
        position: usize,
        /// The count as it was read.
        count: usize,
        /// The bytes that are left.
        left: usize,
    },
    /// Null where the version of the message has no null.
    #[error("null before byte {position}, where a value must be")]
    UnexpectedNull {
        /// Just behind the null.
        position: usize,
    },
    /// Text that is not UTF-8.
    #[error("text at byte {position} is not UTF-8")]
    InvalidUtf8 {
        /// Where the text begins.
        position: usize,
    },
    /// A varint of more than five bytes, or a varlong of more than ten.
    #[error("varint at byte {position} is too long")]
    VarintTooLong {
        /// Where the varint begins.
        position: usize,
    },
    /// A tagged field whose content is shorter or longer than its stated size.
    #[error("tagged field that should end at byte {end} ends at byte {position}")]
    TagSize {
        /// Where the content ended.
        position: usize,
        /// Where the stated size ends.
        end: usize,
    },
    /// The message has no such version.
    #[error("{message} has no version {version}")]
    UnsupportedVersion {
        /// Kafka's name of the message.
        message: &'static str,
        /// The version that was asked for.
        version: i16,
    },
    /// Bytes behind the end of the message.
    #[error("message ends at byte {position}, {left} bytes are left")]
    TrailingBytes {
        /// Where the message ended.
        position: usize,
        /// The bytes behind it.
        left: usize,
    },
    /// The message would take more memory than its frame justifies, or than the caller allows.
    #[error("message needs {wanted} bytes of memory more at byte {position}, {left} are allowed")]
    AllocationLimit {
        /// Where the array begins.
        position: usize,
        /// What the array takes in memory, in bytes.
        wanted: usize,
        /// What is left of the limit, in bytes.
        left: usize,
    },
}

/// Why a value cannot be written in a version: a mistake of the program, never of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The message has no such version.
    #[error("{message} has no version {version}")]
    UnsupportedVersion {
        /// Kafka's name of the message.
        message: &'static str,
        /// The version that was asked for.
        version: i16,
    },
    /// The field has a value that matters, and the version has no such field.
    #[error("{field} is set, and version {version} does not have it")]
    NoSuchField {
        /// Structure and field, by Kafka's names.
        field: &'static str,
        /// The version being written.
        version: i16,
    },
    /// The field is null, and the version has no null for it.
    #[error("{field} is null, and version {version} has no null for it")]
    NullNotAllowed {
        /// Structure and field, by Kafka's names.
        field: &'static str,
        /// The version being written.
        version: i16,
    },
    /// A length that its length field cannot carry.
    #[error("length {length} is over {limit}")]
    TooLong {
        /// The length in bytes or elements.
        length: usize,
        /// The highest that can be written.
        limit: usize,
    },
}
