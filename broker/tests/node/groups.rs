//! Consumer groups over the wire: members on several connections, power cuts, a full disk.

use crate::client::Client;
use crate::world::*;
use bytes::Bytes;
use millrace_broker::config::NodeConfig;
use protocol::ErrorCode;
use protocol::messages::join_group_request::JoinGroupRequestProtocol;
use protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use protocol::messages::{
    DeleteTopicsRequest, DescribeGroupsRequest, FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest,
    JoinGroupResponse, ListGroupsRequest, OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest,
};
use runtime::{task, time};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

const RETRY: Duration = Duration::from_millis(50);

fn quick(config: &mut NodeConfig) {
    config.group_initial_rebalance_delay_ms = 200;
}

/// A client that knows where the coordinator is; the topic of consumer groups is there then.
async fn connect(address: SocketAddr) -> Client {
    let mut client = Client::connect(address).await;
    let request = FindCoordinatorRequest { coordinator_keys: vec!["g".into()], ..Default::default() };
    loop {
        match client.call(4, &request).await {
            Ok(response) if response.coordinators[0].error_code == 0 => {
                assert_eq!(response.coordinators[0].key, "g");
                assert_eq!(response.coordinators[0].port, i32::from(address.port()));
                return client;
            }
            Ok(_) => time::sleep(RETRY).await,
            Err(_) => client = Client::connect(address).await,
        }
    }
}

fn join_request(group: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 20_000,
        member_id: member_id.into(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol { name: "range".into(), metadata: Bytes::new() }],
        ..Default::default()
    }
}

/// Joins as a client does: twice.
async fn join(client: &mut Client, group: &str) -> JoinGroupResponse {
    let response = client.call(9, &join_request(group, "")).await.expect("answered");
    assert_eq!(response.error_code, ErrorCode::MemberIdRequired.code());
    let response = client.call(9, &join_request(group, &response.member_id)).await.expect("answered");
    assert_eq!(response.error_code, 0, "{response:?}");
    response
}

/// Asks for the assignment; a leader gives every member its own id.
async fn sync(client: &mut Client, group: &str, joined: &JoinGroupResponse) -> Bytes {
    let assignments = joined.members.iter().map(|member| SyncGroupRequestAssignment {
        member_id: member.member_id.clone(),
        assignment: member.member_id.clone().into_bytes(),
    });
    let request = SyncGroupRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        protocol_type: joined.protocol_type.clone(),
        protocol_name: joined.protocol_name.clone(),
        assignments: assignments.collect(),
        ..Default::default()
    };
    let response = client.call(5, &request).await.expect("answered");
    assert_eq!(response.error_code, 0, "{response:?}");
    response.assignment
}

async fn heartbeat(client: &mut Client, group: &str, joined: &JoinGroupResponse) -> i16 {
    let request = HeartbeatRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        group_instance_id: None,
    };
    client.call(4, &request).await.expect("answered").error_code
}

fn commit_request(
    group: &str,
    joined: Option<&JoinGroupResponse>,
    partition: i32,
    offset: i64,
) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition {
        partition_index: partition,
        committed_offset: offset,
        committed_metadata: Some("note".into()),
        ..Default::default()
    };
    OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: joined.map_or(-1, |it| it.generation_id),
        member_id: joined.map(|it| it.member_id.clone()).unwrap_or_default(),
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

async fn commit(client: &mut Client, group: &str, partition: i32, offset: i64) -> i16 {
    let request = commit_request(group, None, partition, offset);
    client.call(9, &request).await.expect("answered").topics[0].partitions[0].error_code
}

/// The committed offset of `t`, by name.
async fn committed(client: &mut Client, group: &str, partition: i32) -> i64 {
    let topic = OffsetFetchRequestTopics {
        name: "t".into(),
        partition_indexes: vec![partition],
        ..Default::default()
    };
    let group =
        OffsetFetchRequestGroup { group_id: group.into(), topics: Some(vec![topic]), ..Default::default() };
    let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
    loop {
        let response = client.call(9, &request).await.expect("answered");
        match response.groups[0].error_code {
            0 => return response.groups[0].topics[0].partitions[0].committed_offset,
            error => assert_eq!(error, ErrorCode::CoordinatorLoadInProgress.code()),
        }
        time::sleep(RETRY).await;
    }
}

