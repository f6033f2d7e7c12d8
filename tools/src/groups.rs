//! What a cluster says of its consumer groups: members, what each reads, offsets and lag.

use std::collections::{BTreeMap, BTreeSet};

use protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use protocol::messages::{
    ConsumerProtocolAssignment, DescribeGroupsRequest, DescribeGroupsResponse, FindCoordinatorRequest,
    Message, MetadataRequest, OffsetFetchRequest,
};
use protocol::wire::Decoder;
use protocol::{ErrorCode, Str};
use serde::Serialize;

use crate::client::{Cluster, NEWEST, refused};
use crate::exit::Failure;
use crate::output::{Report, table};
use crate::topics;

/// The newest versions that speak of one consumer group; later ones speak of many.
const FIND_ONE: i16 = 3;
const FETCH_OF_ONE: i16 = 7;

/// Described consumer groups.
#[derive(Debug, Serialize)]
pub(crate) struct Groups {
    pub(crate) groups: Vec<Group>,
}

/// One consumer group.
#[derive(Debug, Serialize)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) coordinator: i32,
    pub(crate) protocol: String,
    pub(crate) members: Vec<Member>,
    pub(crate) offsets: Vec<Offset>,
}

/// One member.
#[derive(Debug, Serialize)]
pub(crate) struct Member {
    pub(crate) member_id: String,
    /// Set for static members (KIP-345).
    pub(crate) instance_id: Option<String>,
    pub(crate) client_id: String,
    pub(crate) host: String,
    /// Partitions by topic.
    pub(crate) assigned: BTreeMap<String, Vec<i32>>,
}

/// How far the consumer group is in one partition.
#[derive(Debug, Serialize)]
pub(crate) struct Offset {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    /// High watermark; absent when the partition has no leader.
    pub(crate) end_offset: Option<i64>,
    /// Records between the two.
    pub(crate) lag: Option<i64>,
}

impl Report for Groups {
    fn text(&self) -> String {
        self.groups.iter().map(Group::text).collect::<Vec<_>>().join("\n\n")
    }
}

impl Group {
    fn text(&self) -> String {
        let head = format!(
            "{} ({}, coordinator {}, protocol {})",
            self.name,
            self.state,
            self.coordinator,
            if self.protocol.is_empty() { "none" } else { &self.protocol }
        );
        let number = |n: Option<i64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
        let offset = |o: &Offset| {
            let cells = [o.topic.clone(), o.partition.to_string(), o.offset.to_string()];
            cells.into_iter().chain([number(o.end_offset), number(o.lag)]).collect()
        };
        let offsets: Vec<Vec<String>> = self.offsets.iter().map(offset).collect();
        let assigned = |m: &Member| {
            let topic = |(topic, partitions): (&String, &Vec<i32>)| {
                let partitions = partitions.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
                format!("{topic}:{partitions}")
            };
            m.assigned.iter().map(topic).collect::<Vec<_>>().join(" ")
        };
        let member = |m: &Member| vec![m.member_id.clone(), m.client_id.clone(), m.host.clone(), assigned(m)];
        let members: Vec<Vec<String>> = self.members.iter().map(member).collect();
        let mut parts = vec![head];
        if offsets.is_empty() {
            parts.push("no offsets are stored".to_owned());
        } else {
            parts.push(table(&["TOPIC", "PARTITION", "OFFSET", "END", "LAG"], &offsets));
        }
        if members.is_empty() {
            parts.push("no members".to_owned());
        } else {
            parts.push(table(&["MEMBER", "CLIENT", "HOST", "ASSIGNED"], &members));
        }
        parts.join("\n")
    }
}

/// Asks where the brokers are.
pub(crate) fn learn_brokers(cluster: &mut Cluster) -> Result<(), Failure> {
    // An empty list asks for no topic at all.
    let request = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
    cluster.metadata(&request).map(drop)
}

/// The broker that coordinates a consumer group.
pub(crate) fn coordinator(cluster: &mut Cluster, name: &str) -> Result<i32, Failure> {
    let request = FindCoordinatorRequest { key: Str::from(name.to_owned()), ..Default::default() };
    let answer = cluster.call_settled(None, &request, FIND_ONE, |answer| answer.error_code)?;
    if answer.error_code == ErrorCode::None.code() {
        return Ok(answer.node_id);
    }
    Err(refused(&format!("coordinator of {name}"), answer.error_code, answer.error_message.as_deref()))
}

