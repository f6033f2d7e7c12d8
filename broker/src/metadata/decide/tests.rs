//! Scenarios of metadata decisions: each decides, applies, and looks at the image.

use super::*;
use crate::config::NodeConfig;
use proptest::prelude::*;
use protocol::messages::create_partitions_request::CreatePartitionsTopic;
use protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use protocol::messages::delete_topics_request::DeleteTopicState;
use protocol::{Str, Uuid};
use std::collections::BTreeSet;
use std::sync::Arc;

const BROKERS: &[i32] = &[1];

struct World {
    image: Image,
    next_id: u128,
}

impl World {
    fn new() -> World {
        World { image: Image::empty(Arc::new(NodeConfig::default()), 4), next_id: 100 }
    }

    fn apply<R>(&mut self, decision: Decision<R>) -> R {
        for record in &decision.records {
            // What is applied is what a restart would read.
            let read = MetadataRecord::decode(record.encode().expect("encodes")).expect("decodes");
            assert_eq!(read, *record);
            self.image.apply(&read);
        }
        decision.reply
    }

    fn create(&mut self, topics: &[CreatableTopic]) -> Vec<Result<Created, ErrorCode>> {
        let next_id = &mut self.next_id;
        let decision = create_topics(&self.image, BROKERS, topics, || {
            *next_id += 1;
            Uuid::from_u128(*next_id)
        });
        self.apply(decision).into_iter().map(|(_, result)| result.map_err(|refusal| refusal.error)).collect()
    }

    fn create_one(&mut self, topic: CreatableTopic) -> Result<Created, ErrorCode> {
        self.create(&[topic]).remove(0)
    }

    fn delete(&mut self, topics: &[DeleteTopicState]) -> Vec<(Option<Str>, Option<ErrorCode>)> {
        let decision = delete_topics(&self.image, topics);
        let reply = self.apply(decision);
        reply.into_iter().map(|topic| (topic.name, topic.result.err().map(|refusal| refusal.error))).collect()
    }

    fn grow(&mut self, name: &'static str, count: i32) -> Option<ErrorCode> {
        let topic = CreatePartitionsTopic { name: name.into(), count, assignments: None };
        let decision = create_partitions(&self.image, BROKERS, &[topic]);
        self.apply(decision).remove(0).1.err().map(|refusal| refusal.error)
    }
}

fn topic(name: &str) -> CreatableTopic {
    CreatableTopic { name: name.into(), num_partitions: -1, replication_factor: -1, ..Default::default() }
}

fn with_config(name: &str, key: &str, value: Option<&str>) -> CreatableTopic {
    let config = CreatableTopicConfig { name: key.into(), value: value.map(Into::into) };
    CreatableTopic { configs: vec![config], ..topic(name) }
}

#[test]
fn a_created_topic_is_there_with_its_settings() {
    let mut world = World::new();
    let wanted = CreatableTopic { num_partitions: 3, ..with_config("t", "retention.ms", Some("5")) };
    let created = world.create_one(wanted).expect("created");
    assert_eq!((created.partition_count, created.replication_factor), (3, 1));
    let known = world.image.topic("t").expect("there");
    assert_eq!(known.id, created.id);
    assert_eq!(known.settings.log.retention_ms, 5);
    assert!(known.partitions.iter().all(|p| p.replicas == BROKERS && p.leader == 1 && p.isr == BROKERS));
    assert_eq!(world.image.topic_by_id(&created.id), Some(known));
}

#[test]
fn refusals_of_create_topics_are_kafkas() {
    let mut world = World::new();
    world.create_one(topic("a_b")).expect("created");
    let partitions = |n| CreatableTopic { num_partitions: n, ..topic("x") };
    let replicas = |n| CreatableTopic { replication_factor: n, ..topic("x") };
    let cases = [
        (topic("a_b"), ErrorCode::TopicAlreadyExists),
        (topic("a.b"), ErrorCode::InvalidTopicException),
        (topic("a b"), ErrorCode::InvalidTopicException),
        (topic("__cluster_metadata"), ErrorCode::InvalidRequest),
        (partitions(0), ErrorCode::InvalidPartitions),
        (partitions(-2), ErrorCode::InvalidPartitions),
        (partitions(10_001), ErrorCode::PolicyViolation),
        (replicas(0), ErrorCode::InvalidReplicationFactor),
        (replicas(-2), ErrorCode::InvalidReplicationFactor),
        (replicas(2), ErrorCode::InvalidReplicationFactor),
        (with_config("x", "retention.ms", None), ErrorCode::InvalidConfig),
        (with_config("x", "retention.ms", Some("soon")), ErrorCode::InvalidConfig),
        (with_config("x", "no.such.config", Some("1")), ErrorCode::InvalidConfig),
    ];
    for (topic, error) in cases {
        assert_eq!(world.create_one(topic.clone()), Err(error), "{topic:?}");
    }
    assert_eq!(world.image.topic_count(), 1);
}

#[test]
fn topics_of_one_request_see_each_other() {
    let mut world = World::new();
    let results = world.create(&[topic("a.b"), topic("a_b"), topic("c"), topic("c"), topic("d")]);
    let errors: Vec<_> = results.into_iter().map(Result::err).collect();
    let twice = Some(ErrorCode::InvalidRequest);
    assert_eq!(errors, [None, Some(ErrorCode::InvalidTopicException), twice, twice, None]);
}

