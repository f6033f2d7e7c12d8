//! [`Coordinator`]: the shell around the consumer groups of one partition of `__consumer_offsets`.
//!
//! Owns: the order of decisions, proposing their records, applying them, parking requests and releasing replies.
//! Does not own: what is decided ([`super::group`]).
//!
//! Invariants:
//! 1. One decision at a time: the next is made when all records of the last are proposed and applied.
//! 2. Records are applied in the order in which they were proposed.
//! 3. A reply leaves after everything that was proposed when it was decided is raft-committed, so no client learns
//!    of what a crash could undo.
//! 4. A request is answered exactly once; what cannot be answered any more is told to look for the coordinator again.
//!
//! Concurrency: on the shard of its partition; no borrow lasts across an await.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use protocol::ErrorCode;
use protocol::record::{BatchHeader, Builder, Codec};
use protocol::wire::EncodeError;
use raft::{Proposal, ProposeError};
use runtime::sync::{Event, oneshot};
use runtime::{random, task, time};
use storage::AppendError;

use super::group::{ConsumerGroups, GroupConfig, Input, Record, Reply, Request, RequestId, Soft, Timer};
use super::load;
use super::timers::Timers;
use crate::partition::Partition;
use crate::shard::Shard;

/// A batch is closed when its records reach this size; one record is never cut.
const BATCH_BYTES: usize = 512 << 10;
/// Offsets are younger than this while a topic that was just created may be unknown to this shard.
const TOPIC_KNOWN_AFTER_MS: i64 = 60_000;

/// How long a log that cannot be read is left alone.
const LOAD_RETRY: Duration = Duration::from_secs(10);

/// Where a coordinator stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Loading,
    Active,
    /// Its log could not be read.
    Broken,
    /// Its partition is gone.
    Ended,
}

/// One coordinator.
pub(super) struct Coordinator {
    shard: Weak<Shard>,
    partition: Rc<Partition>,
    config: GroupConfig,
    phase: Cell<Phase>,
    core: RefCell<Core>,
    /// An earlier timer was set, or timers may run again.
    timers_moved: Event,
    ended: Event,
}

struct Core {
    groups: ConsumerGroups,
    soft: Soft,
    timers: Timers,
    /// What is to be decided, in order.
    inbox: VecDeque<Input>,
    /// The decision that waits for room in the journal.
    writing: Option<Writing>,
    waits_for_room: bool,
    /// Requests that are not answered yet.
    waiting: BTreeMap<RequestId, oneshot::Sender<Reply>>,
    /// What is proposed and not known to be raft-committed, in order.
    in_flight: VecDeque<InFlight>,
    releasing: bool,
    next_request: u64,
}

/// A decision on its way into the log.
struct Writing {
    batches: VecDeque<Batch>,
    replies: Vec<(RequestId, Reply)>,
    /// It is about members, not only about offsets.
    touches_members: bool,
}

struct Batch {
    records: Vec<Record>,
    bytes: Bytes,
    header: BatchHeader,
}

struct InFlight {
    proposal: Proposal,
    /// Decided after this proposal and before the next.
    replies: Vec<(oneshot::Sender<Reply>, Reply)>,
}

impl Coordinator {
    /// A coordinator that has yet to [`load`](Coordinator::load).
    pub(super) fn new(shard: &Rc<Shard>, partition: &Rc<Partition>, config: GroupConfig) -> Rc<Self> {
        let core = Core {
            groups: ConsumerGroups::new(config.clone()),
            soft: Soft::new(),
            timers: Timers::default(),
            inbox: VecDeque::new(),
            writing: None,
            waits_for_room: false,
            waiting: BTreeMap::new(),
            in_flight: VecDeque::new(),
            releasing: false,
            next_request: 0,
        };
        Rc::new(Self {
            shard: Rc::downgrade(shard),
            partition: Rc::clone(partition),
            config,
            phase: Cell::new(Phase::Loading),
            core: RefCell::new(core),
            timers_moved: Event::new(),
            ended: Event::new(),
        })
    }

