//! `Shard`: what one core owns.
//!
//! Owns: storage, partitions, the shard's copy of the metadata image, memory budgets, connections, counters.
//! Invariants:
//! I1 `image` is only replaced as a whole, and never by an older one.
//! I2 `partitions` holds partitions that the image places on this shard, and no others, except between the two halves of a
//!    publication (`publish`).
//! Concurrency: one thread; no borrow of a cell lasts across an await.

use super::Message;
use crate::api::fetch::{Sessions, Waiters};
use crate::config::NodeConfig;
use crate::coordinator::Coordinators;
use crate::metadata::{Controller, Image, ProducerIds};
use crate::metrics::{ShardMetrics, ShardStats};
use crate::net::{ConnectionLimits, Connections};
use crate::partition::Partition;
use crate::server::{Identity, NodeEvents};
use protocol::ErrorCode;
use runtime::mailbox;
use runtime::shard::ShardId;
use runtime::sync::{Event, Permits};
use runtime::task::JoinHandle;
use runtime::time::{self, Instant};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use storage::{PartitionId, Storage};

/// The part of a shard's memory outside the cache that requests in arrival and in flight may take, in percent; responses
/// that had to be read from disk may take the rest.
const REQUEST_MEMORY_PERCENT: u64 = 50;

/// One core and all that it owns.
pub struct Shard {
    /// Its number.
    pub id: ShardId,
    /// How many shards the node has.
    pub count: u16,
    /// The node's configuration.
    pub config: Arc<NodeConfig>,
    /// Memory for requests, from the arrival of their bytes until their response is written.
    pub request_memory: Permits,
    /// Memory for what fetches read.
    pub fetch_memory: Permits,
    /// Since when fetches have found none.
    fetch_starved_since: Cell<Option<Instant>>,
    /// What this shard counts.
    pub metrics: ShardMetrics,
    /// Its connections.
    pub connections: Connections,
    /// Coordinators of consumer groups, one for each of its partitions of `__consumer_offsets`.
    pub coordinators: Coordinators,
    /// Fetch sessions of its connections.
    pub(crate) fetch_sessions: RefCell<Sessions>,
    /// Fetches of other shards that wait for partitions of this one.
    pub(crate) fetch_waiters: Waiters,
    /// Counts the fetches of this shard that may wait on another.
    pub(crate) next_fetch: Cell<u64>,
    pub(crate) events: NodeEvents,
    peers: Vec<mailbox::Sender<Message>>,
    identity: OnceCell<Arc<Identity>>,
    storage: OnceCell<Storage>,
    controller: OnceCell<Controller>,
    image: RefCell<Arc<Image>>,
    partitions: RefCell<BTreeMap<PartitionId, Rc<Partition>>>,
    producer_ids: ProducerIds,
    addresses: RefCell<Vec<SocketAddr>>,
    listeners: RefCell<Vec<JoinHandle<()>>>,
    tasks: RefCell<Vec<JoinHandle<()>>>,
    ended: Cell<bool>,
    /// On shard 0: the node is asked to stop.
    stop_requested: Cell<bool>,
    stop: Event,
}

impl Shard {
    pub(crate) fn new(
        id: ShardId,
        peers: Vec<mailbox::Sender<Message>>,
        config: Arc<NodeConfig>,
        events: NodeEvents,
    ) -> Rc<Shard> {
        let count = u16::try_from(peers.len()).unwrap_or(u16::MAX);
        let memory = config.memory_per_shard_bytes(count) - config.cache_per_shard_bytes(count);
        let mut request_memory = memory / 100 * REQUEST_MEMORY_PERCENT;
        if let Ok(limit) = u64::try_from(config.queued_max_request_bytes) {
            request_memory = request_memory.min(limit / u64::from(count.max(1))).max(1);
        }
        let fetch_memory = memory - memory / 100 * REQUEST_MEMORY_PERCENT;
        Rc::new(Shard {
            id,
            count,
            request_memory: Permits::new(request_memory),
            fetch_memory: Permits::new(fetch_memory),
            fetch_starved_since: Cell::new(None),
            metrics: ShardMetrics::default(),
            connections: Connections::new(connection_limits(&config, count)),
            coordinators: Coordinators::default(),
            fetch_sessions: RefCell::new(Sessions::new(session_slots(&config, count))),
            fetch_waiters: Waiters::default(),
            next_fetch: Cell::new(0),
            events,
            peers,
            identity: OnceCell::new(),
            storage: OnceCell::new(),
            controller: OnceCell::new(),
            image: RefCell::new(Arc::new(Image::empty(Arc::clone(&config), count))),
            config,
            partitions: RefCell::default(),
            producer_ids: ProducerIds::default(),
            addresses: RefCell::default(),
            listeners: RefCell::default(),
            tasks: RefCell::default(),
            ended: Cell::new(false),
            stop_requested: Cell::new(false),
            stop: Event::new(),
        })
    }

