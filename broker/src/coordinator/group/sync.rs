//! SyncGroup: the leader hands in the assignment, every member fetches its own.

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::messages::group_metadata_value::{GroupMetadataValue, MemberMetadata};
use protocol::messages::sync_group_request::SyncGroupRequest;
use protocol::messages::sync_group_response::SyncGroupResponse;
use protocol::{ErrorCode, Str};

use super::membership::{Member, Membership, State};
use super::message::{Reply, RequestId, Timer};
use super::rebalance::sync_failed;
use super::record::Record;
use super::turn::Turn;

impl Turn<'_> {
    pub(super) fn sync(&mut self, request: RequestId, body: &SyncGroupRequest) {
        if body.group_id.is_empty() {
            return self.reply(request, sync_failed(ErrorCode::InvalidGroupId));
        }
        let Some(mut membership) = self.soft.live.remove(&body.group_id) else {
            return self.reply(request, sync_failed(ErrorCode::UnknownMemberId));
        };
        let error = check_sync(&membership, body);
        if error == ErrorCode::None {
            self.sync_member(&mut membership, request, body);
        } else {
            self.reply(request, sync_failed(error));
        }
        self.keep(membership);
    }

    fn sync_member(&mut self, membership: &mut Membership, request: RequestId, body: &SyncGroupRequest) {
        let member_id = &body.member_id;
        membership.pending_syncs.remove(member_id);
        if membership.pending_syncs.is_empty() {
            self.cancel_timer(Timer::Sync(membership.id.clone()));
        }
        if membership.state() == State::Stable {
            let assignment = self.hard.assignment(&membership.id, member_id);
            return self.reply(request, assigned(membership, assignment));
        }
        if let Some(superseded) = membership.park_sync(member_id, request) {
            self.reply(superseded, sync_failed(ErrorCode::RebalanceInProgress));
        }
        if membership.is_leader(member_id) {
            let assignments = body.assignments.iter().map(|it| (&it.member_id, &it.assignment)).collect();
            self.store_assignment(membership, &assignments);
        }
    }

    /// Stores the generation with its assignments and answers all who wait. Members that the leader forgot get an
    /// empty assignment.
    fn store_assignment(&mut self, membership: &mut Membership, assignments: &BTreeMap<&Str, &Bytes>) {
        let assignment = |member_id: &Str| assignments.get(member_id).map(|bytes| Bytes::clone(bytes));
        let record = membership.to_record(assignment);
        let value_bytes = record.encode().map(|(_, value)| value.map_or(0, |value| value.len()));
        if value_bytes.is_ok_and(|bytes| bytes <= self.hard.config.record_max_bytes) {
            self.record(record);
            membership.move_to(State::Stable, self.now_ms);
            let waiting = membership.members().iter().filter(|(_, member)| member.is_syncing());
            for member_id in waiting.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
                if let Some(request) = membership.take_sync(&member_id) {
                    let own = assignment(&member_id).unwrap_or_default();
                    self.reply(request, assigned(membership, own));
                }
                self.renew_session(membership, &member_id);
            }
        } else {
            self.refuse_syncs(membership, ErrorCode::UnknownServerError);
            self.prepare_rebalance(membership, "the assignment is too large to store".to_owned());
        }
    }

    /// The timer of the sync phase: who has not asked by now is out.
    pub(super) fn sync_ended(&mut self, group_id: &str) {
        let Some(mut membership) = self.soft.live.remove(group_id) else { return };
        let waits = matches!(membership.state(), State::CompletingRebalance | State::Stable);
        if waits && !membership.pending_syncs.is_empty() {
            for member_id in membership.pending_syncs.clone() {
                self.cancel_timer(membership.session_timer(&member_id));
                let parked = membership.remove(&member_id);
                self.answer_parked(parked, &Str::new(), ErrorCode::UnknownMemberId);
            }
            self.prepare_rebalance(
                &mut membership,
                "members did not ask for their assignment in time".to_owned(),
            );
        }
        self.keep(membership);
    }
}

/// NONE when this member may ask for its assignment now.
fn check_sync(membership: &Membership, body: &SyncGroupRequest) -> ErrorCode {
    let differs = |given: &Option<Str>, own: &Option<Str>| given.is_some() && given != own;
    match membership.validate(&body.member_id, body.group_instance_id.as_ref()) {
        ErrorCode::None => {}
        error => return error,
    }
    if body.generation_id != membership.generation {
        ErrorCode::IllegalGeneration
    } else if differs(&body.protocol_type, &membership.protocol_type)
        || differs(&body.protocol_name, &membership.protocol)
    {
        ErrorCode::InconsistentGroupProtocol
    } else if membership.state() == State::PreparingRebalance {
        ErrorCode::RebalanceInProgress
    } else {
        ErrorCode::None
    }
}

/// The answer of a SyncGroup.
fn assigned(membership: &Membership, assignment: Bytes) -> Reply {
    Reply::Sync(SyncGroupResponse {
        protocol_type: membership.protocol_type.clone(),
        protocol_name: membership.protocol.clone(),
        assignment,
        ..Default::default()
    })
}

impl Membership {
    /// This generation as it is stored, with `assignment` by member id (`None`: empty).
    pub(super) fn to_record(&self, assignment: impl Fn(&Str) -> Option<Bytes>) -> Record {
        let protocol = self.protocol.clone().unwrap_or_default();
        let member = |(id, member): (&Str, &Member)| MemberMetadata {
            member_id: id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client.id.clone(),
            client_host: member.client.host.clone(),
            rebalance_timeout: member.rebalance_timeout_ms,
            session_timeout: member.session_timeout_ms,
            subscription: member.metadata(&protocol),
            assignment: assignment(id).unwrap_or_default(),
        };
        let value = GroupMetadataValue {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            current_state_timestamp: self.state_since_ms.unwrap_or(-1),
            members: self.members().iter().map(member).collect(),
        };
        Record::GroupMetadata { group_id: self.id.clone(), value: Some(value) }
    }
}
