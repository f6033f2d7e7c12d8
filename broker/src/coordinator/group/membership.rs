//! [`Membership`]: who is in one consumer group right now, and who waits for what.
//!
//! Owns the state of the rebalance, the members with all protocols that they offered, and the requests parked on
//! them. It is soft: a restart rebuilds it from the last stored generation.
//!
//! Invariants ([`Membership::check`]):
//! 1. `joining` counts the members with a parked JoinGroup.
//! 2. `support` counts, for each protocol, the members that offer it; one is offered by all while there are members.
//! 3. `static_members` maps each instance id to the one member that has it.
//! 4. The leader, if there is one, is a member.
//! 5. A parked request is given back exactly once, by a `take_*`, `remove` or `replace_static`.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use protocol::messages::join_group_request::JoinGroupRequestProtocol;
use protocol::{ErrorCode, Str};

use super::message::{Client, RequestId, Timer};
use super::state::StoredGroup;

/// State of a classic consumer group, by Kafka's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No members; perhaps offsets.
    Empty,
    /// Members are asked to join (again).
    PreparingRebalance,
    /// All have joined; the leader works out who gets what.
    CompletingRebalance,
    /// Every member may ask for its assignment.
    Stable,
    /// There is no such group.
    Dead,
}

impl State {
    /// As ListGroups and DescribeGroups show it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

/// The first rebalance of an empty group waits for more members (KIP-134).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InitialRebalance {
    /// The wait that is going on.
    pub(super) delay_ms: i32,
    /// What the rebalance timeout leaves for waiting on.
    pub(super) remaining_ms: i32,
    /// Somebody joined during the wait that is going on.
    pub(super) joined_meanwhile: bool,
}

/// A protocol that a member offers, with its subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Protocol {
    pub(super) name: Str,
    pub(super) metadata: Bytes,
}

impl Protocol {
    /// The protocols of a request, in memory of their own.
    pub(super) fn from_request(protocols: &[JoinGroupRequestProtocol]) -> Vec<Self> {
        let own = |it: &JoinGroupRequestProtocol| Self {
            name: it.name.detached(),
            metadata: Bytes::copy_from_slice(&it.metadata),
        };
        protocols.iter().map(own).collect()
    }
}

/// One member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// `group.instance.id` of a static member (KIP-345).
    pub(super) instance_id: Option<Str>,
    pub(super) client: Client,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
    /// In the member's order of preference.
    pub(super) protocols: Vec<Protocol>,
    /// It has not learnt its member id by a JoinGroup response yet, so it cannot send heartbeats.
    pub(super) is_new: bool,
    joining: Option<RequestId>,
    syncing: Option<RequestId>,
}

impl Member {
    pub(super) fn new(instance_id: Option<&Str>, client: &Client, protocols: Vec<Protocol>) -> Self {
        Self {
            instance_id: instance_id.map(Str::detached),
            client: Client { id: client.id.detached(), host: client.host.detached() },
            rebalance_timeout_ms: 0,
            session_timeout_ms: 0,
            protocols,
            is_new: false,
            joining: None,
            syncing: None,
        }
    }

    pub(super) fn is_joining(&self) -> bool {
        self.joining.is_some()
    }

    pub(super) fn is_syncing(&self) -> bool {
        self.syncing.is_some()
    }

    /// True when the protocols are the same, in the same order, with the same metadata.
    pub(super) fn matches(&self, protocols: &[JoinGroupRequestProtocol]) -> bool {
        self.protocols.len() == protocols.len()
            && self.protocols.iter().zip(protocols).all(|(a, b)| a.name == b.name && a.metadata == b.metadata)
    }

    /// What it offers under this protocol, empty when it does not offer it.
    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        let offered = self.protocols.iter().find(|it| it.name == protocol);
        offered.map(|it| it.metadata.clone()).unwrap_or_default()
    }

    /// Names of what it offers, each once.
    fn names(&self) -> BTreeSet<&Str> {
        self.protocols.iter().map(|it| &it.name).collect()
    }
}

/// Requests that were parked on a member which is gone or replaced. Each must be answered.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use]
pub(super) struct Parked {
    pub(super) join: Option<RequestId>,
    pub(super) sync: Option<RequestId>,
}

/// The live side of one consumer group.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    pub(super) id: Str,
    state: State,
    /// Wall clock of the last change of state.
    pub(super) state_since_ms: Option<i64>,
    pub(super) generation: i32,
    pub(super) protocol_type: Option<Str>,
    /// The one that all members use in this generation.
    pub(super) protocol: Option<Str>,
    pub(super) leader: Option<Str>,
    /// Some while the state is PreparingRebalance and was Empty before.
    pub(super) initial: Option<InitialRebalance>,
    members: BTreeMap<Str, Member>,
    static_members: BTreeMap<Str, Str>,
    /// Member ids handed out with MEMBER_ID_REQUIRED and not used yet.
    pub(super) pending_joins: BTreeSet<Str>,
    /// Members that have not asked for their assignment in this generation.
    pub(super) pending_syncs: BTreeSet<Str>,
    joining: usize,
    support: BTreeMap<Str, usize>,
}

