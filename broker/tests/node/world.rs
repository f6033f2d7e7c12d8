//! A node in a simulated world, and the requests that tests make of it.

use crate::client::Client;
use bytes::Bytes;
use millrace_broker::config::{Listener, NodeConfig};
use millrace_broker::server::{NodeEvent, NodeHandle, node};
use protocol::messages::create_topics_request::CreatableTopic;
use protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use protocol::messages::fetch_response::PartitionData;
use protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use protocol::messages::produce_response::PartitionProduceResponse;
use protocol::messages::{
    CreateTopicsRequest, FetchRequest, InitProducerIdRequest, MetadataRequest, ProduceRequest,
    metadata_request, metadata_response,
};
use protocol::record::{Builder, Codec, Producer, RecordIter, split_batches};
use protocol::{Records, Uuid};
use runtime::sim::{NodeId, Sim, SimConfig};
use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

pub(crate) const NODE: NodeId = NodeId(1);
pub(crate) const SHARDS: u16 = 3;
const PORT: u16 = 9092;
/// Virtual time that a scenario may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A simulated world with one node.
pub(crate) struct World {
    pub sim: Sim,
    events: mpsc::Receiver<NodeEvent>,
    seen: RefCell<Vec<NodeEvent>>,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        World::with_config(seed, |_| ())
    }

    pub(crate) fn with_config(seed: u64, change: impl FnOnce(&mut NodeConfig)) -> World {
        World::with_world(seed, SimConfig::default(), change)
    }

    pub(crate) fn with_world(seed: u64, world: SimConfig, change: impl FnOnce(&mut NodeConfig)) -> World {
        let sim = Sim::new(seed, world);
        let mut config = NodeConfig {
            data_dir: "/data".into(),
            listeners: vec![Listener::plaintext("", PORT)],
            storage_min_free_bytes: 1 << 20,
            journal_file_bytes: 4 << 20,
            memory_bytes: 96 << 20,
            ..NodeConfig::default()
        };
        change(&mut config);
        let (sender, events) = mpsc::channel();
        // A sender is not shared between threads; a simulation has one thread, the type does not know.
        let sender = std::sync::Mutex::new(sender);
        let events_of_node = move |event| {
            let _ = sender.lock().expect("not poisoned").send(event);
        };
        sim.start_node(NODE, SHARDS, node(config.into(), std::sync::Arc::new(events_of_node)));
        World { sim, events, seen: RefCell::default() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.sim.net().addr(NODE, PORT)
    }

    /// Runs a client to its end.
    pub(crate) fn run<T: 'static>(&self, client: impl Future<Output = T> + 'static) -> T {
        self.sim.block_on(PATIENCE, client).expect("the scenario ends in time")
    }

    /// What the node has told so far.
    pub(crate) fn events(&self) -> Vec<NodeEvent> {
        self.seen.borrow_mut().extend(self.events.try_iter());
        self.seen.borrow().clone()
    }

    /// The handle of the process that runs now.
    pub(crate) fn handle(&self) -> NodeHandle {
        let ready = |events: Vec<NodeEvent>| {
            events.into_iter().rev().find_map(|event| match event {
                NodeEvent::Ready(handle) => Some(handle),
                _ => None,
            })
        };
        self.sim.run_until(PATIENCE, || ready(self.events()).is_some());
        ready(self.events()).expect("the node is ready")
    }

    /// Stops the node cleanly, and starts it again.
    pub(crate) fn bounce(&self) {
        self.handle().stop();
        assert!(self.sim.run_until(PATIENCE, || !self.sim.is_running(NODE)), "the node stops");
        assert!(matches!(self.events().last(), Some(NodeEvent::Stopped)), "cleanly");
        self.sim.restart(NODE);
    }

    /// Cuts the power, and starts the node again.
    pub(crate) fn crash(&self) {
        self.sim.crash(NODE);
        self.sim.restart(NODE);
    }
}

/// A batch of `count` records whose values are `first`, `first + 1`, …
pub(crate) fn batch(first: u32, count: u32, producer: Option<(i64, i32)>) -> Bytes {
    let mut builder = Builder::new(Codec::None);
    if let Some((id, base_sequence)) = producer {
        builder = builder.producer(Producer { id, epoch: 0, base_sequence });
    }
    for value in first..first + count {
        builder.push(1_750_000_000_000, None, Some(&value.to_be_bytes()), &[]);
    }
    builder.build()
}

