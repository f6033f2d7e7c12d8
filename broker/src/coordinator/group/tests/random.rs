//! Random inputs: whatever clients send and whenever timers run, a coordinator keeps its word.
//!
//! Checked after every decision (`Stage::decide`): stored state changes by records only, records survive their bytes,
//! nobody is answered twice, generations do not go back, nobody waits without a timer. Checked here: one leader and
//! one assignment for each generation, replay gives the live state, all parked requests are answered in the end.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;
use protocol::Str;
use protocol::messages::heartbeat_request::HeartbeatRequest;
use protocol::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use protocol::messages::leave_group_request::MemberIdentity;
use protocol::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use protocol::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};

use super::super::{Client, Decision, GroupConfig, Record, Reply, Request, RequestId};
use super::stage::Stage;

const CLIENTS: usize = 5;

/// What one client does next; `stale` makes it use an id or generation that is not its own.
#[derive(Clone, Debug)]
enum Step {
    Join { client: usize, version: i16, is_static: bool, protocols: u8, forget: bool },
    Sync { client: usize, stale: bool },
    Heartbeat { client: usize, stale: bool },
    Leave { client: usize, other: usize },
    Commit { client: usize, stale: bool },
    Admin(u8),
    Wait(u32),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    prop_oneof![
        8 => (client.clone(), prop_oneof![Just(3), Just(8), Just(9)], any::<bool>(), 0..4u8, prop::bool::weighted(0.2))
            .prop_map(|(client, version, is_static, protocols, forget)| {
                Step::Join { client, version, is_static: is_static && client > 2, protocols, forget }
            }),
        6 => (client.clone(), prop::bool::weighted(0.1)).prop_map(|(client, stale)| Step::Sync { client, stale }),
        4 => (client.clone(), prop::bool::weighted(0.1)).prop_map(|(client, stale)| Step::Heartbeat { client, stale }),
        1 => (client.clone(), client.clone()).prop_map(|(client, other)| Step::Leave { client, other }),
        2 => (client, prop::bool::weighted(0.2)).prop_map(|(client, stale)| Step::Commit { client, stale }),
        1 => (0..4u8).prop_map(Step::Admin),
        5 => (0..8_000u32).prop_map(Step::Wait),
        1 => Just(Step::Restart),
    ]
}

#[derive(Default)]
struct Clients {
    /// Member id and generation of each client.
    known: Vec<(Str, i32)>,
    asked: BTreeMap<RequestId, usize>,
    /// Leader of each generation, as told to members since the last restart.
    leaders: BTreeMap<i32, Str>,
    /// Generations that were recorded with an assignment.
    written: BTreeSet<i32>,
    /// Assignments of each generation, by member, as stored.
    assignments: BTreeMap<i32, BTreeMap<Str, Bytes>>,
}

impl Clients {
    fn request(&self, step: &Step) -> Option<(usize, Request)> {
        let group_id = Str::from_static("g");
        let who = |client: usize, stale: bool| {
            let (member_id, generation) = self.known[client].clone();
            (member_id, if stale { generation - 1 } else { generation })
        };
        Some(match *step {
            Step::Join { client, version, is_static, protocols, forget } => {
                let member_id = if forget { Str::new() } else { self.known[client].0.clone() };
                (client, join(client, version, is_static, protocols, member_id))
            }
            Step::Sync { client, stale } => {
                let (member_id, generation_id) = who(client, stale);
                let assignment = |(it, _): &(Str, i32)| SyncGroupRequestAssignment {
                    member_id: it.clone(),
                    assignment: Bytes::from(format!("{it} by {member_id}")),
                };
                let assignments = self.known.iter().map(assignment).collect();
                let member_id = member_id.clone();
                let body = SyncGroupRequest {
                    group_id,
                    generation_id,
                    member_id,
                    assignments,
                    ..Default::default()
                };
                (client, Request::Sync(body))
            }
            Step::Heartbeat { client, stale } => {
                let (member_id, generation_id) = who(client, stale);
                let body = HeartbeatRequest { group_id, generation_id, member_id, group_instance_id: None };
                (client, Request::Heartbeat(body))
            }
            Step::Leave { client, other } => {
                let one =
                    |it: usize| MemberIdentity { member_id: self.known[it].0.clone(), ..Default::default() };
                (client, Request::Leave { group_id, members: vec![one(client), one(other)] })
            }
            Step::Commit { client, stale } => {
                let (member_id, generation) = who(client, stale);
                let partition = OffsetCommitRequestPartition { committed_offset: 1, ..Default::default() };
                let topic = OffsetCommitRequestTopic {
                    name: "t".into(),
                    partitions: vec![partition],
                    ..Default::default()
                };
                let generation_id_or_member_epoch = generation;
                let topics = vec![topic];
                let body = OffsetCommitRequest {
                    group_id,
                    member_id,
                    generation_id_or_member_epoch,
                    topics,
                    ..Default::default()
                };
                (client, Request::OffsetCommit { version: 9, body })
            }
            Step::Admin(0) => (0, Request::Delete { groups: vec![group_id] }),
            Step::Admin(1) => (0, Request::Describe { version: 6, groups: vec![group_id] }),
            Step::Admin(_) => (0, Request::List { states: vec![], types: vec![] }),
            Step::Wait(_) | Step::Restart => return None,
        })
    }

