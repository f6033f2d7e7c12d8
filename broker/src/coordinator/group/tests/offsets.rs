//! Committed offsets: who may commit, what a fetch shows, when they are forgotten.

use bytes::Bytes;
use protocol::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use protocol::messages::offset_delete_request::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use protocol::messages::offset_fetch_response::OffsetFetchResponseTopics;
use protocol::{ErrorCode, Str, Uuid};

use super::super::{GroupConfig, Input, Reply, Request};
use super::script::{check, check_with};
use super::stage::Stage;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[test]
fn a_simple_group_is_made_by_its_first_commit() {
    check(
        "commit x t-0=5
           > store t-0=5
           > x: NONE
         list
           > admin: g  Empty classic
         describe
           > admin: Empty  []
         commit x t-1=6 gen=3
           > x: UNKNOWN_MEMBER_ID
         commit x t-1=6 gen=3 group=other
           > x: GROUP_ID_NOT_FOUND
         commit x t-1=6 gen=3 group=other v=8
           > x: ILLEGAL_GENERATION
         delete
           > forget t-0
           > admin: NONE
         list
           > admin: ",
    );
}

#[test]
fn members_commit_in_their_generation_only() {
    check(
        "join a v=3 session=10000
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         wait 3000
           > a: joined gen 1 range leader a [a]
         commit a t-0=1
           > a: REBALANCE_IN_PROGRESS
         sync a a=A
           > store gen 1 range [a=A]
           > a: assigned A
         commit a t-0=1
           > store t-0=1
           > a: NONE
         commit a t-0=1 gen=0
           > a: ILLEGAL_GENERATION
         commit a t-0=1 member=nobody
           > a: UNKNOWN_MEMBER_ID
         commit other t-0=1
           > other: UNKNOWN_MEMBER_ID
         wait 9999
         commit a t-0=2
           > store t-0=2
           > a: NONE
         wait 9999
         heartbeat a
           > a: ok
         join b v=3
           > rebalance: a new member joins; client reason: not provided
         commit a t-0=3
           > store t-0=3
           > a: NONE",
    );
}

#[test]
fn offsets_expire_after_the_last_member_left() {
    let config = GroupConfig { offsets_retention_ms: 3_600_000, ..GroupConfig::default() };
    check_with(
        config,
        "join a v=3 session=1800000
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         wait 3000
           > a: joined gen 1 range leader a [a]
         sync a a=A
           > store gen 1 range [a=A]
           > a: assigned A
         commit a t-0=1
           > store t-0=1
           > a: NONE
         wait 1700000
         leave a
           > rebalance: members left: a (no reason given)
           > store gen 2 - []
           > a: NONE
         wait 3597000
         wait 600000
           > forget t-0
           > forget g
         list
           > admin: ",
    );
}

#[test]
fn a_restart_does_not_make_offsets_younger() {
    let config = GroupConfig { offsets_retention_ms: 1_200_000, ..GroupConfig::default() };
    check_with(
        config,
        "commit x t-0=5
           > store t-0=5
           > x: NONE
         wait 1190000
         restart
         wait 600000
           > forget t-0
         list
           > admin: ",
    );
}

/// A stage on which group `g` has committed offset 5 of `t`-0, by the topic's id 7.
fn stage() -> Stage {
    let mut stage = Stage::new(GroupConfig::default());
    let (_, decision) = stage.request(commit("t", Uuid::from_u128(7), 5, "note", -1));
    assert_eq!(decision.records.len(), 1);
    stage
}

fn commit(topic: &str, topic_id: Uuid, offset: i64, metadata: &str, retention_time_ms: i64) -> Request {
    let partition = OffsetCommitRequestPartition {
        partition_index: 0,
        committed_offset: offset,
        committed_leader_epoch: 3,
        committed_metadata: Some(Str::from(metadata)),
    };
    let topic = OffsetCommitRequestTopic { name: topic.into(), topic_id, partitions: vec![partition] };
    let body = OffsetCommitRequest {
        group_id: "g".into(),
        retention_time_ms,
        topics: vec![topic],
        ..Default::default()
    };
    Request::OffsetCommit { version: 10, body }
}

fn fetch(stage: &mut Stage, topics: Option<Vec<OffsetFetchRequestTopics>>) -> Vec<OffsetFetchResponseTopics> {
    let body = OffsetFetchRequestGroup { group_id: "g".into(), topics, ..Default::default() };
    let (_, decision) = stage.request(Request::OffsetFetch(body));
    match decision.replies.into_iter().next() {
        Some((_, Reply::OffsetFetch(group))) => group.topics,
        other => panic!("not an answer to OffsetFetch: {other:?}"),
    }
}

fn ask(topic: &str, topic_id: Uuid) -> Option<Vec<OffsetFetchRequestTopics>> {
    Some(vec![OffsetFetchRequestTopics { name: topic.into(), topic_id, partition_indexes: vec![0, 1] }])
}

#[test]
fn a_fetch_shows_what_was_committed() {
    let mut stage = stage();
    let all = fetch(&mut stage, None);
    let asked = fetch(&mut stage, ask("t", Uuid::ZERO));
    assert_eq!(
        (all[0].name.as_str(), all[0].topic_id, all[0].partitions.len()),
        ("t", Uuid::from_u128(7), 1)
    );
    assert_eq!(all[0].partitions[0], asked[0].partitions[0]);
    let shown = &asked[0].partitions[0];
    assert_eq!((shown.committed_offset, shown.committed_leader_epoch), (5, 3));
    assert_eq!((shown.metadata.as_deref(), shown.error_code), (Some("note"), 0));
    let none = &asked[0].partitions[1];
    assert_eq!((none.committed_offset, none.committed_leader_epoch), (-1, -1));
    assert_eq!((none.metadata.as_deref(), none.error_code), (Some(""), 0));
}