    /// Tells whether the last fetch found no memory.
    pub(crate) fn starved_of_fetch_memory(&self, starved: bool) {
        let since = self.fetch_starved_since.get().filter(|_| starved);
        self.fetch_starved_since.set(since.or_else(|| starved.then(time::now)));
    }

    /// For how long fetches have found no memory.
    pub(crate) fn fetch_starved_for(&self) -> Option<Duration> {
        self.fetch_starved_since.get().map(|since| since.elapsed())
    }

    /// The metadata that this shard knows.
    #[must_use]
    pub fn image(&self) -> Arc<Image> {
        Arc::clone(&self.image.borrow())
    }

    pub(super) fn replace_image(&self, image: Arc<Image>) {
        let mut current = self.image.borrow_mut();
        assert!(image.offset >= current.offset, "I1: an image is never replaced by an older one");
        *current = image;
    }

    /// A partition that this shard owns.
    #[must_use]
    pub fn partition(&self, id: &PartitionId) -> Option<Rc<Partition>> {
        self.partitions.borrow().get(id).cloned()
    }

    /// A partition that should be this shard's, or what a client is told if it is not here.
    pub(crate) fn partition_or_error(&self, id: &PartitionId) -> Result<Rc<Partition>, ErrorCode> {
        let missing = || match self.image().topic_by_id(&id.topic_id) {
            // Its log could not be created yet.
            Some(_) => ErrorCode::KafkaStorageError,
            None => ErrorCode::UnknownTopicOrPartition,
        };
        self.partition(id).ok_or_else(missing)
    }

    /// Every partition that this shard owns, by id.
    #[must_use]
    pub fn partitions(&self) -> Vec<Rc<Partition>> {
        self.partitions.borrow().values().cloned().collect()
    }

    pub(super) fn insert_partition(&self, partition: Rc<Partition>) {
        self.partitions.borrow_mut().insert(partition.id, partition);
    }

    pub(super) fn take_partition(&self, id: &PartitionId) -> Option<Rc<Partition>> {
        self.partitions.borrow_mut().remove(id)
    }

    /// Who this node is: known before anything else starts.
    #[must_use]
    pub fn identity(&self) -> &Arc<Identity> {
        self.identity.get().expect("the identity is set before anything else starts")
    }

    pub(crate) fn set_identity(&self, identity: Arc<Identity>) {
        let first = self.identity.set(identity).is_ok();
        assert!(first, "the identity is set once");
    }