impl Membership {
    /// As the stored generation says, or empty.
    pub(super) fn new(group_id: &Str, stored: Option<&StoredGroup>, now_ms: i64) -> Self {
        let mut membership = Self {
            id: group_id.detached(),
            state: State::Empty,
            state_since_ms: Some(now_ms),
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            initial: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_joins: BTreeSet::new(),
            pending_syncs: BTreeSet::new(),
            joining: 0,
            support: BTreeMap::new(),
        };
        if let Some(stored) = stored {
            membership.restore(stored);
        }
        membership
    }

    fn restore(&mut self, stored: &StoredGroup) {
        let name = stored.protocol.clone().unwrap_or_default();
        for (id, it) in &stored.members {
            let protocol = Protocol { name: name.clone(), metadata: it.subscription.clone() };
            let client = Client { id: it.client_id.clone(), host: it.client_host.clone() };
            let mut member = Member::new(it.instance_id.as_ref(), &client, vec![protocol]);
            member.rebalance_timeout_ms = it.rebalance_timeout_ms;
            member.session_timeout_ms = it.session_timeout_ms;
            self.add(id, member);
        }
        self.state = if self.members.is_empty() { State::Empty } else { State::Stable };
        self.state_since_ms = stored.state_since_ms;
        self.generation = stored.generation;
        self.protocol_type.clone_from(&stored.protocol_type);
        self.protocol.clone_from(&stored.protocol);
        self.leader = stored.leader.clone().filter(|leader| self.members.contains_key(leader));
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Moves to `state`, from where Kafka allows it.
    pub(super) fn move_to(&mut self, state: State, now_ms: i64) {
        let allowed = match state {
            State::Empty | State::CompletingRebalance => self.state == State::PreparingRebalance,
            State::PreparingRebalance => self.can_rebalance(),
            State::Stable => self.state == State::CompletingRebalance,
            State::Dead => false,
        };
        assert!(allowed, "consumer group moves from {:?} to {state:?}", self.state);
        self.state = state;
        self.state_since_ms = Some(now_ms);
    }

    pub(super) fn can_rebalance(&self) -> bool {
        matches!(self.state, State::Empty | State::CompletingRebalance | State::Stable)
    }

    /// Nothing here that the stored state does not know.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Empty && self.pending_joins.is_empty()
    }

    pub(super) fn members(&self) -> &BTreeMap<Str, Member> {
        &self.members
    }

    /// The one member, to change what no counter depends on.
    pub(super) fn member_mut(&mut self, member_id: &str) -> Option<&mut Member> {
        self.members.get_mut(member_id)
    }

    pub(super) fn static_member(&self, instance_id: &str) -> Option<&Str> {
        self.static_members.get(instance_id)
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_ref().is_some_and(|leader| *leader == *member_id)
    }

    pub(super) fn joining_count(&self) -> usize {
        self.joining
    }

    pub(super) fn all_joined(&self) -> bool {
        self.joining == self.members.len() && self.pending_joins.is_empty()
    }

