//! Names of a log's directory, and Kafka's `partition.metadata` in it. Pure.

use protocol::Uuid;

use crate::config::PartitionId;
use crate::error::StorageError;

/// File that tells whose directory it is.
pub(crate) const METADATA: &str = "partition.metadata";
/// Ends the name of a deleted log's directory.
pub(crate) const DELETED_SUFFIX: &str = "-delete";
/// Longest topic name, as in Kafka.
const NAME_BYTES_MAX: usize = 249;

/// Directory name of a partition; refuses what is no plain name.
pub(crate) fn directory(topic: &str, partition: i32) -> Result<String, StorageError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let legal = !topic.is_empty() && topic.len() <= NAME_BYTES_MAX && topic.bytes().all(plain);
    if !legal || matches!(topic, "." | "..") || partition < 0 {
        return Err(StorageError::InvalidName(topic.to_owned()));
    }
    Ok(format!("{topic}-{partition}"))
}

/// What a deleted log's directory is renamed to.
pub(crate) fn deleted(directory: &str, id: PartitionId) -> String {
    format!("{directory}.{}{DELETED_SUFFIX}", id.topic_id)
}

/// What a directory that belongs to nobody is renamed to when its name is needed.
pub(crate) fn stray(directory: &str, wall_ms: i64) -> String {
    format!("{directory}.{wall_ms}-stray")
}

/// Contents of `partition.metadata`.
pub(crate) fn metadata(topic_id: Uuid) -> String {
    format!("version: 0\ntopic_id: {topic_id}")
}

/// Whether `partition.metadata` names this topic.
pub(crate) fn is_metadata_of(bytes: &[u8], topic_id: Uuid) -> bool {
    let wanted = topic_id.to_string();
    bytes.split(|byte| *byte == b'\n').any(|line| {
        line.trim_ascii().strip_prefix(b"topic_id:").is_some_and(|id| id.trim_ascii() == wanted.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_directory() {
        assert_eq!(directory("a.b_c-1", 3).expect("legal"), "a.b_c-1-3");
        for name in ["", ".", "..", "a/b", "a\0", "é", &"x".repeat(250)] {
            assert!(directory(name, 0).is_err(), "{name:?}");
        }
        assert!(directory("a", -1).is_err());
    }

    #[test]
    fn metadata_names_its_topic() {
        let id = Uuid::from_bytes([9; 16]);
        assert!(is_metadata_of(metadata(id).as_bytes(), id));
        assert!(!is_metadata_of(metadata(id).as_bytes(), Uuid::from_bytes([8; 16])));
        assert!(!is_metadata_of(b"", id));
    }
}