pub(crate) async fn create_topic(client: &mut Client, name: &str, partitions: i32) -> Uuid {
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: -1,
        ..CreatableTopic::default()
    };
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 1000, ..CreateTopicsRequest::default() };
    let response = client.call(7, &request).await.expect("answered");
    let created = response.topics.first().expect("one topic");
    assert_eq!(created.error_code, 0, "{created:?}");
    created.topic_id
}

pub(crate) async fn metadata(client: &mut Client, name: &str) -> metadata_response::MetadataResponseTopic {
    let topic = metadata_request::MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
    let request = MetadataRequest {
        topics: Some(vec![topic]),
        allow_auto_topic_creation: true,
        ..MetadataRequest::default()
    };
    client.call(12, &request).await.expect("answered").topics.remove(0)
}

/// Asks for a producer id, as a producer without transactions does.
pub(crate) fn init_producer_id() -> InitProducerIdRequest {
    InitProducerIdRequest {
        transactional_id: None,
        producer_id: -1,
        producer_epoch: -1,
        ..InitProducerIdRequest::default()
    }
}

pub(crate) fn produce_request(topic: &str, acks: i16, batches: Vec<(i32, Bytes)>) -> ProduceRequest {
    let partition_data = batches
        .into_iter()
        .map(|(index, batch)| PartitionProduceData { index, records: Some(Records::from(batch)) });
    let topic = TopicProduceData {
        name: topic.into(),
        partition_data: partition_data.collect(),
        ..TopicProduceData::default()
    };
    ProduceRequest { acks, timeout_ms: 1000, topic_data: vec![topic], transactional_id: None }
}

pub(crate) async fn produce(
    client: &mut Client,
    topic: &str,
    partition: i32,
    batch: Bytes,
) -> PartitionProduceResponse {
    let request = produce_request(topic, -1, vec![(partition, batch)]);
    let mut response = client.call(9, &request).await.expect("answered");
    response.responses.remove(0).partition_responses.remove(0)
}

pub(crate) fn fetch_request(topic: &str, partitions: &[(i32, i64)]) -> FetchRequest {
    let partitions = partitions.iter().map(|(partition, fetch_offset)| FetchPartition {
        partition: *partition,
        fetch_offset: *fetch_offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    });
    FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: 1 << 24,
        session_epoch: -1,
        topics: vec![FetchTopic {
            topic: topic.into(),
            partitions: partitions.collect(),
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

pub(crate) async fn fetch(client: &mut Client, topic: &str, partition: i32, offset: i64) -> PartitionData {
    let mut response =
        client.call(12, &fetch_request(topic, &[(partition, offset)])).await.expect("answered");
    response.responses.remove(0).partitions.remove(0)
}

/// Offsets and values of what was fetched.
pub(crate) fn values(data: &PartitionData) -> Vec<(i64, u32)> {
    let bytes = data.records.clone().expect("records").into_bytes();
    let mut values = Vec::new();
    for batch in split_batches(bytes) {
        let (_, batch) = batch.expect("a whole batch");
        protocol::record::verify_crc(&batch).expect("a valid CRC");
        for record in RecordIter::of_batch(&batch, 1 << 20).expect("records") {
            let record = record.expect("a record");
            let value = record.value.expect("a value");
            let value = u32::from_be_bytes(value.as_ref().try_into().expect("four bytes"));
            values.push((record.offset, value));
        }
    }
    values
}

/// Everything of a partition from its start.
pub(crate) async fn read_all(client: &mut Client, topic: &str, partition: i32) -> Vec<(i64, u32)> {
    let mut all: Vec<(i64, u32)> = Vec::new();
    loop {
        let offset = all.last().map_or(0, |(offset, _)| offset + 1);
        let data = fetch(client, topic, partition, offset).await;
        assert_eq!(data.error_code, 0, "{data:?}");
        let new = values(&data);
        if new.is_empty() {
            return all;
        }
        all.extend(new.into_iter().filter(|(at, _)| *at >= offset));
    }
}
