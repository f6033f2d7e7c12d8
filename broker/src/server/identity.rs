//! `meta.properties`: who the node is and which layout its data has, in Kafka's file format with names of our own added.
//!
//! Invariant: once written, the file never changes; a configuration that contradicts it does not start.

use crate::config::NodeConfig;
use protocol::Uuid;
use runtime::disk;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "meta.properties";
/// Version of Kafka's file format.
const FILE_VERSION: &str = "1";
/// Version of the directory layout: one directory per shard.
const LAYOUT_VERSION: &str = "1";

/// Who the node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's id.
    pub cluster_id: String,
    /// The node's number.
    pub node_id: i32,
    /// How many shards its data is split over.
    pub shard_count: u16,
}

/// The data directory is another node's, or cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Reading or writing failed.
    #[error("{action} {}: {reason}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why it failed.
        reason: io::Error,
    },
    /// The configuration says otherwise.
    #[error("{} says {key}={found}, but the configuration says {wanted}; {cure}", path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// What differs.
        key: &'static str,
        /// Value in the file.
        found: String,
        /// Value of the configuration.
        wanted: String,
        /// What to do.
        cure: &'static str,
    },
    /// There is data, but not the file that says whose.
    #[error(
        "{} is missing beside the data of an earlier start; put it back, or write it anew: the lines version=1, \
         cluster.id, node.id, millrace.layout.version=1 and millrace.shards (as many as there are directories shard-*)",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is not ours, or newer.
    #[error("{} has no usable {key}: it was written by another program or by a newer release", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is missing or unknown.
        key: &'static str,
    },
}

impl Identity {
    /// Reads the file, or writes it on the first start.
    pub async fn load_or_create(config: &NodeConfig, shard_count: u16) -> Result<Identity, IdentityError> {
        let path = config.data_dir.join(FILE_NAME);
        let io = |action| {
            let path = path.clone();
            move |reason| IdentityError::Io { action, path, reason }
        };
        if disk::exists(&path).await {
            let text = disk::read_file(&path).await.map_err(io("reading"))?;
            return Identity::parse(&String::from_utf8_lossy(&text), &path)?.check(config, shard_count, path);
        }
        // Its data cannot be another node's by mistake, nor be split over another number of shards.
        if disk::exists(&config.data_dir.join("shard-0")).await {
            return Err(IdentityError::Missing { path });
        }
        let cluster_id = config.cluster_id.clone().unwrap_or_else(|| new_uuid().to_string());
        let identity = Identity { cluster_id, node_id: config.node_id, shard_count };
        disk::write_file_atomic(&path, identity.render().as_bytes()).await.map_err(io("writing"))?;
        Ok(identity)
    }

    fn render(&self) -> String {
        let mut text = String::new();
        let lines = [
            ("version", FILE_VERSION.to_owned()),
            ("cluster.id", self.cluster_id.clone()),
            ("node.id", self.node_id.to_string()),
            ("millrace.layout.version", LAYOUT_VERSION.to_owned()),
            ("millrace.shards", self.shard_count.to_string()),
        ];
        for (key, value) in lines {
            let _ = writeln!(text, "{key}={value}");
        }
        text
    }

    fn parse(text: &str, path: &Path) -> Result<Identity, IdentityError> {
        let pairs =
            text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
        let values: BTreeMap<&str, &str> = pairs.map(|(key, value)| (key.trim(), value.trim())).collect();
        let unusable = |key| IdentityError::Unusable { path: path.to_owned(), key };
        let get = |key: &'static str| values.get(key).copied().ok_or(unusable(key));
        for (key, known) in [("version", FILE_VERSION), ("millrace.layout.version", LAYOUT_VERSION)] {
            if get(key)? != known {
                return Err(unusable(key));
            }
        }
        Ok(Identity {
            cluster_id: get("cluster.id")?.to_owned(),
            node_id: get("node.id")?.parse().map_err(|_| unusable("node.id"))?,
            shard_count: get("millrace.shards")?.parse().map_err(|_| unusable("millrace.shards"))?,
        })
    }

    fn check(self, config: &NodeConfig, shard_count: u16, path: PathBuf) -> Result<Identity, IdentityError> {
        let mismatch = |key, found: String, wanted: String, cure| {
            Err(IdentityError::Mismatch { path: path.clone(), key, found, wanted, cure })
        };
        if self.node_id != config.node_id {
            let cure = "the directory belongs to another node";
            return mismatch("node.id", self.node_id.to_string(), config.node_id.to_string(), cure);
        }
        if let Some(wanted) = config.cluster_id.clone().filter(|id| *id != self.cluster_id) {
            return mismatch(
                "cluster.id",
                self.cluster_id,
                wanted,
                "the directory belongs to another cluster",
            );
        }
        if self.shard_count != shard_count {
            let cure = "set `shards` to the number that the data was written with";
            return mismatch("millrace.shards", self.shard_count.to_string(), shard_count.to_string(), cure);
        }
        Ok(self)
    }
}

/// Creates a directory so that it survives a power cut: every directory that it was missing in is synced, too.
pub(super) async fn create_dir(path: &Path) -> Result<(), IdentityError> {
    let mut parents = Vec::new();
    for ancestor in path.ancestors().filter(|ancestor| !ancestor.as_os_str().is_empty()) {
        if disk::exists(ancestor).await {
            break;
        }
        // A relative path of one part lies in the working directory.
        let parent = ancestor.parent().filter(|parent| !parent.as_os_str().is_empty());
        parents.push(parent.unwrap_or(Path::new(".")).to_owned());
    }
    let io = |reason| IdentityError::Io { action: "creating", path: path.to_owned(), reason };
    disk::create_dir_all(path).await.map_err(io)?;
    for parent in parents {
        disk::sync_dir(&parent).await.map_err(io)?;
    }
    Ok(())
}

/// A random id, as Kafka draws them: never one that is reserved.
pub(crate) fn new_uuid() -> Uuid {
    loop {
        let mut bytes = [0; 16];
        runtime::random::fill(&mut bytes);
        if let Some(id) = Uuid::from_random(bytes) {
            return id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { cluster_id: "c".to_owned(), node_id: 1, shard_count: 4 }
    }

    #[test]
    fn what_is_written_is_read() {
        let read = Identity::parse(&identity().render(), Path::new("m")).expect("parses");
        assert_eq!(read, identity());
    }

    #[test]
    fn mistakes_are_told() {
        let config = NodeConfig { node_id: 1, ..NodeConfig::default() };
        let check = |config: &NodeConfig, shards| identity().check(config, shards, PathBuf::from("m"));
        assert!(check(&config, 4).is_ok());
        let other = check(&config, 2).expect_err("refused").to_string();
        assert!(other.contains("millrace.shards=4") && other.contains("says 2"), "{other}");
        assert!(check(&NodeConfig { node_id: 2, ..config.clone() }, 4).is_err());
        assert!(check(&NodeConfig { cluster_id: Some("d".to_owned()), ..config }, 4).is_err());
        assert!(Identity::parse("version=2\n", Path::new("m")).is_err());
        assert!(Identity::parse("", Path::new("m")).is_err());
    }
}
