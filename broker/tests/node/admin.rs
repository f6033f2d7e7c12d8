//! What administration clients ask.

use crate::client::Client;
use crate::world::*;
use protocol::messages::create_partitions_request::CreatePartitionsTopic;
use protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use protocol::messages::delete_topics_request::DeleteTopicState;
use protocol::messages::describe_configs_request::DescribeConfigsResource;
use protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use protocol::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use protocol::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteRecordsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, DescribeTopicPartitionsRequest, MetadataRequest,
    OffsetForLeaderEpochRequest,
};
use protocol::{ErrorCode, Str};
use runtime::sim::SimConfig;
use std::time::Duration;

fn topic(name: &str, configs: &[(&str, &str)]) -> CreatableTopic {
    let configs = configs
        .iter()
        .map(|(name, value)| CreatableTopicConfig { name: Str::from(*name), value: Some(Str::from(*value)) });
    CreatableTopic {
        name: name.into(),
        num_partitions: 1,
        replication_factor: 1,
        configs: configs.collect(),
        ..CreatableTopic::default()
    }
}

async fn create(client: &mut Client, topic: CreatableTopic, validate_only: bool) -> ErrorCode {
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 1000, validate_only };
    let response = client.call(7, &request).await.expect("answered");
    ErrorCode::from_code(response.topics[0].error_code).expect("known")
}

#[test]
fn a_topic_that_is_only_validated_is_not_created() {
    let world = World::new(40);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        assert_eq!(create(&mut client, topic("t", &[]), true).await, ErrorCode::None);
        let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
        assert!(client.call(12, &all).await.expect("answered").topics.is_empty());
        assert_eq!(create(&mut client, topic("t", &[]), false).await, ErrorCode::None);
        assert_eq!(create(&mut client, topic("t", &[]), true).await, ErrorCode::TopicAlreadyExists);
    });
}

#[test]
fn configurations_of_a_topic_are_described_after_a_restart_too() {
    let world = World::new(41);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        let wanted = topic("t", &[("retention.ms", "1234"), ("cleanup.policy", "compact,delete")]);
        assert_eq!(create(&mut client, wanted, false).await, ErrorCode::None);
    });
    world.crash();
    world.run(async move {
        let mut client = Client::connect(address).await;
        let keys = ["retention.ms", "cleanup.policy", "flush.messages"].map(Str::from).to_vec();
        let resource = DescribeConfigsResource {
            resource_type: 2,
            resource_name: "t".into(),
            configuration_keys: Some(keys),
        };
        let broker = DescribeConfigsResource {
            resource_type: 4,
            resource_name: "1".into(),
            configuration_keys: Some(vec!["node.id".into()]),
        };
        let request = DescribeConfigsRequest { resources: vec![resource, broker], ..Default::default() };
        let response = client.call(4, &request).await.expect("answered");
        let values: Vec<_> = response
            .results
            .iter()
            .flat_map(|result| &result.configs)
            .map(|config| (config.name.to_string(), config.value.as_deref().unwrap_or("null").to_owned()))
            .collect();
        let expected = [
            ("cleanup.policy", "compact,delete"),
            ("flush.messages", "1"),
            ("retention.ms", "1234"),
            ("node.id", "1"),
        ];
        assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    });
}

#[test]
fn partitions_are_added_and_serve() {
    let world = World::new(42);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 1).await;
        let more = CreatePartitionsTopic { name: "t".into(), count: 6, assignments: None };
        let request = CreatePartitionsRequest { topics: vec![more], timeout_ms: 1000, validate_only: false };
        assert_eq!(client.call(3, &request).await.expect("answered").results[0].error_code, 0);
        for partition in 0..6 {
            assert_eq!(produce(&mut client, "t", partition, batch(0, 1, None)).await.error_code, 0);
        }
        let again = client.call(3, &request).await.expect("answered").results[0].error_code;
        assert_eq!(again, ErrorCode::InvalidPartitions.code());
    });
}

#[test]
fn records_are_deleted_up_to_an_offset() {
    let world = World::new(43);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 1).await;
        for first in 0..5 {
            produce(&mut client, "t", 0, batch(first, 1, None)).await;
        }
        let mut delete = async |offset| {
            let partition = DeleteRecordsPartition { partition_index: 0, offset };
            let topic = DeleteRecordsTopic { name: "t".into(), partitions: vec![partition] };
            let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 1000 };
            let response = client.call(2, &request).await.expect("answered");
            let result = &response.topics[0].partitions[0];
            (ErrorCode::from_code(result.error_code).expect("known"), result.low_watermark)
        };
        assert_eq!(delete(3).await, (ErrorCode::None, 3));
        assert_eq!(delete(2).await, (ErrorCode::None, 3));
        assert_eq!(delete(6).await, (ErrorCode::OffsetOutOfRange, -1));
        let gone = fetch(&mut client, "t", 0, 2).await;
        assert_eq!(gone.error_code, ErrorCode::OffsetOutOfRange.code());
        assert_eq!(values(&fetch(&mut client, "t", 0, 3).await), [(3, 3), (4, 4)]);
    });
    world.crash();
    world.run(async move {
        let mut client = Client::connect(address).await;
        let gone = fetch(&mut client, "t", 0, 2).await;
        assert_eq!(gone.error_code, ErrorCode::OffsetOutOfRange.code());
    });
}

