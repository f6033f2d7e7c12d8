//! One producer's connection to one broker: a sending and a receiving task and what is on the way between them. Owns
//! the requests in flight.
//!
//! 1. What is due never waits for an answer, only for a free place among the requests in flight: the schedule goes on
//!    while the broker stalls, and the wait is part of the response time.
//! 2. Nothing is sent twice. What a broker refuses, or does not answer, is counted and makes the run invalid.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use protocol::messages::{ProduceRequest, ProduceResponse};
use protocol::{Records, Str, Uuid};
use runtime::sync::{Permit, Permits, Watch};
use runtime::{task, time};

use crate::batch::BatchMaker;
use crate::client::cluster::Cluster;
use crate::client::connection::{Connection, Requester, Responder};
use crate::error::{BenchError, code_name};
use crate::gatherer::{Gatherer, Piece};
use crate::options::Acks;
use crate::plan::ProducePlan;
use crate::tally::{Acked, Tally};

/// How long a broker may hold a Produce request, ms.
const PRODUCE_TIMEOUT_MS: i32 = 30_000;

/// How long the answers may still take after the schedule's end.
const DRAIN: Duration = Duration::from_secs(60);

/// Name of what became of records that no answer speaks of.
const NO_ANSWER: &str = "NO_ANSWER";

/// A connection that is ready to send.
pub(crate) struct Lane {
    connection: Connection,
    gatherer: Gatherer,
    maker: BatchMaker,
    plan: Arc<ProducePlan>,
    topic: (Str, Uuid),
    tally: Rc<RefCell<Tally>>,
}

/// What both tasks of a lane share.
struct Way {
    plan: Arc<ProducePlan>,
    start: time::Instant,
    tally: Rc<RefCell<Tally>>,
    gatherer: RefCell<Gatherer>,
    in_flight: RefCell<VecDeque<Sent>>,
    sending: Watch<Sending>,
    permits: Permits,
}

/// How far the sending task is.
#[derive(Clone, Copy, PartialEq)]
struct Sending {
    /// Requests that get an answer.
    requests: u64,
    done: bool,
}

/// A request on the way.
struct Sent {
    sent_ns: u64,
    /// In the order of their partitions.
    batches: Vec<SentBatch>,
    _permit: Permit,
}

/// A batch on the way.
struct SentBatch {
    partition: u32,
    piece: Piece,
}

impl Lane {
    /// Connects `producer` to `broker`; an idempotent one gets its id here.
    pub(crate) async fn open(
        plan: &Arc<ProducePlan>,
        cluster: &Cluster,
        producer: u32,
        broker: i32,
        tally: &Rc<RefCell<Tally>>,
    ) -> Result<Self, BenchError> {
        let mut connection = cluster.connect(broker).await?;
        let mut maker = BatchMaker::new(plan);
        if plan.load.idempotent {
            let (id, epoch) = cluster.producer_id(&mut connection).await?;
            maker.be_idempotent(id, epoch);
        }
        let partitions = cluster.led_by(broker).collect();
        let gatherer = Gatherer::new(
            plan.schedule,
            producer,
            partitions,
            plan.partitions,
            plan.linger_ns(),
            plan.batch(),
        );
        Ok(Lane {
            connection,
            gatherer,
            maker,
            plan: Arc::clone(plan),
            topic: (cluster.topic.clone(), cluster.topic_id),
            tally: Rc::clone(tally),
        })
    }