    /// Reads the log, as often as it takes, and begins to serve.
    pub(super) async fn load(self: Rc<Self>) {
        loop {
            let loaded = load::load(self.partition.group(), self.config.clone()).await;
            if self.phase.get() == Phase::Ended {
                return;
            }
            match loaded {
                Ok(groups) => {
                    self.begin(groups);
                    return;
                }
                Err(error) => {
                    let partition = self.partition.id.partition;
                    tracing::error!(%error, partition, "loading consumer groups; trying again");
                    self.phase.set(Phase::Broken);
                }
            }
            time::sleep(LOAD_RETRY).await;
        }
    }

    fn begin(self: &Rc<Self>, groups: ConsumerGroups) {
        {
            let core = &mut *self.core.borrow_mut();
            core.groups = groups;
            core.restart_soft();
        }
        self.phase.set(Phase::Active);
        self.pump();
    }

    /// Hands in a request; the answer may take as long as a rebalance.
    pub(super) fn submit(self: &Rc<Self>, request: Request) -> oneshot::Receiver<Reply> {
        let (answer, answered) = oneshot::channel();
        match self.phase.get() {
            Phase::Active => {
                {
                    let core = &mut *self.core.borrow_mut();
                    let id = RequestId(core.next_request);
                    core.next_request += 1;
                    core.waiting.insert(id, answer);
                    core.inbox.push_back(Input::Request(id, request));
                }
                self.pump();
            }
            Phase::Loading => answer.send(Reply::Failed(ErrorCode::CoordinatorLoadInProgress)),
            Phase::Broken => answer.send(Reply::Failed(ErrorCode::CoordinatorNotAvailable)),
            Phase::Ended => answer.send(Reply::Failed(ErrorCode::NotCoordinator)),
        }
        answered
    }

    /// The partition is gone: whoever waits is told.
    pub(super) fn end(&self) {
        self.phase.set(Phase::Ended);
        let core = &mut *self.core.borrow_mut();
        core.fail_all(ErrorCode::NotCoordinator);
        core.timers.clear();
        self.ended.notify_all();
        self.timers_moved.notify_all();
    }

    /// Decides and writes until nothing is left to do, or the journal has no room.
    fn pump(self: &Rc<Self>) {
        let (is_stalled, releases, wakes_timers) = {
            let core = &mut *self.core.borrow_mut();
            let next_timer = core.timers.next();
            let mut is_stalled = false;
            while !is_stalled && self.phase.get() == Phase::Active {
                if core.writing.is_none() {
                    let Some(input) = core.inbox.pop_front() else { break };
                    core.decide(input);
                }
                is_stalled = !self.write(core);
            }
            let is_earlier = |next| next_timer.is_none_or(|before| next < before);
            (
                is_stalled && !std::mem::replace(&mut core.waits_for_room, true),
                !core.in_flight.is_empty() && !std::mem::replace(&mut core.releasing, true),
                core.timers.next().is_some_and(is_earlier),
            )
        };
        // Nothing is borrowed any more: tasks borrow as well.
        if is_stalled {
            task::spawn(Rc::clone(self).wait_for_room());
        }
        if releases {
            task::spawn(Rc::clone(self).release());
        }
        if wakes_timers {
            self.timers_moved.notify_all();
        }
    }

    /// Proposes and applies what is being written, then hands its replies on. False: the journal has no room.
    fn write(&self, core: &mut Core) -> bool {
        let Some(mut writing) = core.writing.take() else { return true };
        while let Some(batch) = writing.batches.pop_front() {
            match self.partition.group().propose(batch.bytes.clone(), &batch.header) {
                Ok(proposal) => {
                    for record in &batch.records {
                        core.groups.apply(record);
                    }
                    core.in_flight.push_back(InFlight { proposal, replies: Vec::new() });
                }
                Err(ProposeError::Append(AppendError::Busy)) => {
                    writing.batches.push_front(batch);
                    core.writing = Some(writing);
                    return false;
                }
                Err(ProposeError::Append(error)) => {
                    tracing::warn!(%error, partition = self.partition.id.partition, "writing consumer groups");
                    core.refuse(writing, refusal(&error));
                    return true;
                }
            }
        }
        core.hand_on(writing.replies);
        true
    }

