//! JoinGroup: a member enters its consumer group, comes back, or replaces its former self.
//!
//! A dynamic member first learns its id (KIP-394) and joins with it; a static member is known by its instance id
//! (KIP-345), and a restart takes over its place without a rebalance where nothing else changes.

use protocol::messages::join_group_request::JoinGroupRequest;
use protocol::{ErrorCode, Str};

use super::membership::{Member, Membership, Protocol, State};
use super::message::{Client, Reply, RequestId};
use super::rebalance::{current_generation, join_failed};
use super::turn::Turn;

/// From this version a member without an id is given one and asked to join again.
const VERSION_MEMBER_ID_REQUIRED: i16 = 4;
/// From this version a leader can be told not to assign.
const VERSION_SKIP_ASSIGNMENT: i16 = 9;
/// A member that does not know its id yet cannot send heartbeats: so long it may wait for its first generation.
const NEW_MEMBER_JOIN_TIMEOUT_MS: i32 = 5 * 60 * 1_000;
/// Strings of stored records have an int16 length, and 37 characters make a member id of a client id.
const MEMBER_ID_PREFIX_MAX_BYTES: usize = i16::MAX as usize - 37;

/// One JoinGroup request.
#[derive(Clone, Copy)]
struct Join<'a> {
    request: RequestId,
    version: i16,
    client: &'a Client,
    body: &'a JoinGroupRequest,
}

impl Join<'_> {
    fn reason(&self, what: &str) -> String {
        let given = self.body.reason.as_ref().map_or("not provided", Str::as_str);
        format!("{what}; client reason: {given}")
    }
}

