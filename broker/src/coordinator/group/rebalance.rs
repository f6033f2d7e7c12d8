//! The two phases of a rebalance: all members join, then all fetch what the leader assigned.
//!
//! PreparingRebalance ends when everybody has joined or the longest rebalance timeout is over; who has not joined by
//! then is out, unless it is static. The first rebalance of an empty group waits for company instead (KIP-134).

use protocol::messages::join_group_response::{JoinGroupResponse, JoinGroupResponseMember};
use protocol::messages::sync_group_response::SyncGroupResponse;
use protocol::{ErrorCode, Str};

use super::membership::{InitialRebalance, Member, Membership, State};
use super::message::{Reply, Timer};
use super::turn::Turn;

impl Turn<'_> {
    /// Begins a rebalance where one can begin; else sees whether the one that runs is complete.
    pub(super) fn rebalance_or_complete(&mut self, membership: &mut Membership, reason: String) {
        if membership.can_rebalance() {
            self.prepare_rebalance(membership, reason);
        } else {
            self.complete_join_if_due(membership);
        }
    }

    /// Asks all members to join again.
    pub(super) fn prepare_rebalance(&mut self, membership: &mut Membership, reason: String) {
        if membership.state() == State::CompletingRebalance {
            self.refuse_syncs(membership, ErrorCode::RebalanceInProgress);
        }
        membership.pending_syncs.clear();
        self.cancel_timer(Timer::Sync(membership.id.clone()));

        let is_initial = membership.state() == State::Empty;
        membership.move_to(State::PreparingRebalance, self.now_ms);
        self.note_rebalance(membership, reason);
        if is_initial {
            let delay_ms = self.hard.config.initial_rebalance_delay_ms.max(0);
            let remaining_ms = membership.rebalance_timeout_ms().saturating_sub(delay_ms).max(0);
            membership.initial = Some(InitialRebalance { delay_ms, remaining_ms, joined_meanwhile: false });
            self.set_timer(Timer::Join(membership.id.clone()), delay_ms);
        } else if membership.all_joined() {
            self.complete_join(membership);
        } else {
            self.set_timer(Timer::Join(membership.id.clone()), membership.rebalance_timeout_ms());
        }
    }

    /// Ends the join phase if everybody is there. The initial rebalance ends by its timer only.
    pub(super) fn complete_join_if_due(&mut self, membership: &mut Membership) {
        let due = membership.state() == State::PreparingRebalance && membership.initial.is_none();
        if due && membership.all_joined() {
            self.complete_join(membership);
        }
    }

    /// The timer of the join phase.
    pub(super) fn join_ended(&mut self, group_id: &str) {
        let Some(mut membership) = self.take(group_id) else { return };
        if membership.state() == State::PreparingRebalance {
            match membership.initial {
                Some(initial) if initial.joined_meanwhile && initial.remaining_ms > 0 => {
                    let delay_ms = self.hard.config.initial_rebalance_delay_ms.clamp(0, initial.remaining_ms);
                    let remaining_ms = initial.remaining_ms.saturating_sub(initial.delay_ms).max(0);
                    membership.initial =
                        Some(InitialRebalance { delay_ms, remaining_ms, joined_meanwhile: false });
                    self.set_timer(Timer::Join(membership.id.clone()), delay_ms);
                }
                _ => self.complete_join(&mut membership),
            }
        }
        self.keep(membership);
    }

    /// Ends the join phase: who did not join is out, the rest is the next generation.
    pub(super) fn complete_join(&mut self, membership: &mut Membership) {
        membership.initial = None;
        let is_absent = |member: &Member| !member.is_joining() && member.instance_id.is_none();
        let absent = membership.members().iter().filter(|(_, member)| is_absent(member));
        for member_id in absent.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.cancel_timer(membership.session_timer(&member_id));
            let parked = membership.remove(&member_id);
            self.answer_parked(parked, &Str::new(), ErrorCode::UnknownMemberId);
        }

        if !membership.members().is_empty() && !membership.elect_joined_leader() {
            // Only static members, and none of them is back: wait on, until their sessions end.
            self.set_timer(Timer::Join(membership.id.clone()), membership.rebalance_timeout_ms());
            return;
        }
        self.cancel_timer(Timer::Join(membership.id.clone()));
        membership.generation = membership.generation.saturating_add(1);
        if membership.members().is_empty() {
            membership.protocol = None;
            membership.move_to(State::Empty, self.now_ms);
            self.record(membership.to_record(|_| None));
        } else {
            membership.protocol = Some(membership.select_protocol());
            membership.move_to(State::CompletingRebalance, self.now_ms);
            self.announce_generation(membership);
        }
    }

    /// Answers the joins of a new generation and waits for the syncs.
    fn announce_generation(&mut self, membership: &mut Membership) {
        for member_id in membership.members().keys().cloned().collect::<Vec<_>>() {
            let session_timeout_ms = membership.member_mut(&member_id).map_or(0, |member| {
                member.is_new = false;
                member.session_timeout_ms
            });
            if let Some(request) = membership.take_join(&member_id) {
                let response = current_generation(membership, &member_id, membership.is_leader(&member_id));
                self.reply(request, Reply::Join(response));
            }
            self.set_timer(membership.session_timer(&member_id), session_timeout_ms);
            membership.pending_syncs.insert(member_id);
        }
        self.set_timer(Timer::Sync(membership.id.clone()), membership.rebalance_timeout_ms());
    }

    /// Answers all parked SyncGroups with an error.
    pub(super) fn refuse_syncs(&mut self, membership: &mut Membership, error: ErrorCode) {
        let waiting = membership.members().iter().filter(|(_, member)| member.is_syncing());
        for member_id in waiting.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            if let Some(request) = membership.take_sync(&member_id) {
                self.reply(request, sync_failed(error));
            }
            // The session of a waiting member may have ended unnoticed.
            self.renew_session(membership, &member_id);
        }
    }
}

/// The current generation, as a JoinGroup response to `member_id`; the members only for a leader who is to assign
/// (or to watch their topics).
pub(super) fn current_generation(
    membership: &Membership,
    member_id: &Str,
    with_members: bool,
) -> JoinGroupResponse {
    let protocol = membership.protocol.clone().unwrap_or_default();
    let member = |(id, member): (&Str, &Member)| JoinGroupResponseMember {
        member_id: id.clone(),
        group_instance_id: member.instance_id.clone(),
        metadata: member.metadata(&protocol),
    };
    let members = with_members.then(|| membership.members().iter().map(member).collect());
    JoinGroupResponse {
        generation_id: membership.generation,
        protocol_type: membership.protocol_type.clone(),
        protocol_name: membership.protocol.clone(),
        leader: membership.leader.clone().unwrap_or_default(),
        member_id: member_id.clone(),
        members: members.unwrap_or_default(),
        ..Default::default()
    }
}

/// A JoinGroup that failed.
pub(super) fn join_failed(member_id: &Str, error: ErrorCode) -> Reply {
    let response =
        JoinGroupResponse { error_code: error.code(), member_id: member_id.clone(), ..Default::default() };
    Reply::Join(response)
}

/// A SyncGroup that failed.
pub(super) fn sync_failed(error: ErrorCode) -> Reply {
    Reply::Sync(SyncGroupResponse { error_code: error.code(), ..Default::default() })
}