/// Members, offsets and lag of the consumer groups of these names.
pub(crate) fn describe(cluster: &mut Cluster, names: &[String]) -> Result<Vec<Group>, Failure> {
    learn_brokers(cluster)?;
    let mut found = Vec::new();
    for name in names {
        let coordinator = coordinator(cluster, name)?;
        let request = DescribeGroupsRequest { groups: vec![Str::from(name.clone())], ..Default::default() };
        let offsets = offsets(cluster, coordinator, name)?;
        let code_of =
            |answer: &DescribeGroupsResponse| answer.groups.first().map_or(0, |group| group.error_code);
        for group in cluster.call_settled(Some(coordinator), &request, NEWEST, code_of)?.groups {
            // Kafka answers "Dead" for a name that it does not know.
            let unknown = &*group.group_state == "Dead" && offsets.is_empty();
            let code = if unknown { ErrorCode::GroupIdNotFound.code() } else { group.error_code };
            if code != ErrorCode::None.code() {
                return Err(refused(&format!("describe {name}"), code, group.error_message.as_deref()));
            }
            found.push(Group {
                name: group.group_id.to_string(),
                state: group.group_state.to_string(),
                coordinator,
                protocol: group.protocol_data.to_string(),
                members: members(&group),
                offsets: Vec::new(),
            });
        }
        if let Some(group) = found.last_mut() {
            group.offsets = offsets;
        }
    }
    add_ends(cluster, &mut found)?;
    Ok(found)
}

fn members(group: &DescribedGroup) -> Vec<Member> {
    let member = |member: &DescribedGroupMember| Member {
        member_id: member.member_id.to_string(),
        instance_id: member.group_instance_id.as_ref().map(ToString::to_string),
        client_id: member.client_id.to_string(),
        host: member.client_host.to_string(),
        assigned: if &*group.protocol_type == "consumer" {
            assigned(member).unwrap_or_default()
        } else {
            BTreeMap::new()
        },
    };
    group.members.iter().map(member).collect()
}

/// What the group's leader assigned, in the consumers' own format: a version, then the message.
fn assigned(member: &DescribedGroupMember) -> Option<BTreeMap<String, Vec<i32>>> {
    let mut decoder = Decoder::new(member.member_assignment.clone());
    let version = decoder.i16().ok()?.min(ConsumerProtocolAssignment::MAX_VERSION);
    let assignment = ConsumerProtocolAssignment::decode(&mut decoder, version).ok()?;
    Some(assignment.assigned_partitions.into_iter().map(|t| (t.topic.to_string(), t.partitions)).collect())
}

fn offsets(cluster: &mut Cluster, coordinator: i32, name: &str) -> Result<Vec<Offset>, Failure> {
    let request =
        OffsetFetchRequest { group_id: Str::from(name.to_owned()), topics: None, ..Default::default() };
    let answer =
        cluster.call_settled(Some(coordinator), &request, FETCH_OF_ONE, |answer| answer.error_code)?;
    if answer.error_code != ErrorCode::None.code() {
        return Err(refused(&format!("offsets of {name}"), answer.error_code, None));
    }
    let mut found = Vec::new();
    for topic in answer.topics {
        for partition in topic.partitions.iter().filter(|p| p.committed_offset >= 0) {
            found.push(Offset {
                topic: topic.name.to_string(),
                partition: partition.partition_index,
                offset: partition.committed_offset,
                end_offset: None,
                lag: None,
            });
        }
    }
    found.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    Ok(found)
}

/// The ends of every partition that some group has an offset in. A topic may be gone, which leaves its ends unknown.
fn add_ends(cluster: &mut Cluster, groups: &mut [Group]) -> Result<(), Failure> {
    let names: BTreeSet<String> =
        groups.iter().flat_map(|g| g.offsets.iter().map(|o| o.topic.clone())).collect();
    if names.is_empty() {
        return Ok(());
    }
    let mut described = topics::find(cluster, &[])?;
    described.retain(|topic| names.contains(&topic.name));
    let ends = topics::high_watermarks(cluster, &described)?;
    for offset in groups.iter_mut().flat_map(|g| &mut g.offsets) {
        offset.end_offset = ends.get(&(offset.topic.clone(), offset.partition)).copied();
        offset.lag = offset.end_offset.map(|end| (end - offset.offset).max(0));
    }
    Ok(())
}