async fn describe(client: &mut Client, group: &str) -> (String, Vec<Bytes>) {
    let request = DescribeGroupsRequest { groups: vec![group.into()], ..Default::default() };
    loop {
        let group = client.call(6, &request).await.expect("answered").groups.remove(0);
        if group.error_code != ErrorCode::CoordinatorLoadInProgress.code() {
            let assignments = group.members.into_iter().map(|member| member.member_assignment).collect();
            return (group.group_state.to_string(), assignments);
        }
        time::sleep(RETRY).await;
    }
}

#[test]
fn two_members_agree_and_a_power_cut_changes_nothing() {
    let world = World::with_config(21, quick);
    let address = world.address();
    let (first, second) = world.run(async move {
        let (mut a, mut b) = (connect(address).await, connect(address).await);
        create_topic(&mut a, "t", 2).await;
        let second = task::spawn(async move {
            let joined = join(&mut b, "g").await;
            assert_eq!(sync(&mut b, "g", &joined).await, joined.member_id.clone().into_bytes());
            joined
        });
        let first = join(&mut a, "g").await;
        assert_eq!(sync(&mut a, "g", &first).await, first.member_id.clone().into_bytes());
        let second = second.await.expect("not cancelled");
        assert_eq!((first.generation_id, second.generation_id), (1, 1));
        assert_eq!(first.leader, second.leader);
        let response = a.call(9, &commit_request("g", Some(&first), 1, 77)).await.expect("answered");
        assert_eq!(response.topics[0].partitions[0].error_code, 0);
        (first, second)
    });
    world.crash();
    world.run(async move {
        let mut client = connect(address).await;
        assert_eq!(committed(&mut client, "g", 1).await, 77);
        let (state, assignments) = describe(&mut client, "g").await;
        let mut expected = [&first, &second].map(|it| it.member_id.clone().into_bytes());
        expected.sort();
        assert_eq!((state.as_str(), assignments), ("Stable", expected.to_vec()));
        assert_eq!(heartbeat(&mut client, "g", &first).await, 0);
        assert_eq!(sync(&mut client, "g", &second).await, second.member_id.clone().into_bytes());
        // Only the first goes on; the session of the second ends.
        for _ in 0..4 {
            time::sleep(Duration::from_secs(4)).await;
            heartbeat(&mut client, "g", &first).await;
        }
        assert_eq!(heartbeat(&mut client, "g", &first).await, ErrorCode::RebalanceInProgress.code());
        assert_eq!(heartbeat(&mut client, "g", &second).await, ErrorCode::UnknownMemberId.code());
    });
}

#[test]
fn commits_of_one_connection_are_decided_in_their_order() {
    let world = World::new(22);
    let address = world.address();
    world.run(async move {
        let mut client = connect(address).await;
        create_topic(&mut client, "t", 1).await;
        for offset in 0..200 {
            client.send(9, &commit_request("g", None, 0, offset)).await.expect("sent");
        }
        for _ in 0..200 {
            let response = client.receive::<OffsetCommitRequest>(9).await.expect("answered");
            assert_eq!(response.topics[0].partitions[0].error_code, 0);
        }
        assert_eq!(committed(&mut client, "g", 0).await, 199);
    });
    world.crash();
    world.run(async move { assert_eq!(committed(&mut connect(address).await, "g", 0).await, 199) });
}

#[test]
fn groups_of_all_shards_are_listed() {
    let world = World::new(23);
    let address = world.address();
    world.run(async move {
        let mut client = connect(address).await;
        create_topic(&mut client, "t", 1).await;
        let names: Vec<String> = (10..40).map(|number| format!("group-{number}")).collect();
        for name in &names {
            assert_eq!(commit(&mut client, name, 0, 1).await, 0);
        }
        let response = client.call(5, &ListGroupsRequest::default()).await.expect("answered");
        let listed: Vec<String> = response.groups.iter().map(|group| group.group_id.to_string()).collect();
        assert_eq!((response.error_code, listed), (0, names));
        assert!(
            response.groups.iter().all(|group| group.group_state == "Empty" && group.group_type == "classic")
        );
    });
}