    /// Sends the schedule's records, counted from `start`, and waits for their answers.
    pub(crate) async fn run(self, start: time::Instant) -> Result<(), BenchError> {
        let way = Rc::new(Way {
            permits: Permits::new(u64::from(self.plan.load.max_in_flight)),
            plan: self.plan,
            start,
            tally: self.tally,
            gatherer: RefCell::new(self.gatherer),
            in_flight: RefCell::default(),
            sending: Watch::new(Sending { requests: 0, done: false }),
        });
        let Connection { requester, responder } = self.connection;
        let sender = Sender { way: Rc::clone(&way), requester, maker: self.maker, topic: self.topic };
        let mut sending = task::spawn(sender.run());
        let mut receiving = task::spawn(receive(Rc::clone(&way), responder));
        let end = start + Duration::from_nanos(way.plan.schedule.end_ns()) + DRAIN;
        let outcome = time::timeout(end.duration_since(time::now()), async {
            // The receiver ends when everything sent is answered, or with the connection.
            match (&mut receiving).await {
                Some(Err(error)) => Err(error),
                _ => (&mut sending).await.unwrap_or(Ok(())),
            }
        });
        let outcome = outcome.await;
        sending.cancel();
        receiving.cancel();
        way.count_rest(outcome.is_ok());
        // A run that was given up says so by its unanswered records.
        outcome.unwrap_or(Ok(()))
    }
}

struct Sender {
    way: Rc<Way>,
    requester: Requester,
    maker: BatchMaker,
    topic: (Str, Uuid),
}

impl Sender {
    /// Sends from the start to the schedule's end.
    async fn run(mut self) -> Result<(), BenchError> {
        time::sleep_until(self.way.start).await;
        let mut outcome = Ok(());
        while outcome.is_ok() && self.way.something_ready().await {
            outcome = self.send_one().await;
        }
        let Sending { requests, .. } = self.way.sending.get();
        self.way.sending.set(Sending { requests, done: true });
        outcome
    }

    /// Sends one request of what is ready, once there is a place for it.
    async fn send_one(&mut self) -> Result<(), BenchError> {
        let way = Rc::clone(&self.way);
        let permit = way.permits.acquire(1).await;
        let now_ns = way.now_ns();
        let pieces = {
            let mut gatherer = way.gatherer.borrow_mut();
            gatherer.admit(now_ns);
            gatherer.take(now_ns)
        };
        let (request, batches) = self.request(pieces);
        let sent_ns = way.now_ns();
        way.count_sent(&batches, sent_ns);
        way.in_flight.borrow_mut().push_back(Sent { sent_ns, batches, _permit: permit });
        let Sending { requests, done } = way.sending.get();
        let answered = way.plan.load.acks != Acks::None;
        if answered {
            way.sending.set(Sending { requests: requests + 1, done });
        }
        self.requester.send(&request, way.plan.version).await?;
        if !answered && let Some(sent) = way.take_oldest() {
            way.count_all(sent, way.now_ns());
        }
        task::yield_if_needed().await;
        Ok(())
    }

    fn request(&mut self, pieces: Vec<Piece>) -> (ProduceRequest, Vec<SentBatch>) {
        let gatherer = self.way.gatherer.borrow();
        let mut partition_data = Vec::with_capacity(pieces.len());
        let mut batches = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let partition = gatherer.partition(piece.slot);
            let numbers: Vec<u64> = piece.records.clone().map(|k| gatherer.number(piece.slot, k)).collect();
            let batch = self.maker.make(partition, &numbers);
            partition_data
                .push(PartitionProduceData { index: partition as i32, records: Some(Records::from(batch)) });
            batches.push(SentBatch { partition, piece });
        }
        let (name, topic_id) = self.topic.clone();
        let topic = TopicProduceData { name, topic_id, partition_data };
        let request = ProduceRequest {
            acks: self.way.plan.load.acks.wire(),
            timeout_ms: PRODUCE_TIMEOUT_MS,
            topic_data: vec![topic],
            ..Default::default()
        };
        (request, batches)
    }
}

/// Takes the answers in until the last request has its own.
async fn receive(way: Rc<Way>, mut responder: Responder) -> Result<(), BenchError> {
    let mut received = 0;
    loop {
        let sending = way.sending.wait_until(|sending| sending.done || sending.requests > received).await;
        if sending.requests == received {
            return Ok(());
        }
        let response = responder.receive::<ProduceRequest>(way.plan.version).await?;
        let answered_ns = way.now_ns();
        received += 1;
        let sent = way.take_oldest().expect("an answer comes after its request");
        way.count_answer(sent, response, answered_ns);
    }
}

