//! What all messages have in common.

use crate::ApiKey;
use crate::wire::{DecodeError, Decoder, EncodeError, Encoder};

/// A message of the protocol. Its default is Kafka's default for each field.
pub trait Message: Sized + Default {
    /// Kafka's name.
    const NAME: &'static str;
    /// The lowest version that exists.
    const MIN_VERSION: i16;
    /// The highest version that exists, stable or not.
    const MAX_VERSION: i16;
    /// The first version in the flexible encoding (KIP-482), if there is one.
    const FLEXIBLE_FROM: Option<i16>;

    /// Reads the message. Text and bytes stay in the memory of the frame; unknown tagged fields are skipped. Does not
    /// ask for the end of the bytes: [`Decoder::finish`] does.
    fn decode(d: &mut Decoder, version: i16) -> Result<Self, DecodeError>;

    /// Writes the message.
    fn encode(&self, e: &mut Encoder, version: i16) -> Result<(), EncodeError>;

    /// An error for a version that cannot be read.
    #[doc(hidden)]
    fn check_decodable(version: i16) -> Result<(), DecodeError> {
        if (Self::MIN_VERSION..=Self::MAX_VERSION).contains(&version) {
            return Ok(());
        }
        Err(DecodeError::UnsupportedVersion { message: Self::NAME, version })
    }

    /// An error for a version that cannot be written.
    #[doc(hidden)]
    fn check_encodable(version: i16) -> Result<(), EncodeError> {
        if (Self::MIN_VERSION..=Self::MAX_VERSION).contains(&version) {
            return Ok(());
        }
        Err(EncodeError::UnsupportedVersion { message: Self::NAME, version })
    }
}

/// A message that a client sends.
pub trait Request: Message {
    /// The API.
    const KEY: ApiKey;
    /// The message that answers it.
    type Response: Message;
}

/// A message that a log keeps: a record of the metadata log, or the key or value of a coordinator's record.
pub trait Record: Message {
    /// The number that says which record it is: in front of metadata records and of coordinators' keys.
    const TYPE: i16;
}
