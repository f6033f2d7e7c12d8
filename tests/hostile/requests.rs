//! Requests that were valid before some bytes were changed: every array length, string length and number in them lies
//! in turn.

use anyhow::Result;
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    BrokerId, CreateTopicsRequest, DescribeGroupsRequest, FetchRequest, GroupId, InitProducerIdRequest,
    JoinGroupRequest, ListOffsetsRequest, MetadataRequest, OffsetCommitRequest, ProduceRequest,
    SyncGroupRequest, TopicName,
};
use kafka_protocol::protocol::{Encodable, Request, StrBytes};
use kafka_protocol::records::Compression;
use millrace_tests::suite::{self, Cost, Outcome};
use millrace_tests::wire;

use crate::victim::{Victim, framed, payload};

fn string(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

fn topic() -> TopicName {
    TopicName(string("hostile"))
}

fn group() -> GroupId {
    GroupId(string("hostile"))
}

/// The payload of each of the versions.
fn payloads<R: Request + Encodable>(request: &R, versions: &[i16]) -> Result<Vec<Vec<u8>>> {
    versions.iter().map(|version| payload(R::KEY, *version, request)).collect()
}

/// Each request sends its whole frame with one place changed.
fn lie_everywhere(victim: &Victim, payload: &[u8]) -> Result<()> {
    const LIES: [&[u8]; 6] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff],
        &[0x80, 0x00, 0x00, 0x00],
        &[0x00, 0xff, 0xff, 0xff],
        // Compact lengths: the largest, and one that does not end.
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ];
    // The key, the version and the correlation id stay what they are.
    for at in 8..payload.len() {
        for lie in LIES {
            let mut changed = payload.to_vec();
            for (place, byte) in changed[at..].iter_mut().zip(lie) {
                *place = *byte;
            }
            victim.attack(&framed(&changed))?;
        }
        victim.attack(&framed(&payload[..at]))?;
    }
    Ok(())
}

fn attack_all(name: &str, payloads: &[Vec<u8>]) -> Result<()> {
    let mut victim = Victim::start()?;
    for payload in payloads {
        lie_everywhere(&victim, payload)?;
        victim.check(name)?;
    }
    Ok(())
}

#[test]
fn lies_in_produce() -> Outcome {
    suite::run(Cost::Light, || {
        let batch = wire::batch(0..3, 20, Compression::None)?;
        let partition = PartitionProduceData::default().with_records(Some(batch));
        let data = TopicProduceData::default().with_name(topic()).with_partition_data(vec![partition]);
        let request =
            ProduceRequest::default().with_acks(1).with_timeout_ms(1000).with_topic_data(vec![data]);
        attack_all("lies in produce", &payloads(&request, &[3, 9])?)
    })
}

#[test]
fn lies_in_fetch_and_list_offsets() -> Outcome {
    suite::run(Cost::Light, || {
        let wanted =
            FetchTopic::default().with_topic(topic()).with_partitions(vec![FetchPartition::default()]);
        let forgotten = ForgottenTopic::default().with_topic(topic()).with_partitions(vec![1, 2]);
        let fetch = FetchRequest::default()
            .with_max_bytes(1000)
            .with_topics(vec![wanted])
            .with_forgotten_topics_data(vec![forgotten]);
        let partition = ListOffsetsPartition::default().with_timestamp(-1);
        let list = ListOffsetsTopic::default().with_name(topic()).with_partitions(vec![partition]);
        let list = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![list]);
        let mut all = payloads(&fetch, &[7, 12])?;
        all.extend(payloads(&list, &[2, 7])?);
        attack_all("lies in fetch and list offsets", &all)
    })
}

#[test]
fn lies_in_topic_requests() -> Outcome {
    suite::run(Cost::Light, || {
        let named = MetadataRequestTopic::default().with_name(Some(topic()));
        let metadata = MetadataRequest::default().with_topics(Some(vec![named]));
        let config = CreatableTopicConfig::default()
            .with_name(string("retention.ms"))
            .with_value(Some(string("1000")));
        let assignment = CreatableReplicaAssignment::default().with_broker_ids(vec![BrokerId(1)]);
        let creatable = CreatableTopic::default()
            .with_name(topic())
            .with_num_partitions(-1)
            .with_replication_factor(-1)
            .with_assignments(vec![assignment])
            .with_configs(vec![config]);
        let create = CreateTopicsRequest::default().with_timeout_ms(1000).with_topics(vec![creatable]);
        let mut all = payloads(&metadata, &[1, 12])?;
        all.extend(payloads(&create, &[2, 7])?);
        attack_all("lies in topic requests", &all)
    })
}

#[test]
fn lies_in_group_requests() -> Outcome {
    suite::run(Cost::Light, || {
        let protocol =
            JoinGroupRequestProtocol::default().with_name(string("range")).with_metadata(vec![0; 8].into());
        let join = JoinGroupRequest::default()
            .with_group_id(group())
            .with_session_timeout_ms(6000)
            .with_rebalance_timeout_ms(6000)
            .with_protocol_type(string("consumer"))
            .with_protocols(vec![protocol]);
        let assignment = SyncGroupRequestAssignment::default()
            .with_member_id(string("m"))
            .with_assignment(vec![0; 8].into());
        let sync = SyncGroupRequest::default().with_group_id(group()).with_assignments(vec![assignment]);
        let partition = OffsetCommitRequestPartition::default().with_committed_offset(5);
        let offsets = OffsetCommitRequestTopic::default().with_name(topic()).with_partitions(vec![partition]);
        let commit = OffsetCommitRequest::default().with_group_id(group()).with_topics(vec![offsets]);
        let describe = DescribeGroupsRequest::default().with_groups(vec![group()]);
        // From version 4 on, a member without an id is sent away with one: no answer waits for another member.
        let mut all = payloads(&join, &[4, 9])?;
        all.extend(payloads(&sync, &[1, 5])?);
        all.extend(payloads(&commit, &[2, 8])?);
        all.extend(payloads(&describe, &[0, 5])?);
        all.extend(payloads(&InitProducerIdRequest::default(), &[0, 4])?);
        attack_all("lies in group requests", &all)
    })
}
