//! ListGroups, DescribeGroups and DeleteGroups.

use protocol::messages::delete_groups_response::DeletableGroupResult;
use protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use protocol::messages::list_groups_response::ListedGroup;
use protocol::{ErrorCode, Str};

use super::membership::{Member, Membership, State};
use super::message::{Reply, RequestId};
use super::record::Record;
use super::turn::Turn;

/// From this version an unknown consumer group is an error rather than a dead one (KIP-1043).
const VERSION_GROUP_ID_NOT_FOUND: i16 = 6;
/// What ListGroups calls the groups of this protocol.
const TYPE_CLASSIC: &str = "classic";

impl Turn<'_> {
    pub(super) fn list(&mut self, request: RequestId, states: &[Str], types: &[Str]) {
        let lets_through = |filter: &[Str], name: &str| {
            filter.is_empty() || filter.iter().any(|it| it.trim().eq_ignore_ascii_case(name))
        };
        let mut groups = Vec::new();
        for group_id in self.hard.group_ids() {
            let state = self.state(group_id);
            if lets_through(types, TYPE_CLASSIC) && lets_through(states, state.name()) {
                groups.push(ListedGroup {
                    group_id: group_id.clone(),
                    protocol_type: self.protocol_type(group_id).unwrap_or_default(),
                    group_state: Str::from_static(state.name()),
                    group_type: Str::from_static(TYPE_CLASSIC),
                });
            }
        }
        self.reply(request, Reply::List(groups));
    }

    fn protocol_type(&self, group_id: &str) -> Option<Str> {
        match self.soft.live.get(group_id) {
            Some(membership) => membership.protocol_type.clone(),
            None => self.hard.group(group_id)?.protocol_type.clone(),
        }
    }

    pub(super) fn describe(&mut self, request: RequestId, version: i16, groups: &[Str]) {
        let mut described = Vec::with_capacity(groups.len());
        for group_id in groups {
            let group = match self.take(group_id) {
                Some(membership) => {
                    let group = self.describe_group(&membership);
                    self.keep(membership);
                    group
                }
                None => unknown(group_id, version),
            };
            described.push(group);
        }
        self.reply(request, Reply::Describe(described));
    }

    fn describe_group(&self, membership: &Membership) -> DescribedGroup {
        // The protocol, and what members offer under it, counts only once the group has settled on it.
        let is_stable = membership.state() == State::Stable;
        let protocol = membership.protocol.clone().filter(|_| is_stable);
        let member = |(id, member): (&Str, &Member)| DescribedGroupMember {
            member_id: id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client.id.clone(),
            client_host: member.client.host.clone(),
            member_metadata: protocol.as_ref().map(|name| member.metadata(name)).unwrap_or_default(),
            member_assignment: self.hard.assignment(&membership.id, id),
        };
        DescribedGroup {
            group_id: membership.id.clone(),
            group_state: Str::from_static(membership.state().name()),
            protocol_type: membership.protocol_type.clone().unwrap_or_default(),
            members: membership.members().iter().map(member).collect(),
            protocol_data: protocol.clone().unwrap_or_default(),
            ..Default::default()
        }
    }

    pub(super) fn delete(&mut self, request: RequestId, groups: &[Str]) {
        let mut results = Vec::with_capacity(groups.len());
        for group_id in groups {
            let error = match self.state(group_id) {
                State::Dead => ErrorCode::GroupIdNotFound,
                State::Empty => {
                    self.delete_group(group_id);
                    ErrorCode::None
                }
                _ => ErrorCode::NonEmptyGroup,
            };
            results.push(DeletableGroupResult {
                group_id: group_id.clone(),
                error_code: error.code(),
                ..Default::default()
            });
        }
        self.reply(request, Reply::Delete(results));
    }

    /// Removes an empty consumer group with its offsets and the member ids it has handed out.
    fn delete_group(&mut self, group_id: &Str) {
        if let Some(membership) = self.soft.live.remove(group_id) {
            for member_id in &membership.pending_joins {
                self.cancel_timer(membership.session_timer(member_id));
            }
        }
        for (topic, partitions) in self.hard.offsets(group_id).into_iter().flatten() {
            for partition in partitions.keys() {
                self.forget_offset(group_id, topic, *partition);
            }
        }
        if self.hard.group(group_id).is_some() {
            self.record(Record::GroupMetadata { group_id: group_id.clone(), value: None });
        }
    }
}

fn unknown(group_id: &Str, version: i16) -> DescribedGroup {
    let mut group = DescribedGroup {
        group_id: group_id.clone(),
        group_state: Str::from_static(State::Dead.name()),
        ..Default::default()
    };
    if version >= VERSION_GROUP_ID_NOT_FOUND {
        group.error_code = ErrorCode::GroupIdNotFound.code();
        group.error_message = Some(Str::from(format!("There is no consumer group {group_id}.")));
    }
    group
}