    /// This shard's storage: open before anything that uses it starts.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        self.storage.get().expect("storage is open before anything that uses it starts")
    }

    pub(crate) fn opened_storage(&self) -> Option<&Storage> {
        self.storage.get()
    }

    pub(crate) fn set_storage(&self, storage: Storage) {
        let first = self.storage.set(storage).is_ok();
        assert!(first, "storage is opened once");
    }

    /// The controller; on shard 0 alone.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        self.controller.get().expect("the controller is on shard 0, and there before listeners open")
    }

    pub(crate) fn set_controller(&self, controller: Controller) {
        let first = self.controller.set(controller).is_ok();
        assert!(first, "the controller is made once");
    }

    /// Brokers that partitions may be placed on, in ascending order. This one alone, until replication comes.
    #[must_use]
    pub fn brokers(&self) -> Vec<i32> {
        vec![self.config.node_id]
    }

    /// This shard's block of producer ids.
    #[must_use]
    pub fn producer_ids(&self) -> &ProducerIds {
        &self.producer_ids
    }

    /// Where the node listens, in the order of `listeners`, with the ports that the system chose.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.borrow().clone()
    }

    pub(crate) fn set_addresses(&self, addresses: Vec<SocketAddr>) {
        *self.addresses.borrow_mut() = addresses;
    }

    pub(crate) fn peers(&self) -> &[mailbox::Sender<Message>] {
        &self.peers
    }

    /// Keeps the task of a listener until the node stops.
    pub(crate) fn keep_listener(&self, task: JoinHandle<()>) {
        self.listeners.borrow_mut().push(task);
    }

    /// Accepts no further connections.
    pub(crate) fn cancel_listeners(&self) {
        for task in self.listeners.take() {
            task.cancel();
        }
    }

    /// Keeps a background task until the shard ends.
    pub fn keep(&self, task: JoinHandle<()>) {
        self.tasks.borrow_mut().push(task);
    }

    /// Cancels the background tasks.
    pub(crate) fn cancel_tasks(&self) {
        for task in self.tasks.take() {
            task.cancel();
        }
    }

    /// Makes `serve_inbox` return.
    pub(crate) fn end(&self) {
        self.ended.set(true);
        if let Some(own) = self.peers.get(usize::from(self.id.0)) {
            let _ = own.send(Message::new(|_| ()));
        }
    }

    /// On shard 0: asks the node to stop.
    pub(crate) fn request_stop(&self) {
        self.stop_requested.set(true);
        self.stop.notify_all();
    }

    /// On shard 0: waits until the node is asked to stop.
    pub(crate) async fn stop_asked(&self) {
        loop {
            let asked = self.stop.listen();
            if self.stop_requested.get() {
                return;
            }
            asked.await;
        }
    }

    /// On any shard: asks shard 0 to stop the node.
    pub(crate) fn ask_node_to_stop(&self) {
        if let Some(first) = self.peers.first() {
            let _ = first.send(Message::new(|shard| shard.request_stop()));
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// What this shard counted and holds.
    #[must_use]
    pub fn stats(&self) -> ShardStats {
        let gauge = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let permits = |p: &Permits| i64::try_from(p.available()).unwrap_or(i64::MAX);
        let mut gauges = vec![
            ("connections", gauge(self.connections.len())),
            ("partitions", gauge(self.partitions.borrow().len())),
            ("request_memory_available_bytes", permits(&self.request_memory)),
            ("fetch_memory_available_bytes", permits(&self.fetch_memory)),
            ("fetch_sessions", gauge(self.fetch_sessions.borrow().len())),
            ("fetch_waiters", gauge(self.fetch_waiters.len())),
            ("storage_writable", i64::from(self.storage.get().is_some_and(Storage::writable))),
        ];
        if let Some(usage) = self.storage.get().map(Storage::usage) {
            let bytes = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            gauges.extend([
                ("cache_bytes", bytes(usage.cache_bytes)),
                ("dirty_bytes", bytes(usage.dirty_bytes)),
                ("journal_files_used", bytes(usage.journal_files_used)),
            ]);
        }
        self.metrics.stats(self.id.0, gauges)
    }
}

fn session_slots(config: &NodeConfig, count: u16) -> usize {
    usize::try_from(config.max_incremental_fetch_session_cache_slots)
        .unwrap_or(0)
        .div_ceil(usize::from(count.max(1)))
}

/// A shard's part of the node's limits, rounded up: the kernel spreads clients over shards only roughly.
fn connection_limits(config: &NodeConfig, count: u16) -> ConnectionLimits {
    let part = |limit: i32| usize::try_from(limit).unwrap_or(0).div_ceil(usize::from(count.max(1)));
    ConnectionLimits {
        total_max: part(config.max_connections),
        per_ip_max: part(config.max_connections_per_ip),
        idle_max: u64::try_from(config.connections_max_idle_ms).ok().map(Duration::from_millis),
    }
}
