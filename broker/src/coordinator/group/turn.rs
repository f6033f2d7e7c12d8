//! One decision: [`ConsumerGroups::decide`] hands the input to the operation it belongs to, and collects what comes
//! of it in a [`Turn`].

use std::collections::BTreeMap;

use protocol::{ErrorCode, Str};
use uuid::Builder;

use super::membership::{Membership, Parked, State};
use super::message::{Decision, Input, Rebalance, Reply, Request, RequestId, Timer, TimerChange};
use super::rebalance::{join_failed, sync_failed};
use super::record::Record;
use super::state::ConsumerGroups;

/// What a coordinator knows beyond its stored state: running rebalances, handed-out member ids, parked requests.
/// Lost with the process or the leadership; [`Input::Loaded`] fills it anew.
#[derive(Debug, Default)]
pub struct Soft {
    /// Every consumer group that is not idle ([`Membership::is_idle`]).
    pub(super) live: BTreeMap<Str, Membership>,
}

impl Soft {
    /// A coordinator that has just loaded.
    pub fn new() -> Self {
        Self::default()
    }
}

impl ConsumerGroups {
    /// Decides what follows from `input` at wall clock `now_ms` (Unix epoch). `entropy` is fresh randomness, spent on
    /// at most one member id. Stored state does not change until the decision's records are
    /// [applied](ConsumerGroups::apply), which must happen before the next decision.
    pub fn decide(&self, soft: &mut Soft, now_ms: i64, entropy: u128, input: Input) -> Decision {
        let mut turn = Turn { hard: self, soft, now_ms, entropy, out: Decision::default() };
        match input {
            Input::Loaded => turn.loaded(),
            Input::Request(id, request) => turn.request(id, request),
            Input::TopicsDeleted(topics) => turn.topics_deleted(&topics),
            Input::Timer(Timer::Session { group_id, member_id }) => turn.session_ended(&group_id, &member_id),
            Input::Timer(Timer::Join(group_id)) => turn.join_ended(&group_id),
            Input::Timer(Timer::Sync(group_id)) => turn.sync_ended(&group_id),
            Input::Timer(Timer::Expiry) => turn.expire_offsets(),
        }
        turn.out
    }
}

/// The decision that is being made.
pub(super) struct Turn<'a> {
    pub(super) hard: &'a ConsumerGroups,
    pub(super) soft: &'a mut Soft,
    pub(super) now_ms: i64,
    entropy: u128,
    pub(super) out: Decision,
}

impl Turn<'_> {
    fn request(&mut self, id: RequestId, request: Request) {
        match request {
            Request::Join { version, client, body } => self.join(id, version, &client, &body),
            Request::Sync(body) => self.sync(id, &body),
            Request::Heartbeat(body) => self.heartbeat(id, &body),
            Request::Leave { group_id, members } => self.leave(id, &group_id, &members),
            Request::OffsetCommit { version, body } => self.commit_offsets(id, version, &body),
            Request::OffsetFetch(body) => self.fetch_offsets(id, body),
            Request::OffsetDelete(body) => self.delete_offsets(id, &body),
            Request::List { states, types } => self.list(id, &states, &types),
            Request::Describe { version, groups } => self.describe(id, version, &groups),
            Request::Delete { groups } => self.delete(id, &groups),
        }
    }

    /// Takes the live side of a consumer group out, to be given back with [`Turn::keep`]. `None`: no such group.
    pub(super) fn take(&mut self, group_id: &str) -> Option<Membership> {
        if let Some(membership) = self.soft.live.remove(group_id) {
            return Some(membership);
        }
        let exists = self.hard.exists(group_id);
        exists.then(|| Membership::new(&Str::from(group_id), self.hard.group(group_id), self.now_ms))
    }

    /// Gives a live side back.
    pub(super) fn keep(&mut self, membership: Membership) {
        if !membership.is_idle() {
            self.soft.live.insert(membership.id.clone(), membership);
        }
    }

    /// True for a group of which anything is stored or live.
    pub(super) fn exists(&self, group_id: &str) -> bool {
        self.soft.live.contains_key(group_id) || self.hard.exists(group_id)
    }

    /// The state that others see.
    pub(super) fn state(&self, group_id: &str) -> State {
        match self.soft.live.get(group_id) {
            Some(membership) => membership.state(),
            None if self.hard.exists(group_id) => State::Empty,
            None => State::Dead,
        }
    }

    /// True while another consumer group fits.
    pub(super) fn has_room(&self) -> bool {
        self.hard.len_bound() < self.hard.config.groups_max
    }

    pub(super) fn reply(&mut self, request: RequestId, reply: Reply) {
        self.out.replies.push((request, reply));
    }

    pub(super) fn fail(&mut self, request: RequestId, error: ErrorCode) {
        self.reply(request, Reply::Failed(error));
    }

    pub(super) fn record(&mut self, record: Record) {
        self.out.records.push(record);
    }

    pub(super) fn set_timer(&mut self, timer: Timer, after_ms: i32) {
        let after_ms = u64::try_from(after_ms).unwrap_or(0);
        self.out.timers.push(TimerChange::Set { timer, after_ms });
    }

    pub(super) fn cancel_timer(&mut self, timer: Timer) {
        self.out.timers.push(TimerChange::Cancel(timer));
    }

    pub(super) fn note_rebalance(&mut self, membership: &Membership, reason: String) {
        let group_id = membership.id.clone();
        self.out.rebalances.push(Rebalance { group_id, generation: membership.generation, reason });
    }

    /// Answers what was parked on a member that is gone.
    pub(super) fn answer_parked(&mut self, parked: Parked, member_id: &Str, error: ErrorCode) {
        if let Some(request) = parked.join {
            self.reply(request, join_failed(member_id, error));
        }
        if let Some(request) = parked.sync {
            self.reply(request, sync_failed(error));
        }
    }

    /// A member id that nobody has: the instance id or client id, and a random identifier.
    pub(super) fn new_member_id(&self, prefix: &str) -> Str {
        let unique = Builder::from_random_bytes(self.entropy.to_be_bytes()).into_uuid();
        Str::from(format!("{prefix}-{unique}"))
    }
}