#[test]
fn only_what_exists_is_committed_and_shown() {
    let world = World::new(24);
    let address = world.address();
    world.run(async move {
        let mut client = connect(address).await;
        let unknown = ErrorCode::UnknownTopicOrPartition.code();
        assert_eq!(commit(&mut client, "g", 0, 1).await, unknown);
        create_topic(&mut client, "t", 1).await;
        assert_eq!(commit(&mut client, "g", 1, 1).await, unknown);
        assert_eq!(commit(&mut client, "g", 0, 5).await, 0);
        assert_eq!(committed(&mut client, "g", 0).await, 5);
        let delete =
            DeleteTopicsRequest { topic_names: vec!["t".into()], timeout_ms: 1000, ..Default::default() };
        client.call(5, &delete).await.expect("answered");
        assert_eq!(committed(&mut client, "g", 0).await, -1);
        // A topic made anew begins without offsets.
        create_topic(&mut client, "t", 1).await;
        assert_eq!(committed(&mut client, "g", 0).await, -1);
    });
}

#[test]
fn no_acknowledged_offset_is_lost() {
    for seed in 0..10 {
        let world = World::new(2000 + seed);
        let address = world.address();
        world.run(async move {
            create_topic(&mut connect(address).await, "t", 1).await;
        });
        let acknowledged = Rc::new(Cell::new(-1_i64));
        let consumer = world.sim.spawn_client(commit_for_ever(address, Rc::clone(&acknowledged)));
        for round in 0..4_u64 {
            world.sim.run_for(Duration::from_millis(113 + 71 * round));
            world.crash();
        }
        world.sim.run_for(Duration::from_millis(500));
        consumer.cancel();
        let found = world.run(async move { committed(&mut connect(address).await, "g", 0).await });
        let acknowledged = acknowledged.get();
        assert!(acknowledged > 10, "seed {seed}: {acknowledged} acknowledged");
        // The last commit may have been stored without its answer being heard.
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "seed {seed}: {found}, told {acknowledged}"
        );
    }
}

async fn commit_for_ever(address: SocketAddr, acknowledged: Rc<Cell<i64>>) {
    let mut client = connect(address).await;
    loop {
        let offset = acknowledged.get() + 1;
        match client.call(9, &commit_request("g", None, 0, offset)).await {
            Ok(response) => match response.topics[0].partitions[0].error_code {
                0 => acknowledged.set(offset),
                error => {
                    assert_eq!(error, ErrorCode::CoordinatorLoadInProgress.code());
                    time::sleep(RETRY).await;
                }
            },
            Err(_) => client = connect(address).await,
        }
    }
}

#[test]
fn a_full_disk_refuses_commits_for_as_long_as_it_is_full() {
    let world = World::with_config(25, quick);
    let address = world.address();
    let mut client = world.run(async move {
        let mut client = connect(address).await;
        create_topic(&mut client, "t", 1).await;
        assert_eq!(commit(&mut client, "other", 0, 1).await, 0);
        client
    });
    let disk = world.sim.disk(NODE);
    disk.set_capacity(disk.used_bytes());
    let mut client = world.run(async move {
        let joined = join(&mut client, "g").await;
        loop {
            match commit(&mut client, "other", 0, 2).await {
                0 => time::sleep(RETRY).await,
                error => {
                    assert_eq!(error, ErrorCode::CoordinatorNotAvailable.code());
                    break;
                }
            }
        }
        // What needs no space goes on.
        assert_eq!(heartbeat(&mut client, "g", &joined).await, 0);
        assert!(committed(&mut client, "other", 0).await > 0);
        client
    });
    disk.set_capacity(u64::MAX);
    world.run(async move {
        while commit(&mut client, "other", 0, 3).await != 0 {
            time::sleep(RETRY).await;
        }
        assert_eq!(committed(&mut client, "other", 0).await, 3);
    });
}