    /// The longest that a member asks for, at least 0.
    pub(super) fn rebalance_timeout_ms(&self) -> i32 {
        self.members.values().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0).max(0)
    }

    /// True when a member with these protocols can be in this group.
    pub(super) fn supports(&self, protocol_type: &str, protocols: &[JoinGroupRequestProtocol]) -> bool {
        if self.state == State::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        let common = |name: &Str| self.support.get(name).copied().unwrap_or(0) == self.members.len();
        self.protocol_type.as_ref().is_some_and(|own| *own == *protocol_type)
            && protocols.iter().any(|protocol| common(&protocol.name))
    }

    /// NONE when the request may speak for this member: the id is known, and it is the one behind the instance id.
    pub(super) fn validate(&self, member_id: &str, instance_id: Option<&Str>) -> ErrorCode {
        if let Some(instance_id) = instance_id {
            match self.static_members.get(instance_id) {
                None => return ErrorCode::UnknownMemberId,
                Some(current) if *current != *member_id => return ErrorCode::FencedInstanceId,
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) { ErrorCode::None } else { ErrorCode::UnknownMemberId }
    }

    /// Adds a member that is not there yet.
    pub(super) fn add(&mut self, member_id: &Str, member: Member) {
        let member_id = member_id.detached();
        self.pending_joins.remove(&member_id);
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), member_id.clone());
        }
        self.count_support(&member, true);
        self.leader.get_or_insert_with(|| member_id.clone());
        let before = self.members.insert(member_id, member);
        assert!(before.is_none(), "member added twice");
    }

    /// Takes a member or a handed-out member id away. A leader is followed by the first of the others.
    pub(super) fn remove(&mut self, member_id: &str) -> Parked {
        self.pending_joins.remove(member_id);
        self.pending_syncs.remove(member_id);
        let Some(member) = self.members.remove(member_id) else { return Parked::default() };
        self.count_support(&member, false);
        self.joining -= usize::from(member.is_joining());
        if let Some(instance_id) = &member.instance_id {
            self.static_members.remove(instance_id);
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        Parked { join: member.joining, sync: member.syncing }
    }

    /// Gives a static member's place to a new member id; what was parked on the old one comes back.
    pub(super) fn replace_static(&mut self, old_id: &Str, new_id: &Str) -> Parked {
        let mut member = self.members.remove(old_id).expect("a mapped static member is a member");
        let parked = Parked { join: member.joining.take(), sync: member.syncing.take() };
        self.joining -= usize::from(parked.join.is_some());
        member.is_new = false;
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), new_id.clone());
        }
        if self.is_leader(old_id) {
            self.leader = Some(new_id.clone());
        }
        if self.pending_syncs.remove(old_id) {
            self.pending_syncs.insert(new_id.clone());
        }
        self.members.insert(new_id.clone(), member);
        parked
    }

    /// What a joining member now offers.
    pub(super) fn set_protocols(&mut self, member_id: &str, protocols: Vec<Protocol>) {
        let Some((id, mut member)) = self.members.remove_entry(member_id) else { return };
        self.count_support(&member, false);
        member.protocols = protocols;
        self.count_support(&member, true);
        self.members.insert(id, member);
    }

    /// Parks a JoinGroup on a member; one that was parked before comes back.
    #[must_use]
    pub(super) fn park_join(&mut self, member_id: &str, request: RequestId) -> Option<RequestId> {
        let member = self.members.get_mut(member_id).expect("parked on a member");
        let before = member.joining.replace(request);
        self.joining += usize::from(before.is_none());
        before
    }

    /// The parked JoinGroup of a member.
    pub(super) fn take_join(&mut self, member_id: &str) -> Option<RequestId> {
        let request = self.members.get_mut(member_id)?.joining.take();
        self.joining -= usize::from(request.is_some());
        request
    }

    /// Parks a SyncGroup on a member; one that was parked before comes back.
    #[must_use]
    pub(super) fn park_sync(&mut self, member_id: &str, request: RequestId) -> Option<RequestId> {
        self.members.get_mut(member_id).expect("parked on a member").syncing.replace(request)
    }

    /// The parked SyncGroup of a member.
    pub(super) fn take_sync(&mut self, member_id: &str) -> Option<RequestId> {
        self.members.get_mut(member_id)?.syncing.take()
    }

    /// Makes sure that the leader is one of those who have joined. False when nobody has.
    pub(super) fn elect_joined_leader(&mut self) -> bool {
        let joined = |id: &Str| self.members.get(id).is_some_and(Member::is_joining);
        if self.leader.as_ref().is_some_and(joined) {
            return true;
        }
        let next = self.members.iter().find(|(_, member)| member.is_joining()).map(|(id, _)| id.clone());
        let found = next.is_some();
        if found {
            self.leader = next;
        }
        found
    }

    /// The protocol that most members prefer among those that all offer; on a tie, the one with the lesser name.
    pub(super) fn select_protocol(&self) -> Str {
        let mut votes: BTreeMap<&Str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let common = |it: &&Protocol| self.support.get(&it.name).copied() == Some(self.members.len());
            let favourite = member.protocols.iter().find(common);
            *votes.entry(&favourite.expect("all members share a protocol").name).or_default() += 1;
        }
        let most = votes.values().copied().max().unwrap_or(0);
        let chosen = votes.into_iter().find(|(_, count)| *count == most);
        chosen.expect("a protocol is chosen among members").0.clone()
    }

    /// The session timer of a member, named in memory that the group holds anyway.
    pub(super) fn session_timer(&self, member_id: &str) -> Timer {
        let known = self.members.get_key_value(member_id).map(|(id, _)| id);
        let id = known.or_else(|| self.pending_joins.get(member_id));
        Timer::Session {
            group_id: self.id.clone(),
            member_id: id.cloned().unwrap_or_else(|| Str::from(member_id)),
        }
    }

    fn count_support(&mut self, member: &Member, more: bool) {
        for name in member.names() {
            let count = self.support.entry(name.clone()).or_default();
            *count = if more { *count + 1 } else { *count - 1 };
            if *count == 0 {
                self.support.remove(name);
            }
        }
    }

    /// Verifies invariants 1 to 4 by counting anew.
    #[cfg(test)]
    pub(super) fn check(&self) {
        assert_eq!(self.joining, self.members.values().filter(|member| member.is_joining()).count());
        let mut support: BTreeMap<Str, usize> = BTreeMap::new();
        let mut statics = BTreeMap::new();
        for (id, member) in &self.members {
            for name in member.names() {
                *support.entry(name.clone()).or_default() += 1;
            }
            statics.extend(member.instance_id.clone().map(|instance| (instance, id.clone())));
        }
        assert_eq!(self.support, support);
        assert_eq!(self.static_members, statics);
        assert!(self.members.is_empty() || support.values().any(|count| *count == self.members.len()));
        assert!(self.leader.as_ref().is_none_or(|leader| self.members.contains_key(leader)));
        assert!(self.initial.is_none() || self.state == State::PreparingRebalance);
        assert!(self.members.is_empty() || self.state != State::Empty);
        assert!(self.pending_joins.iter().all(|id| !self.members.contains_key(id)));
        assert!(self.pending_syncs.iter().all(|id| self.members.contains_key(id)));
    }
}