#[test]
fn assignments_by_hand_are_checked() {
    let by_hand = |assignments: &[(i32, &[i32])]| {
        let assign = |(index, brokers): &(i32, &[i32])| CreatableReplicaAssignment {
            partition_index: *index,
            broker_ids: brokers.to_vec(),
        };
        let assignments = assignments.iter().map(assign).collect();
        World::new()
            .create_one(CreatableTopic { assignments, ..topic("t") })
            .map(|created| created.partition_count)
    };
    let bad = Err(ErrorCode::InvalidReplicaAssignment);
    assert_eq!(by_hand(&[(1, &[1]), (0, &[1])]), Ok(2));
    assert_eq!(by_hand(&[(0, &[1]), (0, &[1])]), bad);
    assert_eq!(by_hand(&[(0, &[1]), (2, &[1])]), bad);
    assert_eq!(by_hand(&[(0, &[2])]), bad);
    assert_eq!(by_hand(&[(0, &[])]), bad);
    assert_eq!(by_hand(&[(0, &[1, 1])]), bad);
    let both = CreatableTopic {
        assignments: vec![CreatableReplicaAssignment { partition_index: 0, broker_ids: vec![1] }],
        num_partitions: 1,
        ..topic("t")
    };
    assert_eq!(World::new().create_one(both), Err(ErrorCode::InvalidRequest));
}

#[test]
fn a_configuration_without_a_default_of_the_node_is_accepted_if_it_makes_sense() {
    let mut world = World::new();
    let name = "min.cleanable.dirty.ratio";
    assert!(world.create_one(with_config("a", name, Some("0.1"))).is_ok());
    assert_eq!(world.create_one(with_config("b", name, Some("7"))), Err(ErrorCode::InvalidConfig));
}

#[test]
fn topics_are_deleted_by_name_or_id() {
    let mut world = World::new();
    let by_name = |name: &str| DeleteTopicState { name: Some(name.into()), topic_id: Uuid::ZERO };
    let by_id = |topic_id| DeleteTopicState { name: None, topic_id };
    let a = world.create_one(topic("a")).expect("created").id;
    let b = world.create_one(topic("b")).expect("created").id;
    let both = DeleteTopicState { name: Some("a".into()), topic_id: a };
    assert_eq!(world.delete(&[both]), [(Some("a".into()), Some(ErrorCode::InvalidRequest))]);
    assert_eq!(world.delete(&[by_id(Uuid::ZERO)]), [(None, Some(ErrorCode::InvalidRequest))]);
    assert_eq!(
        world.delete(&[by_name("a"), by_name("a")]),
        [(Some("a".into()), Some(ErrorCode::InvalidRequest))]
    );
    assert_eq!(
        world.delete(&[by_name("a"), by_id(a)]),
        [(Some("a".into()), Some(ErrorCode::InvalidRequest))]
    );
    assert_eq!(world.delete(&[by_name("x")]), [(Some("x".into()), Some(ErrorCode::UnknownTopicOrPartition))]);
    assert_eq!(world.delete(&[by_id(Uuid::from_u128(1))]), [(None, Some(ErrorCode::UnknownTopicId))]);
    assert_eq!(world.image.topic_count(), 2);
    assert_eq!(
        world.delete(&[by_id(b), by_name("a")]).iter().filter(|(_, error)| error.is_none()).count(),
        2
    );
    assert_eq!(world.image.topic_count(), 0);
    assert!(world.create_one(topic("a")).expect("created again").id != a);
}

#[test]
fn partitions_only_grow() {
    let mut world = World::new();
    world.create_one(CreatableTopic { num_partitions: 2, ..topic("t") }).expect("created");
    assert_eq!(world.grow("t", 2), Some(ErrorCode::InvalidPartitions));
    assert_eq!(world.grow("t", 1), Some(ErrorCode::InvalidPartitions));
    assert_eq!(world.grow("u", 1), Some(ErrorCode::UnknownTopicOrPartition));
    assert_eq!(world.grow("t", 5), None);
    assert_eq!(world.image.topic("t").expect("there").partitions.len(), 5);
}

#[test]
fn blocks_of_producer_ids_do_not_overlap() {
    let mut world = World::new();
    let mut firsts = Vec::new();
    for _ in 0..3 {
        let decision = allocate_producer_ids(&world.image, 1);
        firsts.push(world.apply(decision));
    }
    assert_eq!(firsts, [0, PRODUCER_ID_BLOCK_LEN, 2 * PRODUCER_ID_BLOCK_LEN]);
}

proptest! {
    #[test]
    fn partitions_are_spread_evenly(id in any::<u128>(), shards in 1_u16..9, rounds in 1_i32..4) {
        let image = Image::empty(Arc::new(NodeConfig::default()), shards);
        let id = Uuid::from_u128(id);
        let mut counts = std::collections::BTreeMap::new();
        for partition in 0..rounds * i32::from(shards) {
            *counts.entry(image.shard_of(&id, partition)).or_insert(0) += 1;
        }
        let even: BTreeSet<i32> = counts.values().copied().collect();
        prop_assert_eq!(counts.len(), usize::from(shards));
        prop_assert_eq!(even, BTreeSet::from([rounds]));
    }
}