    /// Goes on with a stalled decision when the journal has room again.
    async fn wait_for_room(self: Rc<Self>) {
        let storage = self.shard.upgrade().map(|shard| shard.storage().clone());
        if let Some(storage) = storage {
            storage.room().await;
        }
        self.core.borrow_mut().waits_for_room = false;
        self.pump();
        self.timers_moved.notify_all();
    }

    /// Lets replies go when what they depend on is raft-committed (invariant 3).
    async fn release(self: Rc<Self>) {
        loop {
            let proposal = match self.core.borrow().in_flight.front() {
                Some(first) => first.proposal,
                None => break,
            };
            let ended = self.ended.listen();
            if self.phase.get() == Phase::Ended {
                break;
            }
            let committed = pin!(self.partition.group().committed(&proposal));
            match select(committed, ended).await {
                Either::Left((Ok(()), _)) => {
                    let first = self.core.borrow_mut().in_flight.pop_front();
                    for (answer, reply) in first.into_iter().flat_map(|first| first.replies) {
                        answer.send(reply);
                    }
                }
                Either::Left((Err(error), _)) => {
                    tracing::warn!(%error, partition = self.partition.id.partition, "consumer groups are not committed");
                    self.reload();
                    break;
                }
                Either::Right(_) => break,
            }
        }
        self.core.borrow_mut().releasing = false;
    }

    /// Forgets what may not have been raft-committed, and reads the log anew.
    fn reload(self: &Rc<Self>) {
        self.phase.set(Phase::Loading);
        {
            let core = &mut *self.core.borrow_mut();
            core.fail_all(ErrorCode::NotCoordinator);
            core.timers.clear();
        }
        task::spawn(Rc::clone(self).load());
    }

    /// Runs timers until the coordinator ends.
    pub(super) async fn run_timers(self: Rc<Self>) {
        loop {
            let moved = self.timers_moved.listen();
            if self.phase.get() == Phase::Ended {
                return;
            }
            let next = {
                let core = self.core.borrow();
                // What a stalled decision leaves behind decides who is late.
                if core.writing.is_some() { None } else { core.timers.next() }
            };
            match next {
                None => moved.await,
                Some(next) => {
                    let _ = time::timeout(next.duration_since(time::now()), moved).await;
                }
            }
            self.run_due();
        }
    }

    fn run_due(self: &Rc<Self>) {
        loop {
            {
                let core = &mut *self.core.borrow_mut();
                if core.writing.is_some() {
                    return;
                }
                let Some(timer) = core.timers.pop_due(time::now()) else { return };
                if timer == Timer::Expiry {
                    core.inbox.extend(self.deleted_topics(core));
                }
                core.inbox.push_back(Input::Timer(timer));
            }
            self.pump();
        }
    }

    /// Topics with offsets that exist no more.
    fn deleted_topics(&self, core: &Core) -> Option<Input> {
        let image = self.shard.upgrade()?.image();
        let topics =
            core.groups.topics_committed_before(time::wall_ms().saturating_sub(TOPIC_KNOWN_AFTER_MS));
        let gone: Vec<_> = topics.into_iter().filter(|(_, id)| image.topic_by_id(id).is_none()).collect();
        (!gone.is_empty()).then_some(Input::TopicsDeleted(gone))
    }
}

