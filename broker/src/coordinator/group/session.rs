//! Sessions: heartbeats keep a member in its consumer group, silence puts it out.

use protocol::messages::heartbeat_request::HeartbeatRequest;
use protocol::{ErrorCode, Str};

use super::membership::{Member, Membership, State};
use super::message::{Reply, RequestId, Timer};
use super::turn::Turn;

impl Turn<'_> {
    /// Arms the session of every stored member, and the first look for expired offsets.
    pub(super) fn loaded(&mut self) {
        for (group_id, stored) in self.hard.groups().filter(|(_, stored)| !stored.members.is_empty()) {
            let mut membership = Membership::new(group_id, Some(stored), self.now_ms);
            for member_id in stored.members.keys() {
                self.renew_session(&membership, member_id);
            }
            if membership.members().len() > self.hard.config.members_max {
                let reason = "more members are stored than may be".to_owned();
                self.prepare_rebalance(&mut membership, reason);
            }
            self.keep(membership);
        }
        self.schedule_expiry();
    }

    pub(super) fn heartbeat(&mut self, request: RequestId, body: &HeartbeatRequest) {
        if body.group_id.is_empty() {
            return self.fail(request, ErrorCode::InvalidGroupId);
        }
        let Some(membership) = self.soft.live.remove(&body.group_id) else {
            return self.fail(request, ErrorCode::UnknownMemberId);
        };
        let error = match membership.validate(&body.member_id, body.group_instance_id.as_ref()) {
            ErrorCode::None if body.generation_id != membership.generation => ErrorCode::IllegalGeneration,
            error => error,
        };
        if error == ErrorCode::None {
            self.renew_session(&membership, &body.member_id);
        }
        match error {
            ErrorCode::None if membership.state() == State::PreparingRebalance => {
                self.fail(request, ErrorCode::RebalanceInProgress);
            }
            ErrorCode::None => self.reply(request, Reply::Heartbeat),
            error => self.fail(request, error),
        }
        self.keep(membership);
    }

    /// The session of a member ended.
    pub(super) fn session_ended(&mut self, group_id: &str, member_id: &Str) {
        let Some(mut membership) = self.soft.live.remove(group_id) else { return };
        // A member that waits for an answer is alive, unless it is new: then it may have given up long ago.
        let waits = |member: &Member| !member.is_new && (member.is_joining() || member.is_syncing());
        let is_pending = membership.pending_joins.contains(member_id);
        let is_silent = membership.members().get(member_id).is_some_and(|member| !waits(member));
        if is_pending || is_silent {
            let parked = membership.remove(member_id);
            self.answer_parked(parked, &Str::new(), ErrorCode::UnknownMemberId);
            match membership.state() {
                State::Stable | State::CompletingRebalance if is_silent => {
                    let reason = format!("the session of member {member_id} ended");
                    self.rebalance_or_complete(&mut membership, reason);
                }
                State::PreparingRebalance if membership.all_joined() => self.complete_join(&mut membership),
                _ => {}
            }
        }
        self.keep(membership);
    }

    /// Gives a member its whole session timeout again.
    pub(super) fn renew_session(&mut self, membership: &Membership, member_id: &str) {
        if let Some(member) = membership.members().get(member_id) {
            self.set_timer(membership.session_timer(member_id), member.session_timeout_ms);
        }
    }

    /// Arms the next look for expired offsets.
    pub(super) fn schedule_expiry(&mut self) {
        let interval_ms = self.hard.config.offsets_retention_check_interval_ms;
        self.set_timer(Timer::Expiry, i32::try_from(interval_ms).unwrap_or(i32::MAX));
    }
}
