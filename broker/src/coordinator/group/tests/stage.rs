//! [`Stage`]: a coordinator without a shell, which keeps the rules of one: records are applied at once, timers run on
//! a virtual clock, every request is answered once.

use std::collections::{BTreeMap, BTreeSet};

use super::super::membership::State;
use super::super::{ConsumerGroups, Decision, GroupConfig, Input, Record, Request, RequestId, Soft};
use super::super::{Timer, TimerChange};

/// A coordinator at work.
pub(super) struct Stage {
    pub(super) groups: ConsumerGroups,
    pub(super) soft: Soft,
    pub(super) now_ms: i64,
    /// Everything stored so far.
    pub(super) log: Vec<Record>,
    pub(super) unanswered: BTreeSet<RequestId>,
    timers: BTreeMap<Timer, i64>,
    next_request: u64,
    entropy: u128,
    /// Highest generation of each group, to see that it never falls while the group lives.
    generations: BTreeMap<String, i32>,
}

impl Stage {
    pub(super) fn new(config: GroupConfig) -> Self {
        let mut stage = Self {
            groups: ConsumerGroups::new(config),
            soft: Soft::new(),
            now_ms: 1_000_000,
            log: Vec::new(),
            unanswered: BTreeSet::new(),
            timers: BTreeMap::new(),
            next_request: 0,
            entropy: 0,
            generations: BTreeMap::new(),
        };
        stage.decide(Input::Loaded);
        stage
    }

    /// Hands in a request.
    pub(super) fn request(&mut self, request: Request) -> (RequestId, Decision) {
        self.next_request += 1;
        let id = RequestId(self.next_request);
        self.unanswered.insert(id);
        (id, self.decide(Input::Request(id, request)))
    }

    /// One decision, with all that a shell does about it.
    pub(super) fn decide(&mut self, input: Input) -> Decision {
        self.entropy += 1;
        let before = self.groups.clone();
        let decision = self.groups.decide(&mut self.soft, self.now_ms, self.entropy, input);
        assert_eq!(self.groups, before, "deciding changes no stored state");
        for record in &decision.records {
            // What is applied is what was read back, as after a restart.
            let (key, value) = record.encode().expect("a record encodes");
            let read = Record::decode(Some(key), value).expect("a record decodes").expect("of a known type");
            assert_eq!(&read, record, "a record survives its bytes");
            self.groups.apply(record);
            self.log.push(record.clone());
        }
        for change in &decision.timers {
            match change {
                TimerChange::Set { timer, after_ms } => {
                    self.timers
                        .insert(timer.clone(), self.now_ms + i64::try_from(*after_ms).expect("a short time"));
                }
                TimerChange::Cancel(timer) => {
                    self.timers.remove(timer);
                }
            }
        }
        for (id, _) in &decision.replies {
            assert!(self.unanswered.remove(id), "{id:?} is answered once");
        }
        self.check();
        decision
    }

    /// The next timer that comes due before `until_ms`; the clock moves to it.
    pub(super) fn next_timer(&mut self, until_ms: i64) -> Option<Decision> {
        let due = self.timers.iter().min_by_key(|(_, due)| **due).map(|(timer, due)| (timer.clone(), *due));
        let (timer, due) = due.filter(|(_, due)| *due <= until_ms)?;
        self.now_ms = self.now_ms.max(due);
        self.timers.remove(&timer);
        Some(self.decide(Input::Timer(timer)))
    }

    /// Forgets all that is not stored, as a restart does, and loads. Parked requests are lost with it.
    pub(super) fn restart(&mut self) -> Decision {
        self.soft = Soft::new();
        self.timers.clear();
        self.unanswered.clear();
        self.generations.clear();
        self.groups = self.replayed();
        self.decide(Input::Loaded)
    }

    /// The state that replaying the log gives.
    pub(super) fn replayed(&self) -> ConsumerGroups {
        let mut replayed = ConsumerGroups::new(self.groups.config.clone());
        for record in &self.log {
            replayed.apply(record);
        }
        replayed
    }

    pub(super) fn armed(&self, timer: &Timer) -> bool {
        self.timers.contains_key(timer)
    }

    fn check(&mut self) {
        for (group_id, membership) in &self.soft.live {
            membership.check();
            assert!(self.groups.exists(group_id), "{group_id} lives without being stored");
            self.check_timers(group_id);
            let stored = self.groups.group(group_id);
            if membership.state() == State::Stable {
                let stored = stored.expect("a stable group is stored");
                assert_eq!(stored.generation, membership.generation);
                assert!(stored.members.keys().eq(membership.members().keys()), "members are stored");
            }
            let highest = self.generations.entry(group_id.to_string()).or_default();
            assert!(membership.generation >= *highest, "the generation of {group_id} went back");
            *highest = membership.generation;
        }
        let groups = &self.groups;
        self.generations.retain(|group_id, _| groups.exists(group_id));
    }

    /// Nobody waits for ever: each member has a session or a rebalance that ends.
    fn check_timers(&self, group_id: &protocol::Str) {
        let membership = &self.soft.live[group_id];
        let rebalances = match membership.state() {
            State::PreparingRebalance => self.armed(&Timer::Join(group_id.clone())),
            State::CompletingRebalance => {
                membership.pending_syncs.is_empty() || self.armed(&Timer::Sync(group_id.clone()))
            }
            _ => true,
        };
        assert!(rebalances, "the rebalance of {group_id} never ends");
        for member_id in membership.members().keys().chain(&membership.pending_joins) {
            let parked =
                membership.members().get(member_id).is_some_and(|it| it.is_joining() || it.is_syncing());
            let session = Timer::Session { group_id: group_id.clone(), member_id: member_id.clone() };
            assert!(parked || self.armed(&session), "the session of {member_id} never ends");
        }
    }
}