#[test]
fn topics_are_described_in_pages() {
    let world = World::new(44);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "a", 3).await;
        create_topic(&mut client, "b", 3).await;
        let mut cursor: Option<Cursor> = None;
        let mut pages = Vec::new();
        loop {
            let request = DescribeTopicPartitionsRequest {
                topics: vec![TopicRequest { name: "b".into() }, TopicRequest { name: "a".into() }],
                response_partition_limit: 2,
                cursor,
            };
            let response = client.call(0, &request).await.expect("answered");
            let page: Vec<_> = response
                .topics
                .iter()
                .flat_map(|topic| {
                    topic.partitions.iter().map(|p| (topic.name.clone().expect("named"), p.partition_index))
                })
                .map(|(name, index)| format!("{name}{index}"))
                .collect();
            pages.push(page.join(" "));
            cursor = response
                .next_cursor
                .map(|next| Cursor { topic_name: next.topic_name, partition_index: next.partition_index });
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(pages, ["a0 a1", "a2 b0", "b1 b2"]);
    });
}

#[test]
fn the_cluster_and_its_leader_epochs_are_described() {
    let world = World::new(45);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        let cluster = client.call(1, &DescribeClusterRequest::default()).await.expect("answered");
        assert_eq!((cluster.brokers.len(), cluster.controller_id), (1, 1));
        assert_eq!(cluster.brokers[0].port, 9092);
        assert_eq!(
            &*cluster.brokers[0].host,
            address.ip().to_string().as_str(),
            "the address by which we came"
        );
        create_topic(&mut client, "t", 1).await;
        produce(&mut client, "t", 0, batch(0, 3, None)).await;
        let mut end_of = async |current_leader_epoch, leader_epoch| {
            let partition = OffsetForLeaderPartition { partition: 0, current_leader_epoch, leader_epoch };
            let topic = OffsetForLeaderTopic { topic: "t".into(), partitions: vec![partition] };
            let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![topic] };
            let response = client.call(4, &request).await.expect("answered");
            let found = &response.topics[0].partitions[0];
            (ErrorCode::from_code(found.error_code).expect("known"), found.leader_epoch, found.end_offset)
        };
        assert_eq!(end_of(-1, 0).await, (ErrorCode::None, 0, 3));
        assert_eq!(end_of(0, 0).await, (ErrorCode::None, 0, 3));
        assert_eq!(end_of(1, 0).await.0, ErrorCode::UnknownLeaderEpoch);
    });
}

#[test]
fn a_topic_may_ask_for_acknowledgement_from_memory() {
    let slow = SimConfig {
        disk_latency: Duration::from_millis(200)..=Duration::from_millis(210),
        ..SimConfig::default()
    };
    let world = World::with_world(46, slow, |_| ());
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "durable", 1).await;
        let relaxed = topic("relaxed", &[("flush.messages", "9223372036854775807")]);
        assert_eq!(create(&mut client, relaxed, false).await, ErrorCode::None);
        for (name, waits) in [("durable", true), ("relaxed", false)] {
            let started = runtime::time::now();
            assert_eq!(produce(&mut client, name, 0, batch(0, 1, None)).await.error_code, 0);
            assert_eq!(
                started.elapsed() >= Duration::from_millis(200),
                waits,
                "{name}: {:?}",
                started.elapsed()
            );
        }
    });
}

#[test]
fn a_full_disk_makes_no_topics_and_deletes_them() {
    let world = World::new(49);
    let address = world.address();
    let mut client = world.run(async move {
        let mut client = Client::connect(address).await;
        assert_eq!(create(&mut client, topic("t", &[]), false).await, ErrorCode::None);
        client
    });
    let disk = world.sim.disk(NODE);
    disk.set_capacity(disk.used_bytes());
    world.run(async move {
        while create(&mut client, topic("more", &[]), false).await != ErrorCode::KafkaStorageError {
            let named = DeleteTopicState { name: Some("more".into()), ..DeleteTopicState::default() };
            let request = DeleteTopicsRequest { topics: vec![named], timeout_ms: 1000, ..Default::default() };
            client.call(6, &request).await.expect("answered");
            runtime::time::sleep(Duration::from_millis(100)).await;
        }
        let named = DeleteTopicState { name: Some("t".into()), ..DeleteTopicState::default() };
        let request = DeleteTopicsRequest { topics: vec![named], timeout_ms: 1000, ..Default::default() };
        let response = client.call(6, &request).await.expect("answered");
        assert_eq!(response.responses[0].error_code, 0);
    });
}
