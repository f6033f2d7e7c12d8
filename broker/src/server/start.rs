//! The order in which a node comes up, directed by shard 0: data directory, storage of every shard, metadata, partitions,
//! listeners.

use super::identity::{Identity, IdentityError, create_dir};
use super::node::{NodeEvent, NodeHandle};
use crate::metadata::{self, Controller, ReplayError};
use crate::net::{self, BindError, Connections};
use crate::shard::{Publication, Shard, ShardGone};
use runtime::disk::{self, DirLock};
use runtime::net::TcpListener;
use runtime::task::{self, Queue};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use storage::{Storage, StorageConfig, StorageError};

/// A node could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory is in use or cannot be locked.
    #[error("locking the data directory: {0}")]
    Lock(String),
    /// The data directory is another node's.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A shard's storage does not open.
    #[error("opening the storage of shard {shard}: {reason}")]
    Storage {
        /// The shard.
        shard: u16,
        /// Why not.
        reason: StorageError,
    },
    /// The metadata log cannot be replayed.
    #[error(transparent)]
    Metadata(#[from] ReplayError),
    /// A listener's host name has no address.
    #[error("looking up {host}: {reason}")]
    Resolve {
        /// The host.
        host: String,
        /// Why not.
        reason: io::Error,
    },
    /// A listener does not open.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A shard ended meanwhile.
    #[error(transparent)]
    Gone(#[from] ShardGone),
}

/// What a started node keeps until it has stopped.
pub(super) struct Started {
    addresses: Vec<SocketAddr>,
    /// Nobody else opens the data directory while this is held.
    _lock: DirLock,
}

impl Started {
    pub(super) fn handle(&self, shard: &Shard) -> NodeHandle {
        NodeHandle::new(shard.peers().to_vec(), self.addresses.clone())
    }
}

/// Starts the node; runs on shard 0.
pub(super) async fn start(shard: &Rc<Shard>) -> Result<Started, StartError> {
    let config = &shard.config;
    create_dir(&config.data_dir).await?;
    let lock = disk::lock_dir(&config.data_dir).map_err(|error| StartError::Lock(error.to_string()))?;
    let identity = Arc::new(Identity::load_or_create(config, shard.count).await?);
    let opened = shard.call_all(move |shard| async move {
        shard.set_identity(identity);
        open_storage(&shard).await.map_err(|reason| StartError::Storage { shard: shard.id.0, reason })
    });
    opened.await?.into_iter().collect::<Result<(), _>>()?;

    shard.set_controller(Controller::open(shard, Arc::clone(config)).await?);
    let image = shard.controller().image();
    let everything = Arc::new(image.topics().map(|topic| topic.id).collect());
    let publication = Publication { image: Arc::clone(&image), changed: everything };
    let adopted = shard.call_all(move |shard| async move {
        let adopted = shard.adopt_logs(&image).await;
        adopted.map_err(|reason| StartError::Storage { shard: shard.id.0, reason })
    });
    adopted.await?.into_iter().collect::<Result<(), _>>()?;
    metadata::publish(shard, publication).await?;
    let addresses = open_listeners(shard).await?;
    shard
        .call_all(|shard| async move {
            shard.keep(task::spawn_in(Queue::Background, Connections::sweep(Rc::clone(&shard))));
        })
        .await?;
    Ok(Started { addresses, _lock: lock })
}

async fn open_storage(shard: &Rc<Shard>) -> Result<(), StorageError> {
    let config = &shard.config;
    let dir = config.data_dir.join(format!("shard-{}", shard.id.0));
    let mut storage_config = StorageConfig::new(dir, shard.id.0);
    storage_config.journal_file_bytes = config.journal_file_bytes;
    storage_config.journal_files_max = usize::try_from(config.journal_files_max).unwrap_or(usize::MAX);
    storage_config.cache_bytes =
        usize::try_from(config.cache_per_shard_bytes(shard.count)).unwrap_or(usize::MAX);
    storage_config.reserve_bytes = config.storage_min_free_bytes;
    storage_config.retention_interval_ms = u64::try_from(config.log_retention_check_interval_ms).unwrap_or(1);
    storage_config.repair = config.storage_repair;
    storage_config.producer_id_expiration_ms = i64::from(config.producer_id_expiration_ms);
    let (storage, report) = Storage::open(storage_config).await?;
    tracing::info!(shard = shard.id.0, ?report, "storage is open");
    shard.set_storage(storage.clone());
    // Ends by itself when the storage closes or fails.
    drop(task::spawn_in(Queue::Background, storage.run_background()));
    shard.keep(task::spawn(watch_storage(Rc::clone(shard))));
    Ok(())
}

/// Tells of a failed storage, and takes the node down.
async fn watch_storage(shard: Rc<Shard>) {
    let reason = shard.storage().wait_failed().await.to_string();
    tracing::error!(shard = shard.id.0, reason, "storage has failed; the node stops");
    (shard.events)(NodeEvent::StorageFailed { shard: shard.id, reason });
    shard.ask_node_to_stop();
}

/// Opens every listener on every shard; gives the addresses, with the ports that the system chose.
async fn open_listeners(shard: &Rc<Shard>) -> Result<Vec<SocketAddr>, StartError> {
    let mut addresses = Vec::new();
    for listener in &shard.config.listeners {
        let resolved = listener.resolve();
        let wanted =
            resolved.map_err(|reason| StartError::Resolve { host: listener.host.clone(), reason })?;
        addresses.push(net::probe(wanted)?);
    }
    let all = addresses.clone();
    let opened = shard.call_all(move |shard| async move {
        shard.set_addresses(all.clone());
        for (index, address) in all.into_iter().enumerate() {
            accept(&shard, net::bind(address)?, index);
        }
        Ok::<(), BindError>(())
    });
    opened.await?.into_iter().collect::<Result<(), _>>()?;
    Ok(addresses)
}

fn accept(shard: &Rc<Shard>, listener: TcpListener, index: usize) {
    shard.keep_listener(task::spawn(net::serve(Rc::clone(shard), listener, index)));
}
