//! What goes into and comes out of a decision: requests, timers, replies. Owns no behaviour.

use protocol::messages::join_group_request::JoinGroupRequest;
use protocol::messages::join_group_response::JoinGroupResponse;
use protocol::messages::leave_group_request::MemberIdentity;
use protocol::messages::leave_group_response::MemberResponse;
use protocol::messages::offset_commit_request::OffsetCommitRequest;
use protocol::messages::offset_commit_response::OffsetCommitResponse;
use protocol::messages::offset_delete_request::OffsetDeleteRequest;
use protocol::messages::offset_delete_response::OffsetDeleteResponse;
use protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use protocol::messages::offset_fetch_response::OffsetFetchResponseGroup;
use protocol::messages::{
    delete_groups_response::DeletableGroupResult, describe_groups_response::DescribedGroup,
};
use protocol::messages::{heartbeat_request::HeartbeatRequest, list_groups_response::ListedGroup};
use protocol::messages::{sync_group_request::SyncGroupRequest, sync_group_response::SyncGroupResponse};
use protocol::{ErrorCode, Str, Uuid};

use super::record::Record;

/// Names one request until it is answered. The shell hands them out and never uses one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Who sent a JoinGroup: stored with the member and shown by DescribeGroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Client id of the request header, empty when it had none.
    pub id: Str,
    /// Address as Kafka writes it: `/` and the IP address.
    pub host: Str,
}

/// Why a decision is asked for.
#[derive(Clone, Debug)]
pub enum Input {
    /// The stored state is complete: arm the sessions of all members and the first look for expired offsets.
    Loaded,
    /// A client asks. It is answered by exactly one reply, of this decision or of a later one.
    Request(RequestId, Request),
    /// A timer that a former decision set has come due.
    Timer(Timer),
    /// These topics (name, id) are gone: forget their offsets.
    TopicsDeleted(Vec<(Str, Uuid)>),
}

/// A client's request, reduced to what one coordinator decides. All groups in it belong to that coordinator.
#[derive(Clone, Debug)]
pub enum Request {
    /// JoinGroup. `rebalance_timeout_ms` is filled in (version 0 does not send it).
    Join {
        /// Version of the request: from 4 a new member must ask twice (KIP-394), from 9 a leader can be told to skip
        /// the assignment (KIP-814).
        version: i16,
        /// The sender.
        client: Client,
        /// The request.
        body: JoinGroupRequest,
    },
    /// SyncGroup.
    Sync(SyncGroupRequest),
    /// Heartbeat; answered by [`Reply::Heartbeat`] or [`Reply::Failed`].
    Heartbeat(HeartbeatRequest),
    /// LeaveGroup, old versions brought to the batched form.
    Leave {
        /// The consumer group.
        group_id: Str,
        /// The members that leave.
        members: Vec<MemberIdentity>,
    },
    /// OffsetCommit whose topics exist and carry both name and id.
    OffsetCommit {
        /// Version of the request: from 9 an unknown consumer group has its own error.
        version: i16,
        /// The request.
        body: OffsetCommitRequest,
    },
    /// One consumer group of an OffsetFetch, topics by name (`None`: all topics).
    OffsetFetch(OffsetFetchRequestGroup),
    /// OffsetDelete whose topics exist.
    OffsetDelete(OffsetDeleteRequest),
    /// ListGroups: empty filters let everything through.
    List {
        /// Names of states, any case.
        states: Vec<Str>,
        /// Names of group types, any case.
        types: Vec<Str>,
    },
    /// DescribeGroups.
    Describe {
        /// Version of the request: from 6 an unknown consumer group is an error (KIP-1043).
        version: i16,
        /// The consumer groups.
        groups: Vec<Str>,
    },
    /// DeleteGroups.
    Delete {
        /// The consumer groups.
        groups: Vec<Str>,
    },
}

/// The answer to one [`Request`], of the same name.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the response of the API it is named after")]
pub enum Reply {
    Join(JoinGroupResponse),
    Sync(SyncGroupResponse),
    Heartbeat,
    Leave(Vec<MemberResponse>),
    OffsetCommit(OffsetCommitResponse),
    OffsetFetch(OffsetFetchResponseGroup),
    OffsetDelete(OffsetDeleteResponse),
    List(Vec<ListedGroup>),
    Describe(Vec<DescribedGroup>),
    Delete(Vec<DeletableGroupResult>),
    /// The request as a whole failed, whatever it was.
    Failed(ErrorCode),
}

impl Reply {
    /// Why the request failed.
    ///
    /// # Panics
    /// When it did not, which means that it was answered as a request of another kind.
    pub fn error(&self) -> ErrorCode {
        match self {
            Self::Failed(error) => *error,
            other => panic!("a request was answered with {other:?}"),
        }
    }
}

/// What a coordinator waits for. At most one timer per value is armed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The session of a member (or of a member id that was handed out) ends.
    Session {
        /// The consumer group.
        group_id: Str,
        /// The member.
        member_id: Str,
    },
    /// The join phase of a rebalance ends.
    Join(Str),
    /// The time in which all members must have asked for their assignment ends.
    Sync(Str),
    /// Time to look for expired offsets.
    Expiry,
}

/// A change of one timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerChange {
    /// (Re)arm it.
    Set {
        /// Which.
        timer: Timer,
        /// From now.
        after_ms: u64,
    },
    /// Disarm it, if it is armed.
    Cancel(Timer),
}

/// A rebalance that begins: for the operator's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebalance {
    /// The consumer group.
    pub group_id: Str,
    /// The generation that ends.
    pub generation: i32,
    /// Why, with the client's own reason where it gave one (KIP-800).
    pub reason: String,
}

/// What the shell does next, in this order: store `records` as one batch and apply them, change the timers, and
/// hand out `replies` once everything stored so far is raft-committed.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// To be stored, in order.
    pub records: Vec<Record>,
    /// Answers, to this request or to parked ones.
    pub replies: Vec<(RequestId, Reply)>,
    /// Later changes of the same timer win.
    pub timers: Vec<TimerChange>,
    /// Rebalances that this decision began.
    pub rebalances: Vec<Rebalance>,
}
