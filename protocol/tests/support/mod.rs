//! What the test programs of this crate share: every message behind one type, and random valid encodings of each.

#![allow(dead_code, reason = "each program uses a part")]

pub(crate) mod families;
pub(crate) mod generated;
pub(crate) mod random;
pub(crate) mod sample;
pub(crate) mod schema;

use bytes::Bytes;
use millrace_protocol::messages::Message;
use millrace_protocol::wire::{DecodeError, Decoder, EncodeError, Encoder};

/// One message, as functions over bytes.
pub(crate) struct Codec {
    /// Kafka's name.
    pub(crate) name: &'static str,
    /// The lowest version.
    pub(crate) min: i16,
    /// The highest version.
    pub(crate) max: i16,
    /// Decodes bytes of a version.
    pub(crate) decode: fn(Bytes, i16) -> Result<(), DecodeError>,
    /// Decodes bytes of one version and encodes them in another.
    pub(crate) transcode: fn(Bytes, i16, i16) -> Result<Bytes, Failure>,
    /// Encodes the defaults.
    pub(crate) default: fn(i16) -> Result<Bytes, EncodeError>,
}

/// Why bytes could not be transcoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// They could not be read, or not to the end.
    Decode(DecodeError),
    /// What was read could not be written.
    Encode(EncodeError),
}

impl Codec {
    /// The codec of `M`.
    pub(crate) const fn of<M: Message>() -> Self {
        Self {
            name: M::NAME,
            min: M::MIN_VERSION,
            max: M::MAX_VERSION,
            decode: decode::<M>,
            transcode: transcode::<M>,
            default: |version| encode(&M::default(), version),
        }
    }

    /// Its versions.
    pub(crate) fn versions(&self) -> impl Iterator<Item = i16> + use<> {
        self.min..=self.max
    }
}

fn decode<M: Message>(bytes: Bytes, version: i16) -> Result<(), DecodeError> {
    M::decode(&mut Decoder::new(bytes), version).map(drop)
}

fn transcode<M: Message>(bytes: Bytes, from: i16, to: i16) -> Result<Bytes, Failure> {
    let mut d = Decoder::new(bytes);
    let message = M::decode(&mut d, from).map_err(Failure::Decode)?;
    d.finish().map_err(Failure::Decode)?;
    encode(&message, to).map_err(Failure::Encode)
}

fn encode<M: Message>(message: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut e = Encoder::new();
    message.encode(&mut e, version)?;
    let len = e.len();
    let bytes = e.into_bytes();
    assert_eq!(len, bytes.len());
    Ok(bytes)
}

/// Bytes as the Java program and failure messages have them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
