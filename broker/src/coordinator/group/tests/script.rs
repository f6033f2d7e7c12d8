//! A small language for conversations with a coordinator. A script is commands, each followed by the lines, marked `>`,
//! that must come of it; [`check`] runs the commands and compares.
//!
//! Commands (a name stands for a client, which remembers its member id and generation):
//! `join NAME [KEY=VALUE]…` (v, instance, protos, session, rebalance, member, type), `sync NAME [MEMBER=ASSIGNMENT]…`,
//! `heartbeat NAME`, `leave NAME…`, `remove INSTANCE`, `commit NAME TOPIC-PARTITION=OFFSET`, `wait MS`, `restart`,
//! `describe`, `list [STATE]`, `delete`. `gen=N` and `member=ID` override what a client remembers. `group=G` names
//! the group, otherwise `g`.
//!
//! Lines: `store …`, `forget …` for records; `rebalance: …`; `NAME: …` for the answer to that client.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;
use protocol::messages::heartbeat_request::HeartbeatRequest;
use protocol::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use protocol::messages::join_group_response::JoinGroupResponse;
use protocol::messages::leave_group_request::MemberIdentity;
use protocol::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use protocol::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use protocol::{ErrorCode, Str};

use super::super::{Client, Decision, GroupConfig, Record, Reply, Request, RequestId};
use super::stage::Stage;

/// Runs a script with Kafka's default limits.
#[track_caller]
pub(super) fn check(script: &str) {
    check_with(GroupConfig::default(), script);
}

/// Runs a script with other limits.
#[track_caller]
pub(super) fn check_with(config: GroupConfig, script: &str) {
    let mut talk = Talk::new(config);
    let mut said = String::new();
    let wanted: Vec<&str> = script.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    for command in wanted.iter().filter(|line| !line.starts_with('>')) {
        let _ = writeln!(said, "{command}");
        for answer in talk.run(command) {
            let _ = writeln!(said, "> {}", answer.trim_end());
        }
    }
    let wanted = wanted.join("\n") + "\n";
    assert_eq!(talk.stage.replayed(), talk.stage.groups, "replaying the log gives the same state");
    assert!(said == wanted, "the conversation went otherwise:\n{said}\nwanted:\n{wanted}");
}

/// A conversation.
struct Talk {
    stage: Stage,
    /// Member id and generation that each client knows.
    clients: BTreeMap<String, (String, i32)>,
    asked: BTreeMap<RequestId, String>,
}

/// The words of a command, `KEY=VALUE` apart from the rest.
struct Words<'a> {
    plain: Vec<&'a str>,
    keyed: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        let (keyed, plain): (Vec<_>, Vec<_>) = line.split_whitespace().partition(|word| word.contains('='));
        Self { plain, keyed: keyed.into_iter().filter_map(|word| word.split_once('=')).collect() }
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.keyed.iter().find(|(it, _)| *it == key).map(|(_, value)| *value)
    }

    fn number(&self, key: &str, default: i32) -> i32 {
        self.get(key).map_or(default, |value| value.parse().expect("a number"))
    }

    fn text(&self, key: &str, default: &str) -> Str {
        Str::from(self.get(key).unwrap_or(default))
    }
}

impl Talk {
    fn new(config: GroupConfig) -> Self {
        Self { stage: Stage::new(config), clients: BTreeMap::new(), asked: BTreeMap::new() }
    }

    fn run(&mut self, line: &str) -> Vec<String> {
        let words = Words::new(line);
        let name = words.plain.get(1).copied().unwrap_or("admin");
        match words.plain[0] {
            "wait" => {
                let until_ms = self.stage.now_ms + name.parse::<i64>().expect("milliseconds");
                let mut lines = Vec::new();
                while let Some(decision) = self.stage.next_timer(until_ms) {
                    lines.extend(self.tell(&decision));
                }
                self.stage.now_ms = until_ms;
                lines
            }
            "restart" => {
                self.asked.clear();
                let decision = self.stage.restart();
                self.tell(&decision)
            }
            command => {
                let request = self.request(command, name, &words);
                let (id, decision) = self.stage.request(request);
                self.asked.insert(id, name.to_owned());
                self.tell(&decision)
            }
        }
    }

