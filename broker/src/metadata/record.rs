//! Metadata records: Kafka's own schemas in the frame that Kafka's metadata log puts around them, so that its dump tool
//! reads ours.
//!
//! A record's value is: frame version (unsigned varint, 1), record type, version (both unsigned varints), body.

use bytes::Bytes;
use protocol::messages::{
    ConfigRecord, Message, PartitionRecord, ProducerIdsRecord, Record, RemoveTopicRecord, TopicRecord,
};
use protocol::wire::{DecodeError, Decoder, EncodeError, Encoder};

const FRAME_VERSION: u32 = 1;
/// Every record is written in the version that Kafka 4.0 and later read without further features.
const RECORD_VERSION: i16 = 0;

/// A record that this node knows.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataRecord {
    /// A topic begins.
    Topic(TopicRecord),
    /// A partition begins or changes.
    Partition(PartitionRecord),
    /// One configuration of one resource is set, or removed with a null value.
    Config(ConfigRecord),
    /// A topic ends, with all its partitions and configurations.
    RemoveTopic(RemoveTopicRecord),
    /// A block of producer ids is handed out.
    ProducerIds(ProducerIdsRecord),
}

/// A record that cannot be applied. A log with one must not be applied in part.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The bytes are not what they should be.
    #[error("a metadata record is malformed: {0}")]
    Malformed(#[from] DecodeError),
    /// Another frame than this release knows.
    #[error("a metadata record has frame version {0}: start the newer Millrace")]
    Frame(u32),
    /// A record that this release does not know.
    #[error("a metadata record has type {kind} in version {version}: start the newer Millrace")]
    Unknown {
        /// Its type.
        kind: u32,
        /// Its version.
        version: u32,
    },
    /// A record without a value.
    #[error("a metadata record is empty")]
    Empty,
}

impl MetadataRecord {
    /// The value of the record in the metadata log.
    pub fn encode(&self) -> Result<Bytes, EncodeError> {
        match self {
            MetadataRecord::Topic(record) => encode(record),
            MetadataRecord::Partition(record) => encode(record),
            MetadataRecord::Config(record) => encode(record),
            MetadataRecord::RemoveTopic(record) => encode(record),
            MetadataRecord::ProducerIds(record) => encode(record),
        }
    }

    /// Reads the value of a record of the metadata log.
    pub fn decode(value: Bytes) -> Result<MetadataRecord, RecordError> {
        let mut d = Decoder::new(value);
        let frame = d.uvarint()?;
        if frame != FRAME_VERSION {
            return Err(RecordError::Frame(frame));
        }
        let (kind, version) = (d.uvarint()?, d.uvarint()?);
        let unknown = RecordError::Unknown { kind, version };
        let (Ok(kind), Ok(version)) = (i16::try_from(kind), i16::try_from(version)) else {
            return Err(unknown);
        };
        if version > RECORD_VERSION {
            return Err(unknown);
        }
        let record = match kind {
            TopicRecord::TYPE => MetadataRecord::Topic(TopicRecord::decode(&mut d, version)?),
            PartitionRecord::TYPE => MetadataRecord::Partition(PartitionRecord::decode(&mut d, version)?),
            ConfigRecord::TYPE => MetadataRecord::Config(ConfigRecord::decode(&mut d, version)?),
            RemoveTopicRecord::TYPE => {
                MetadataRecord::RemoveTopic(RemoveTopicRecord::decode(&mut d, version)?)
            }
            ProducerIdsRecord::TYPE => {
                MetadataRecord::ProducerIds(ProducerIdsRecord::decode(&mut d, version)?)
            }
            _ => return Err(unknown),
        };
        d.finish()?;
        Ok(record)
    }
}

fn encode<R: Record>(record: &R) -> Result<Bytes, EncodeError> {
    let mut e = Encoder::with_capacity(64);
    e.uvarint(FRAME_VERSION);
    e.uvarint(u32::from(R::TYPE.unsigned_abs()));
    e.uvarint(u32::from(RECORD_VERSION.unsigned_abs()));
    record.encode(&mut e, RECORD_VERSION)?;
    Ok(e.into_bytes())
}
