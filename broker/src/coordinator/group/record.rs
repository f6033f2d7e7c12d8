//! [`Record`]: one entry of `__consumer_offsets`, in the bytes that Apache Kafka 4.4 writes and reads.
//!
//! A key is its type (int16: 1 offset, 2 group metadata) and the key message; a value is its version (int16) and the
//! value message; a null value is a tombstone. Versions written: group metadata 3; offsets 4, or 1 when the client
//! gave a retention of its own. All versions of Kafka's schemas are read.

use bytes::Bytes;
use protocol::Str;
use protocol::messages::group_metadata_key::GroupMetadataKey;
use protocol::messages::group_metadata_value::GroupMetadataValue;
use protocol::messages::legacy_offset_commit_key::LegacyOffsetCommitKey;
use protocol::messages::offset_commit_key::OffsetCommitKey;
use protocol::messages::offset_commit_value::OffsetCommitValue;
use protocol::messages::{Message, Record as _};
use protocol::wire::{DecodeError, Decoder, EncodeError, Encoder};

const KEY_OFFSET_LEGACY: i16 = LegacyOffsetCommitKey::TYPE;
const KEY_OFFSET: i16 = OffsetCommitKey::TYPE;
const KEY_GROUP_METADATA: i16 = GroupMetadataKey::TYPE;
const KEY_VERSION: i16 = 0;
const GROUP_METADATA_VERSION: i16 = 3;
const OFFSET_VERSION: i16 = 4;
const OFFSET_VERSION_WITH_EXPIRY: i16 = 1;

/// One change of a coordinator's stored state.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A consumer group's generation with its members and their assignments; `None` removes the group.
    GroupMetadata {
        /// The consumer group.
        group_id: Str,
        /// What is known of it.
        value: Option<GroupMetadataValue>,
    },
    /// The committed offset of one partition; `None` removes it.
    Offset {
        /// The consumer group.
        group_id: Str,
        /// Topic name.
        topic: Str,
        /// Partition of the topic.
        partition: i32,
        /// What the consumer group committed.
        value: Option<OffsetCommitValue>,
    },
}

/// Stored bytes that are not a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A record of this topic always has a key.
    #[error("record without a key")]
    NoKey,
    /// The value has a version that this release does not know.
    #[error("version {version} of a value whose key has type {key_type}")]
    ValueVersion {
        /// Type of the key.
        key_type: i16,
        /// Version of the value.
        version: i16,
    },
    /// Key or value do not follow their schema.
    #[error("malformed record: {0}")]
    Malformed(#[from] DecodeError),
}

impl Record {
    /// Key and value as stored.
    pub fn encode(&self) -> Result<(Bytes, Option<Bytes>), EncodeError> {
        match self {
            Self::GroupMetadata { group_id, value } => {
                let key = GroupMetadataKey { group: group_id.clone() };
                let value = value
                    .as_ref()
                    .map(|value| versioned(GROUP_METADATA_VERSION, value, GROUP_METADATA_VERSION));
                Ok((versioned(KEY_GROUP_METADATA, &key, KEY_VERSION)?, value.transpose()?))
            }
            Self::Offset { group_id, topic, partition, value } => {
                let key =
                    OffsetCommitKey { group: group_id.clone(), topic: topic.clone(), partition: *partition };
                let value = value.as_ref().map(|value| {
                    let kept_for_ever = value.expire_timestamp == -1;
                    let version = if kept_for_ever { OFFSET_VERSION } else { OFFSET_VERSION_WITH_EXPIRY };
                    versioned(version, value, version)
                });
                Ok((versioned(KEY_OFFSET, &key, KEY_VERSION)?, value.transpose()?))
            }
        }
    }

    /// The record with this key and value. `None` for a type of key that classic groups do not have: another
    /// release, or another kind of group, wrote it.
    pub fn decode(key: Option<Bytes>, value: Option<Bytes>) -> Result<Option<Self>, RecordError> {
        let mut key = Decoder::new(key.ok_or(RecordError::NoKey)?);
        let key_type = key.i16()?;
        match key_type {
            // The legacy type, written before Kafka 0.9, has the same fields.
            KEY_OFFSET | KEY_OFFSET_LEGACY => {
                let key = OffsetCommitKey::decode(&mut key, KEY_VERSION)?;
                let value = value.map(|value| read_value(key_type, value)).transpose()?;
                Ok(Some(Self::Offset {
                    group_id: key.group,
                    topic: key.topic,
                    partition: key.partition,
                    value,
                }))
            }
            KEY_GROUP_METADATA => {
                let key = GroupMetadataKey::decode(&mut key, KEY_VERSION)?;
                let value = value.map(|value| read_value(key_type, value)).transpose()?;
                Ok(Some(Self::GroupMetadata { group_id: key.group, value }))
            }
            _ => Ok(None),
        }
    }
}

/// `message` behind an int16.
fn versioned<M: Message>(prefix: i16, message: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut encoder = Encoder::new();
    encoder.i16(prefix);
    message.encode(&mut encoder, version)?;
    Ok(encoder.into_bytes())
}

fn read_value<M: Message>(key_type: i16, value: Bytes) -> Result<M, RecordError> {
    let mut value = Decoder::new(value);
    let version = value.i16()?;
    if !(M::MIN_VERSION..=M::MAX_VERSION).contains(&version) {
        return Err(RecordError::ValueVersion { key_type, version });
    }
    Ok(M::decode(&mut value, version)?)
}