    fn request(&self, command: &str, name: &str, words: &Words<'_>) -> Request {
        let group_id = words.text("group", "g");
        let (member_id, generation) = self.clients.get(name).cloned().unwrap_or((String::new(), -1));
        let member_id = words.text("member", &member_id);
        let generation_id = words.number("gen", generation);
        let group_instance_id = words.get("instance").map(Str::from);
        match command {
            "join" => join(name, group_id, member_id, words),
            "sync" => {
                let mine = words
                    .keyed
                    .iter()
                    .filter(|(key, _)| !["gen", "member", "instance", "group"].contains(key));
                let assignments = mine.map(|(member, assignment)| SyncGroupRequestAssignment {
                    member_id: self.member_id(member),
                    assignment: Bytes::copy_from_slice(assignment.as_bytes()),
                });
                let assignments = assignments.collect();
                Request::Sync(SyncGroupRequest {
                    group_id,
                    member_id,
                    generation_id,
                    group_instance_id,
                    assignments,
                    ..Default::default()
                })
            }
            "heartbeat" => {
                Request::Heartbeat(HeartbeatRequest { group_id, member_id, generation_id, group_instance_id })
            }
            "leave" => {
                let who =
                    |name: &&str| MemberIdentity { member_id: self.member_id(name), ..Default::default() };
                Request::Leave { group_id, members: words.plain[1..].iter().map(who).collect() }
            }
            "remove" => {
                let group_instance_id = Some(Str::from(name));
                let who = MemberIdentity { group_instance_id, ..Default::default() };
                Request::Leave { group_id, members: vec![who] }
            }
            "commit" => {
                let topics = vec![commit_topic(words)];
                let body = OffsetCommitRequest {
                    group_id,
                    member_id,
                    generation_id_or_member_epoch: generation_id,
                    group_instance_id,
                    topics,
                    ..Default::default()
                };
                Request::OffsetCommit { version: words.number("v", 9) as i16, body }
            }
            "describe" => Request::Describe { version: 6, groups: vec![group_id] },
            "list" => Request::List {
                states: words.plain[1..].iter().map(|it| Str::from(*it)).collect(),
                types: vec![],
            },
            "delete" => Request::Delete { groups: vec![group_id] },
            other => panic!("no command {other}"),
        }
    }

    fn member_id(&self, name: &str) -> Str {
        Str::from(self.clients.get(name).map_or(name, |(member_id, _)| member_id))
    }

    /// The client that a member id belongs to.
    fn client(&self, member_id: &str) -> String {
        let owner = self.clients.iter().find(|(_, (id, _))| id == member_id);
        owner.map_or_else(|| format!("?{member_id}"), |(name, _)| name.clone())
    }

    fn tell(&mut self, decision: &Decision) -> Vec<String> {
        // A client learns its member id before anything that names it is told.
        for (id, reply) in &decision.replies {
            if let Reply::Join(response) = reply {
                self.learn(*id, response);
            }
        }
        let mut lines: Vec<String> =
            decision.rebalances.iter().map(|it| self.tell_reason(&it.reason)).collect();
        lines.extend(decision.records.iter().map(|record| self.tell_record(record)));
        for (id, reply) in &decision.replies {
            let name = self.asked.get(id).cloned().unwrap_or_default();
            lines.push(format!("{name}: {}", self.tell_reply(reply)));
        }
        lines
    }

    fn learn(&mut self, id: RequestId, response: &JoinGroupResponse) {
        let (Some(name), false) = (self.asked.get(&id), response.member_id.is_empty()) else { return };
        self.clients.insert(name.clone(), (response.member_id.to_string(), response.generation_id));
    }

    /// A reason, with names in the place of member ids.
    fn tell_reason(&self, reason: &str) -> String {
        let named = |text: String, (name, (id, _)): (&String, &(String, i32))| text.replace(id, name);
        format!("rebalance: {}", self.clients.iter().fold(reason.to_owned(), named))
    }

    fn tell_record(&self, record: &Record) -> String {
        match record {
            Record::GroupMetadata { value: None, group_id } => format!("forget {group_id}"),
            Record::GroupMetadata { value: Some(value), .. } => {
                let member = |it: &protocol::messages::group_metadata_value::MemberMetadata| {
                    format!("{}={}", self.client(&it.member_id), String::from_utf8_lossy(&it.assignment))
                };
                let members: Vec<String> = value.members.iter().map(member).collect();
                let protocol = value.protocol.as_ref().map_or("-", Str::as_str);
                format!("store gen {} {protocol} [{}]", value.generation, members.join(" "))
            }
            Record::Offset { topic, partition, value: None, .. } => format!("forget {topic}-{partition}"),
            Record::Offset { topic, partition, value: Some(value), .. } => {
                format!("store {topic}-{partition}={}", value.offset)
            }
        }
    }