#[test]
fn an_offset_of_another_topic_of_the_same_name_is_not_shown() {
    let mut stage = stage();
    assert_eq!(fetch(&mut stage, ask("t", Uuid::from_u128(7)))[0].partitions[0].committed_offset, 5);
    assert_eq!(fetch(&mut stage, ask("t", Uuid::from_u128(8)))[0].partitions[0].committed_offset, -1);
}

#[test]
fn too_much_metadata_is_refused_for_its_partition() {
    let mut stage = stage();
    let (_, decision) = stage.request(commit("t", Uuid::ZERO, 6, &"x".repeat(4_097), -1));
    let Some((_, Reply::OffsetCommit(response))) = decision.replies.first() else { panic!("{decision:?}") };
    assert_eq!(response.topics[0].partitions[0].error_code, ErrorCode::OffsetMetadataTooLarge.code());
    assert!(decision.records.is_empty());
}

#[test]
fn an_old_client_chooses_its_own_retention() {
    let mut stage = stage();
    stage.request(commit("old", Uuid::ZERO, 1, "", DAY_MS));
    assert_eq!(fetch(&mut stage, None).len(), 2);
    let until_ms = stage.now_ms + DAY_MS + 600_000;
    while stage.next_timer(until_ms).is_some() {}
    let left = fetch(&mut stage, None);
    assert_eq!(left.iter().map(|topic| topic.name.as_str()).collect::<Vec<_>>(), ["t"]);
}

#[test]
fn deleted_topics_take_their_offsets_along() {
    let mut stage = stage();
    stage.request(commit("legacy", Uuid::ZERO, 1, "", -1));
    let deleted = [("t", 8), ("legacy", 9)].map(|(name, id)| (Str::from(name), Uuid::from_u128(id)));
    stage.decide(Input::TopicsDeleted(deleted.to_vec()));
    let left = fetch(&mut stage, None);
    assert_eq!(
        left.iter().map(|topic| topic.name.as_str()).collect::<Vec<_>>(),
        ["t"],
        "only t with id 7 is left"
    );
    stage.decide(Input::TopicsDeleted(vec![("t".into(), Uuid::from_u128(7))]));
    assert!(fetch(&mut stage, None).is_empty());
    assert_eq!(stage.replayed(), stage.groups);
}

fn delete(stage: &mut Stage, topic: &str) -> Reply {
    let partitions = [0, 9].map(|partition_index| OffsetDeleteRequestPartition { partition_index }).to_vec();
    let topics = vec![OffsetDeleteRequestTopic { name: topic.into(), partitions }];
    let (_, decision) =
        stage.request(Request::OffsetDelete(OffsetDeleteRequest { group_id: "g".into(), topics }));
    decision.replies.into_iter().next().expect("an answer").1
}

#[test]
fn offsets_are_deleted_on_request() {
    let mut stage = stage();
    let Reply::OffsetDelete(response) = delete(&mut stage, "t") else { panic!("not deleted") };
    assert!(response.topics[0].partitions.iter().all(|partition| partition.error_code == 0));
    assert_eq!(delete(&mut stage, "t"), Reply::Failed(ErrorCode::GroupIdNotFound));
}

#[test]
fn offsets_of_subscribed_topics_are_not_deleted_and_do_not_expire() {
    // ConsumerProtocolSubscription, version 0: topics ["t"], no user data.
    let subscription = Bytes::from_static(b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff");
    let mut stage = Stage::new(GroupConfig::default());
    stage.decide(Input::Loaded);
    let member = protocol::messages::group_metadata_value::MemberMetadata {
        member_id: "m".into(),
        session_timeout: 1_800_000,
        subscription,
        ..Default::default()
    };
    let value = protocol::messages::group_metadata_value::GroupMetadataValue {
        protocol_type: "consumer".into(),
        generation: 1,
        protocol: Some("range".into()),
        leader: Some("m".into()),
        current_state_timestamp: stage.now_ms,
        members: vec![member],
    };
    stage.log.push(super::super::Record::GroupMetadata { group_id: "g".into(), value: Some(value) });
    for topic in ["t", "u"] {
        let value = protocol::messages::offset_commit_value::OffsetCommitValue {
            commit_timestamp: stage.now_ms - 8 * DAY_MS,
            ..Default::default()
        };
        let (group_id, topic) = ("g".into(), topic.into());
        stage.log.push(super::super::Record::Offset { group_id, topic, partition: 0, value: Some(value) });
    }
    stage.restart();
    let Reply::OffsetDelete(response) = delete(&mut stage, "t") else { panic!("not answered") };
    let errors: Vec<i16> =
        response.topics[0].partitions.iter().map(|partition| partition.error_code).collect();
    assert_eq!(errors, [ErrorCode::GroupSubscribedToTopic.code(); 2]);

    let until_ms = stage.now_ms + 600_000;
    while stage.next_timer(until_ms).is_some() {}
    let left = fetch(&mut stage, None);
    assert_eq!(
        left.iter().map(|topic| topic.name.as_str()).collect::<Vec<_>>(),
        ["t"],
        "u is read by nobody"
    );
}