    /// Takes note of what was decided, and checks it.
    fn listen(&mut self, decision: &Decision) {
        for record in &decision.records {
            match record {
                Record::GroupMetadata { value: None, .. } => {
                    self.assignments.clear();
                    self.leaders.clear();
                    self.written.clear();
                }
                Record::GroupMetadata { value: Some(value), .. } if !value.members.is_empty() => {
                    let assigned = value.members.iter().map(|it| it.assignment.clone());
                    let mut writers = assigned.clone().filter_map(|it| {
                        let text = String::from_utf8(it.to_vec()).expect("text");
                        text.split_once(" by ").map(|(_, leader)| leader.to_owned())
                    });
                    let first = writers.next();
                    assert!(writers.all(|it| Some(it) == first), "one member assigns a generation");
                    // A static member that is replaced, maybe after a restart, writes its generation again.
                    if self.written.insert(value.generation) {
                        let leader = value.leader.as_deref();
                        assert!(
                            first.is_none() || first.as_deref() == leader,
                            "the leader assigns a generation"
                        );
                    }
                    let members =
                        value.members.iter().map(|it| (it.member_id.clone(), it.assignment.clone()));
                    let members: BTreeMap<Str, Bytes> = members.collect();
                    if let Some(before) = self.assignments.insert(value.generation, members) {
                        // Only a static member that was replaced writes a generation again.
                        let (mut old, mut new): (Vec<_>, Vec<_>) =
                            (before.into_values().collect(), assigned.collect());
                        old.sort_unstable();
                        new.sort_unstable();
                        assert_eq!(old, new, "a generation is assigned once");
                    }
                }
                _ => {}
            }
        }
        for (id, reply) in &decision.replies {
            let client = self.asked.remove(id).expect("asked by somebody");
            let Reply::Join(response) = reply else { continue };
            if !response.member_id.is_empty() {
                self.known[client] = (response.member_id.clone(), response.generation_id);
            }
            if response.error_code == 0 && !response.members.is_empty() && !response.skip_assignment {
                assert_eq!(
                    response.leader, response.member_id,
                    "only the leader is told who the members are"
                );
                let leader = self.leaders.insert(response.generation_id, response.leader.clone());
                assert!(leader.is_none_or(|it| it == response.leader), "a generation has one leader");
            }
        }
    }
}

fn join(client: usize, version: i16, is_static: bool, protocols: u8, member_id: Str) -> Request {
    let one = |name: &'static str| JoinGroupRequestProtocol { name: name.into(), metadata: Bytes::new() };
    let protocols = match protocols {
        0 => vec![one("range"), one("rr")],
        1 => vec![one("rr"), one("range")],
        2 => vec![one("range")],
        _ => vec![one("rr")],
    };
    let instance_id = is_static.then(|| Str::from(format!("i{client}")));
    let body = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 6_000 + 1_000 * client as i32,
        rebalance_timeout_ms: 9_000,
        member_id,
        group_instance_id: instance_id,
        protocol_type: "consumer".into(),
        protocols,
        reason: None,
    };
    Request::Join { version, client: Client { id: format!("c{client}").into(), host: "/h".into() }, body }
}

fn run(steps: &[Step]) {
    let config = GroupConfig { members_max: 4, pending_members_max: 3, ..GroupConfig::default() };
    let mut stage = Stage::new(config);
    let mut clients = Clients { known: vec![(Str::new(), -1); CLIENTS], ..Default::default() };
    for step in steps {
        match step {
            Step::Wait(ms) => wait(&mut stage, &mut clients, i64::from(*ms)),
            Step::Restart => {
                clients.asked.clear();
                clients.leaders.clear();
                clients.assignments.clear();
                let decision = stage.restart();
                clients.listen(&decision);
            }
            step => {
                if let Some((client, request)) = clients.request(step) {
                    // The answer may be in the decision itself, so the next id is noted before it is made.
                    let (id, decision) = stage.request(request);
                    clients.asked.insert(id, client);
                    clients.listen(&decision);
                }
            }
        }
        assert_eq!(stage.replayed(), stage.groups, "replaying the log gives the live state");
    }
    // Nobody sends any more: sessions and rebalances end, and with them every parked request.
    wait(&mut stage, &mut clients, 60 * 60 * 1_000);
    assert_eq!(stage.unanswered.len(), 0, "every request is answered in the end");
    assert!(stage.soft.live.is_empty(), "silent members are out");
}

fn wait(stage: &mut Stage, clients: &mut Clients, ms: i64) {
    let until_ms = stage.now_ms + ms;
    while let Some(decision) = stage.next_timer(until_ms) {
        clients.listen(&decision);
    }
    stage.now_ms = until_ms;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_coordinator_keeps_its_word(steps in prop::collection::vec(step(), 1..120)) {
        run(&steps);
    }
}