    fn tell_reply(&self, reply: &Reply) -> String {
        match reply {
            Reply::Join(response) if response.error_code != 0 => error(response.error_code),
            Reply::Join(response) => {
                let members: Vec<String> =
                    response.members.iter().map(|it| self.client(&it.member_id)).collect();
                let leader = self.client(&response.leader);
                let protocol = response.protocol_name.as_ref().map_or("-", Str::as_str);
                let skip = if response.skip_assignment { " skip" } else { "" };
                let generation = response.generation_id;
                format!("joined gen {generation} {protocol} leader {leader} [{}]{skip}", members.join(" "))
            }
            Reply::Sync(response) if response.error_code != 0 => error(response.error_code),
            Reply::Sync(response) => format!("assigned {}", String::from_utf8_lossy(&response.assignment)),
            Reply::Heartbeat => "ok".to_owned(),
            Reply::Failed(code) => code.name().to_owned(),
            Reply::Leave(members) => {
                let outcomes: Vec<String> = members.iter().map(|it| error(it.error_code)).collect();
                outcomes.join(" ")
            }
            Reply::OffsetCommit(response) => {
                let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
                partitions.map(|it| error(it.error_code)).collect::<Vec<_>>().join(" ")
            }
            Reply::Describe(groups) => {
                let one = |it: &protocol::messages::describe_groups_response::DescribedGroup| {
                    let member = |it: &protocol::messages::describe_groups_response::DescribedGroupMember| {
                        format!(
                            "{}={}",
                            self.client(&it.member_id),
                            String::from_utf8_lossy(&it.member_assignment)
                        )
                    };
                    let members: Vec<String> = it.members.iter().map(member).collect();
                    format!("{} {} [{}]", it.group_state, it.protocol_data, members.join(" "))
                };
                groups.iter().map(one).collect::<Vec<_>>().join("; ")
            }
            Reply::List(groups) => {
                let one = |it: &protocol::messages::list_groups_response::ListedGroup| {
                    format!("{} {} {} {}", it.group_id, it.protocol_type, it.group_state, it.group_type)
                };
                groups.iter().map(one).collect::<Vec<_>>().join("; ")
            }
            Reply::Delete(results) => {
                results.iter().map(|it| error(it.error_code)).collect::<Vec<_>>().join(" ")
            }
            Reply::OffsetFetch(_) | Reply::OffsetDelete(_) => panic!("no command asks for {reply:?}"),
        }
    }
}

fn join(name: &str, group_id: Str, member_id: Str, words: &Words<'_>) -> Request {
    let protocol = |text: &str| {
        // `NAME` or `NAME/METADATA`.
        let (name, metadata) = text.split_once('/').unwrap_or((text, ""));
        JoinGroupRequestProtocol { name: name.into(), metadata: Bytes::copy_from_slice(metadata.as_bytes()) }
    };
    let protocols = words.get("protos").unwrap_or("range");
    let body = JoinGroupRequest {
        group_id,
        session_timeout_ms: words.number("session", 10_000),
        rebalance_timeout_ms: words.number("rebalance", 60_000),
        member_id,
        group_instance_id: words.get("instance").map(Str::from),
        protocol_type: words.text("type", "consumer"),
        protocols: protocols.split(',').filter(|it| !it.is_empty()).map(protocol).collect(),
        reason: words.get("reason").map(Str::from),
    };
    let client = Client { id: Str::from(name), host: Str::from_static("/127.0.0.1") };
    Request::Join { version: words.number("v", 9) as i16, client, body }
}

/// The topic of `TOPIC-PARTITION=OFFSET`.
fn commit_topic(words: &Words<'_>) -> OffsetCommitRequestTopic {
    let (place, offset) = words.keyed.iter().find(|(key, _)| key.contains('-')).expect("a partition");
    let (topic, partition) = place.split_once('-').expect("topic and partition");
    let partition = OffsetCommitRequestPartition {
        partition_index: partition.parse().expect("a partition"),
        committed_offset: offset.parse().expect("an offset"),
        ..Default::default()
    };
    OffsetCommitRequestTopic { name: topic.into(), partitions: vec![partition], ..Default::default() }
}

fn error(code: i16) -> String {
    ErrorCode::from_code(code).expect("a known error").name().to_owned()
}
