//! LeaveGroup: members go, by their own id or (an administrator removes them) by instance id.

use protocol::messages::leave_group_request::MemberIdentity;
use protocol::messages::leave_group_response::MemberResponse;
use protocol::{ErrorCode, Str};

use super::membership::Membership;
use super::message::{Reply, RequestId};
use super::turn::Turn;

impl Turn<'_> {
    pub(super) fn leave(&mut self, request: RequestId, group_id: &Str, members: &[MemberIdentity]) {
        if group_id.is_empty() {
            return self.fail(request, ErrorCode::InvalidGroupId);
        }
        let Some(mut membership) = self.take(group_id) else {
            let unknown = |who: &MemberIdentity| outcome(who, ErrorCode::UnknownMemberId);
            return self.reply(request, Reply::Leave(members.iter().map(unknown).collect()));
        };
        let before = membership.members().len();
        let mut reason = String::from("members left:");
        let mut outcomes = Vec::with_capacity(members.len());
        for who in members {
            let error = self.leave_member(&mut membership, who);
            if error == ErrorCode::None {
                let given = who.reason.as_ref().map_or("no reason given", Str::as_str);
                reason.push_str(&format!(" {} ({given})", who.member_id));
            }
            outcomes.push(outcome(who, error));
        }
        if membership.members().len() < before {
            self.rebalance_or_complete(&mut membership, reason);
        } else {
            self.complete_join_if_due(&mut membership);
        }
        self.keep(membership);
        self.reply(request, Reply::Leave(outcomes));
    }

    fn leave_member(&mut self, membership: &mut Membership, who: &MemberIdentity) -> ErrorCode {
        let instance_id = who.group_instance_id.as_ref();
        let member_id = if who.member_id.is_empty() {
            match instance_id.and_then(|id| membership.static_member(id)) {
                Some(member_id) => member_id.clone(),
                None => return ErrorCode::UnknownMemberId,
            }
        } else {
            if !membership.pending_joins.contains(&who.member_id) {
                match membership.validate(&who.member_id, instance_id) {
                    ErrorCode::None => {}
                    error => return error,
                }
            }
            who.member_id.clone()
        };
        self.cancel_timer(membership.session_timer(&member_id));
        let parked = membership.remove(&member_id);
        self.answer_parked(parked, &Str::new(), ErrorCode::UnknownMemberId);
        ErrorCode::None
    }
}

fn outcome(who: &MemberIdentity, error: ErrorCode) -> MemberResponse {
    MemberResponse {
        member_id: who.member_id.clone(),
        group_instance_id: who.group_instance_id.clone(),
        error_code: error.code(),
    }
}