impl Turn<'_> {
    pub(super) fn join(
        &mut self,
        request: RequestId,
        version: i16,
        client: &Client,
        body: &JoinGroupRequest,
    ) {
        let existed = self.exists(&body.group_id);
        let is_unknown = body.member_id.is_empty();
        let mut error = self.check_join(client, body);
        if error == ErrorCode::None && !existed {
            error = match is_unknown {
                false => ErrorCode::UnknownMemberId,
                true if !self.has_room() => ErrorCode::CoordinatorNotAvailable,
                true => ErrorCode::None,
            };
        }
        if error != ErrorCode::None {
            return self.reply(request, join_failed(&body.member_id, error));
        }

        let taken = self.take(&body.group_id);
        let mut membership = taken.unwrap_or_else(|| Membership::new(&body.group_id, None, self.now_ms));
        let join = Join { request, version, client, body };
        if !self.accepts(&membership, &body.member_id) {
            self.cancel_timer(membership.session_timer(&body.member_id));
            let parked = membership.remove(&body.member_id);
            self.answer_parked(parked, &Str::new(), ErrorCode::UnknownMemberId);
            self.reply(request, join_failed(&Str::new(), ErrorCode::GroupMaxSizeReached));
            self.complete_join_if_due(&mut membership);
        } else if is_unknown {
            self.join_new(&mut membership, join);
        } else {
            self.join_known(&mut membership, join);
        }
        if !existed && !membership.is_idle() {
            // A new consumer group is stored at once, so that it is there when its member asks again after a restart.
            self.record(Membership::new(&membership.id, None, self.now_ms).to_record(|_| None));
        }
        self.keep(membership);
    }

    /// NONE when the request is within the limits, whoever sends it.
    fn check_join(&self, client: &Client, body: &JoinGroupRequest) -> ErrorCode {
        let config = &self.hard.config;
        let sessions = config.session_timeout_min_ms..=config.session_timeout_max_ms;
        let metadata_bytes: usize = body.protocols.iter().map(|it| it.name.len() + it.metadata.len()).sum();
        let instance_bytes = body.group_instance_id.as_ref().map_or(0, |id| id.len());
        if body.group_id.is_empty() {
            ErrorCode::InvalidGroupId
        } else if !sessions.contains(&body.session_timeout_ms) {
            ErrorCode::InvalidSessionTimeout
        } else if metadata_bytes > config.member_metadata_max_bytes
            || client.id.len().max(instance_bytes) > MEMBER_ID_PREFIX_MAX_BYTES
        {
            ErrorCode::InvalidRequest
        } else {
            ErrorCode::None
        }
    }

    /// Whether there is room. While members join, those who wait count, so that the last to rejoin are left out when
    /// the limit was lowered.
    fn accepts(&self, membership: &Membership, member_id: &str) -> bool {
        let members_max = self.hard.config.members_max;
        let member = membership.members().get(member_id);
        match membership.state() {
            State::Empty | State::Dead => true,
            State::PreparingRebalance => {
                member.is_some_and(Member::is_joining) || membership.joining_count() < members_max
            }
            State::CompletingRebalance | State::Stable => {
                member.is_some() || membership.members().len() < members_max
            }
        }
    }

    fn join_new(&mut self, membership: &mut Membership, join: Join<'_>) {
        let Join { request, version, client, body } = join;
        if !membership.supports(&body.protocol_type, &body.protocols) {
            return self.reply(request, join_failed(&Str::new(), ErrorCode::InconsistentGroupProtocol));
        }
        if let Some(instance_id) = &body.group_instance_id {
            let member_id = self.new_member_id(instance_id);
            match membership.static_member(instance_id).cloned() {
                Some(old_id) => self.replace_static_member(membership, join, &old_id, &member_id),
                None => self.add_member(membership, join, &member_id),
            }
            return;
        }
        let member_id = self.new_member_id(&client.id);
        if version < VERSION_MEMBER_ID_REQUIRED {
            return self.add_member(membership, join, &member_id);
        }
        if membership.pending_joins.len() >= self.hard.config.pending_members_max {
            return self.reply(request, join_failed(&Str::new(), ErrorCode::GroupMaxSizeReached));
        }
        membership.pending_joins.insert(member_id.clone());
        self.set_timer(membership.session_timer(&member_id), body.session_timeout_ms);
        self.reply(request, join_failed(&member_id, ErrorCode::MemberIdRequired));
    }

    fn join_known(&mut self, membership: &mut Membership, join: Join<'_>) {
        let Join { request, body, .. } = join;
        let member_id = &body.member_id;
        if !membership.supports(&body.protocol_type, &body.protocols) {
            return self.reply(request, join_failed(member_id, ErrorCode::InconsistentGroupProtocol));
        }
        if membership.pending_joins.contains(member_id) && body.group_instance_id.is_none() {
            return self.add_member(membership, join, member_id);
        }
        let error = membership.validate(member_id, body.group_instance_id.as_ref());
        if error != ErrorCode::None {
            return self.reply(request, join_failed(member_id, error));
        }

        let is_leader = membership.is_leader(member_id);
        let same = membership.members().get(member_id).is_some_and(|member| member.matches(&body.protocols));
        let reason = match membership.state() {
            State::PreparingRebalance => "a member joins during the rebalance",
            // It may have missed the response to its join.
            State::CompletingRebalance if same => {
                let response = current_generation(membership, member_id, is_leader);
                return self.reply(request, Reply::Join(response));
            }
            // What the leader assigns may depend on more than the members' metadata, such as numbers of partitions.
            State::Stable if is_leader => "the leader joins again",
            State::Stable if same => {
                let response = current_generation(membership, member_id, false);
                return self.reply(request, Reply::Join(response));
            }
            State::CompletingRebalance | State::Stable => "a member's metadata changed",
            State::Empty | State::Dead => {
                return self.reply(request, join_failed(member_id, ErrorCode::UnknownMemberId));
            }
        };
        self.update_member(membership, join, member_id);
        self.rebalance_or_complete(membership, join.reason(reason));
    }

    fn add_member(&mut self, membership: &mut Membership, join: Join<'_>, member_id: &Str) {
        let Join { request, client, body, .. } = join;
        let protocols = Protocol::from_request(&body.protocols);
        let mut member = Member::new(body.group_instance_id.as_ref(), client, protocols);
        member.rebalance_timeout_ms = body.rebalance_timeout_ms;
        member.session_timeout_ms = body.session_timeout_ms;
        member.is_new = true;
        if membership.members().is_empty() {
            membership.protocol_type = Some(body.protocol_type.detached());
        }
        if let Some(initial) = &mut membership.initial {
            initial.joined_meanwhile = true;
        }
        membership.add(member_id, member);
        let superseded = membership.park_join(member_id, request);
        assert!(superseded.is_none(), "a new member has no parked join");
        self.set_timer(membership.session_timer(member_id), NEW_MEMBER_JOIN_TIMEOUT_MS);
        self.rebalance_or_complete(membership, join.reason("a new member joins"));
    }

    /// Takes over what the member offers now and parks its join.
    fn update_member(&mut self, membership: &mut Membership, join: Join<'_>, member_id: &Str) {
        let body = join.body;
        membership.set_protocols(member_id, Protocol::from_request(&body.protocols));
        if let Some(member) = membership.member_mut(member_id) {
            member.rebalance_timeout_ms = body.rebalance_timeout_ms;
            member.session_timeout_ms = body.session_timeout_ms;
        }
        if let Some(superseded) = membership.park_join(member_id, join.request) {
            // Only a client that gave up on its former request sends another one.
            self.reply(superseded, join_failed(member_id, ErrorCode::RebalanceInProgress));
        }
    }

    /// A static member is back under a new id: the old one is fenced, and the group goes on where it can.
    fn replace_static_member(
        &mut self,
        membership: &mut Membership,
        join: Join<'_>,
        old_id: &Str,
        new_id: &Str,
    ) {
        let Join { request, version, .. } = join;
        let old_leader = membership.leader.clone().unwrap_or_default();
        self.cancel_timer(membership.session_timer(old_id));
        let fenced = membership.replace_static(old_id, new_id);
        self.answer_parked(fenced, old_id, ErrorCode::FencedInstanceId);
        self.update_member(membership, join, new_id);
        self.renew_session(membership, new_id);

        match membership.state() {
            State::Stable if membership.protocol.as_ref() == Some(&membership.select_protocol()) => {
                let parked = membership.take_join(new_id);
                assert_eq!(parked, Some(request), "the join parked above");
                let stored = |member_id: &Str| {
                    let owner = if member_id == new_id { old_id } else { member_id };
                    Some(self.hard.assignment(&membership.id, owner))
                };
                let record = membership.to_record(stored);
                self.record(record);
                // The leader is told that it leads, for it watches the topics, but not to assign anew (KIP-814).
                let can_skip = version >= VERSION_SKIP_ASSIGNMENT;
                let skip_assignment = can_skip && membership.is_leader(new_id);
                let mut response = current_generation(membership, new_id, skip_assignment);
                response.skip_assignment = skip_assignment;
                if !can_skip {
                    response.leader = old_leader;
                }
                self.reply(request, Reply::Join(response));
            }
            State::Stable => {
                self.rebalance_or_complete(membership, join.reason("a static member changed the protocol"));
            }
            // The leader may be assigning to the old id already.
            State::CompletingRebalance => {
                self.prepare_rebalance(membership, join.reason("a static member was replaced"));
            }
            State::PreparingRebalance => self.complete_join_if_due(membership),
            State::Empty | State::Dead => unreachable!("a group with a static member is not empty"),
        }
    }
}