impl Way {
    fn now_ns(&self) -> u64 {
        time::now().duration_since(self.start).as_nanos() as u64
    }

    fn take_oldest(&self) -> Option<Sent> {
        self.in_flight.borrow_mut().pop_front()
    }

    /// Waits until a batch can be sent; false when the schedule is at its end.
    async fn something_ready(&self) -> bool {
        loop {
            let now_ns = self.now_ns();
            let wake_ns = {
                let mut gatherer = self.gatherer.borrow_mut();
                gatherer.admit(now_ns);
                if gatherer.has_ready(now_ns) {
                    return true;
                }
                gatherer.next_wake_ns(now_ns)
            };
            let Some(wake_ns) = wake_ns else { return false };
            time::sleep_until_sharp(self.start + Duration::from_nanos(wake_ns)).await;
            if self.plan.schedule.measured(wake_ns) {
                self.tally.borrow_mut().jitter(self.now_ns().saturating_sub(wake_ns));
            }
        }
    }

    /// Counts a request and how far behind the schedule its oldest records are.
    fn count_sent(&self, batches: &[SentBatch], sent_ns: u64) {
        let mut tally = self.tally.borrow_mut();
        tally.requests += 1;
        if !self.plan.schedule.open_loop() {
            return;
        }
        let gatherer = self.gatherer.borrow();
        for SentBatch { piece, .. } in batches {
            let due_ns = self.plan.schedule.due_ns(gatherer.number(piece.slot, piece.records.start));
            if self.plan.schedule.measured(due_ns) {
                tally.behind(sent_ns.saturating_sub(due_ns + self.plan.linger_ns()));
            }
        }
    }

    /// Counts every record of an answered request.
    fn count_answer(&self, sent: Sent, response: ProduceResponse, answered_ns: u64) {
        let mut unanswered = vec![true; sent.batches.len()];
        for answer in response.responses.into_iter().flat_map(|topic| topic.partition_responses) {
            let place = sent.batches.binary_search_by_key(&answer.index, |batch| batch.partition as i32);
            let Ok(place) = place else { continue };
            if !std::mem::take(&mut unanswered[place]) {
                continue;
            }
            if answer.error_code == 0 {
                self.count_batch(&sent.batches[place], sent.sent_ns, answered_ns);
            } else {
                let records = sent.batches[place].piece.len();
                self.tally.borrow_mut().failed(&code_name(answer.error_code), records);
            }
        }
        for (batch, _) in sent.batches.iter().zip(unanswered).filter(|(_, unanswered)| *unanswered) {
            self.tally.borrow_mut().failed(NO_ANSWER, batch.piece.len());
        }
    }

    /// Counts every record of a request that gets no answer.
    fn count_all(&self, sent: Sent, written_ns: u64) {
        for batch in &sent.batches {
            self.count_batch(batch, sent.sent_ns, written_ns);
        }
    }

    fn count_batch(&self, batch: &SentBatch, sent_ns: u64, answered_ns: u64) {
        let schedule = &self.plan.schedule;
        let gatherer = self.gatherer.borrow();
        let mut tally = self.tally.borrow_mut();
        for k in batch.piece.records.clone() {
            let due_ns = schedule.open_loop().then(|| schedule.due_ns(gatherer.number(batch.piece.slot, k)));
            tally.acked(Acked {
                due_ns,
                sent_ns,
                answered_ns,
                value_bytes: self.plan.load.record_size_bytes as u64,
                measured: schedule.measured(due_ns.unwrap_or(sent_ns)),
            });
        }
    }

    /// Counts what has no answer when the lane ends: lost with the connection, or given up.
    fn count_rest(&self, lost: bool) {
        let mut tally = self.tally.borrow_mut();
        for sent in self.in_flight.borrow_mut().drain(..) {
            let records = sent.batches.iter().map(|batch| batch.piece.len()).sum();
            if lost { tally.failed(NO_ANSWER, records) } else { tally.unanswered += records }
        }
        tally.unsent += self.gatherer.borrow().untaken();
    }
}