impl Core {
    /// Decides on one input. Timers change at once; records and replies are left in `writing`.
    fn decide(&mut self, input: Input) {
        let now_ms = time::wall_ms();
        let entropy = u128::from(random::u64()) << 64 | u128::from(random::u64());
        let decision = self.groups.decide(&mut self.soft, now_ms, entropy, input);
        for rebalance in &decision.rebalances {
            let (group, generation) = (&rebalance.group_id, rebalance.generation);
            tracing::info!(%group, generation, reason = rebalance.reason, "rebalancing a consumer group");
        }
        let now = time::now();
        for change in decision.timers {
            self.timers.change(now, change);
        }
        let touches_members = decision.records.iter().any(|it| matches!(it, Record::GroupMetadata { .. }));
        let mut writing = Writing { batches: VecDeque::new(), replies: decision.replies, touches_members };
        match batches(decision.records, now_ms) {
            Ok(batches) => {
                writing.batches = batches;
                self.writing = Some(writing);
            }
            Err(error) => {
                // A text of the request is longer than a record may hold.
                tracing::info!(%error, "refusing a request to a consumer group");
                self.refuse(writing, ErrorCode::InvalidRequest);
            }
        }
    }

    /// Passes replies on to where they wait for their proposals.
    fn hand_on(&mut self, replies: Vec<(RequestId, Reply)>) {
        for (id, reply) in replies {
            let Some(answer) = self.waiting.remove(&id) else { continue };
            match self.in_flight.back_mut() {
                Some(last) => last.replies.push((answer, reply)),
                None => answer.send(reply),
            }
        }
    }

    /// A decision that the log did not take. Where it changed members, the live side goes back to what is stored, as
    /// after a restart; where it only changed offsets, nothing else depends on it.
    fn refuse(&mut self, writing: Writing, error: ErrorCode) {
        if writing.touches_members {
            for answer in std::mem::take(&mut self.waiting).into_values() {
                answer.send(Reply::Failed(error));
            }
            self.restart_soft();
        } else {
            let failed = writing.replies.into_iter().map(|(id, _)| (id, Reply::Failed(error)));
            self.hand_on(failed.collect());
        }
    }

    /// Begins with what is stored.
    fn restart_soft(&mut self) {
        self.soft = Soft::new();
        self.timers.clear();
        self.inbox.clear();
        self.inbox.push_back(Input::Loaded);
    }

    fn fail_all(&mut self, error: ErrorCode) {
        self.inbox.clear();
        self.writing = None;
        let decided = std::mem::take(&mut self.in_flight).into_iter().flat_map(|it| it.replies);
        let undecided = std::mem::take(&mut self.waiting).into_values();
        for answer in decided.map(|(answer, _)| answer).chain(undecided) {
            answer.send(Reply::Failed(error));
        }
    }
}

/// Records as batches, in order.
fn batches(records: Vec<Record>, now_ms: i64) -> Result<VecDeque<Batch>, EncodeError> {
    let mut batches = VecDeque::new();
    let mut builder = Builder::new(Codec::None);
    let mut within = Vec::new();
    for record in records {
        let (key, value) = record.encode()?;
        builder.push(now_ms, Some(&key), value.as_deref(), &[]);
        within.push(record);
        if builder.size() >= BATCH_BYTES {
            let full = std::mem::replace(&mut builder, Builder::new(Codec::None));
            batches.push_back(Batch::new(full, std::mem::take(&mut within)));
        }
    }
    if !builder.is_empty() {
        batches.push_back(Batch::new(builder, within));
    }
    Ok(batches)
}

impl Batch {
    fn new(builder: Builder, records: Vec<Record>) -> Self {
        let bytes = builder.build();
        let header = BatchHeader::read(&bytes).expect("a batch that was just built");
        Self { records, bytes, header }
    }
}

/// What clients are told when the log does not take a decision.
fn refusal(error: &AppendError) -> ErrorCode {
    match error {
        // Space may come back here; no other coordinator could do better.
        AppendError::Full | AppendError::Busy => ErrorCode::CoordinatorNotAvailable,
        AppendError::Failed(_) | AppendError::Deleted => ErrorCode::NotCoordinator,
        AppendError::TooLarge { .. } | AppendError::Malformed => ErrorCode::UnknownServerError,
    }
}
