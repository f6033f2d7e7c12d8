//! Producers: idempotent ones, which repeat what was not acknowledged in its order, and plain ones, which never do.
//!
//! 1. A batch keeps its sequence number however often it is sent.
//! 2. The first batch of a producer id goes alone: a broker that does not know the id takes any first sequence number.
//! 3. Only an answer that says so makes a record acknowledged or refused; everything else leaves its fate open.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use protocol::messages::{InitProducerIdRequest, ProduceRequest, ProduceResponse};
use protocol::record::{Builder, Codec, Producer};
use protocol::{ErrorCode, Records};
use runtime::time;

use crate::checks;
use crate::client::Link;
use crate::dice::Dice;
use crate::history::Ack;
use crate::plan::{Kind, ProducerPlan};
use crate::timeline::{self, Sometimes};
use crate::value::Value;
use crate::world::World;

const PRODUCE_VERSION: i16 = 12;
/// Batches of a producer that a broker knows again.
const KNOWN_BATCHES: usize = 5;
/// One acknowledged batch in so many is sent again on purpose, as if its answer had been lost.
const REPEAT_PERCENT: u64 = 8;
/// One batch of a plain producer in so many is damaged on its way.
const DAMAGE_PERCENT: u64 = 3;

/// Runs one producer until it has sent all, and, if it is idempotent, all is acknowledged.
pub(crate) async fn run(world: Rc<World>, plan: ProducerPlan) {
    let dice = Dice::new(world.plan.seed, &format!("producer {}", plan.number));
    let link = Link::new(&world);
    let sender = Sender {
        world,
        plan,
        dice,
        link,
        next_value: 0,
        next_sequence: 0,
        identity: None,
        told: Cell::new(ErrorCode::None),
    };
    match sender.plan.kind {
        Kind::Idempotent { window } => sender.idempotent(window).await,
        Kind::Plain { acks } => sender.plain(acks).await,
    }
}

struct Sender {
    world: Rc<World>,
    plan: ProducerPlan,
    dice: Dice,
    link: Link,
    next_value: u32,
    next_sequence: i32,
    identity: Option<(i64, i16)>,
    /// The last error, of which a repetition is no news.
    told: Cell<ErrorCode>,
}

/// A batch and what is in it.
#[derive(Clone)]
struct Batch {
    values: Vec<Value>,
    bytes: Bytes,
}

/// What an answer says of a batch.
enum Said {
    Acknowledged(i64),
    Refused(ErrorCode),
    Nothing,
}

impl Sender {
    async fn idempotent(mut self, window: usize) {
        self.world.history.borrow_mut().idempotent.insert(self.plan.number);
        if !self.identify().await {
            return;
        }
        let mut waiting: VecDeque<Batch> = VecDeque::new();
        let mut known: VecDeque<(Batch, i64, u32)> = VecDeque::new();
        let (mut sent, mut made) = (0, 0);
        while !self.world.ended.get() {
            let room = if known.is_empty() { 1 } else { window };
            while waiting.len() < room && made < self.plan.batches && !self.world.winding_down.get() {
                waiting.push_back(self.next_batch());
                made += 1;
            }
            if waiting.is_empty() {
                return;
            }
            if !self.link.is_open() {
                sent = 0;
            }
            match self.exchange(&waiting, &mut sent).await {
                Said::Acknowledged(offset) => {
                    let batch = waiting.pop_front().expect("a batch was sent");
                    sent -= 1;
                    self.acknowledged(&batch, offset);
                    known.push_back((batch, offset, self.world.starts.get()));
                    if known.len() > KNOWN_BATCHES {
                        known.pop_front();
                    }
                    if waiting.is_empty() && self.dice.chance(REPEAT_PERCENT) {
                        self.repeat(&known).await;
                    }
                    self.pause().await;
                }
                Said::Refused(_) | Said::Nothing => {
                    // What follows on this connection is out of order; all of it is sent again, from the first.
                    self.link.close();
                    time::sleep(self.dice.millis(5..=60)).await;
                }
            }
        }
    }

    /// Gets a producer id, however often it must ask.
    async fn identify(&mut self) -> bool {
        let request = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
        while !self.world.ended.get() && !self.world.winding_down.get() {
            if let Ok(answer) = self.link.call(4, &request).await {
                match ErrorCode::from_code(answer.error_code) {
                    Some(ErrorCode::None) => {
                        self.identity = Some((answer.producer_id, answer.producer_epoch));
                        return true;
                    }
                    // The ids come out of a log that takes nothing at the moment.
                    Some(ErrorCode::CoordinatorNotAvailable) => {}
                    other => self
                        .world
                        .breach(checks::FITTING_ANSWERS, format!("instead of a producer id: {other:?}")),
                }
            }
            time::sleep(Duration::from_millis(30)).await;
        }
        false
    }

    /// Sends what was not sent on this connection yet, and receives the answer to the first.
    async fn exchange(&mut self, waiting: &VecDeque<Batch>, sent: &mut usize) -> Said {
        for batch in waiting.iter().skip(*sent) {
            if self.send(batch, -1).await.is_err() {
                return Said::Nothing;
            }
            *sent += 1;
        }
        self.receive().await
    }

    /// Sends a batch again that is acknowledged: the answer must tell the offset of the first time.
    async fn repeat(&mut self, known: &VecDeque<(Batch, i64, u32)>) {
        let at = self.dice.between(0..=known.len() as u64 - 1) as usize;
        let Some((batch, offset, starts)) = known.get(at) else { return };
        if self.send(batch, -1).await.is_err() {
            return;
        }
        match self.receive().await {
            Said::Acknowledged(again) => {
                if again == *offset {
                    timeline::met(Sometimes::Deduplicated);
                    if *starts != self.world.starts.get() {
                        timeline::met(Sometimes::DeduplicatedAfterStart);
                    }
                }
                self.acknowledged(batch, again);
            }
            Said::Refused(_) | Said::Nothing => self.link.close(),
        }
    }

    async fn plain(mut self, acks: i16) {
        for _ in 0..self.plan.batches {
            if self.world.ended.get() || self.world.winding_down.get() {
                return;
            }
            let mut batch = self.next_batch();
            let damaged = acks != 0 && self.dice.chance(DAMAGE_PERCENT);
            if damaged {
                batch.bytes = flip_last_bit(&batch.bytes);
                self.world.history.borrow_mut().refused.extend(&batch.values);
            }
            let sent = self.send(&batch, acks).await;
            if sent.is_ok() && acks == 0 {
                self.pause().await;
                continue;
            }
            match self.receive().await {
                Said::Acknowledged(offset) => self.acknowledged(&batch, offset),
                Said::Refused(ErrorCode::CorruptMessage) if damaged => {}
                Said::Refused(_) | Said::Nothing => {
                    self.link.close();
                    time::sleep(self.dice.millis(5..=60)).await;
                }
            }
            self.pause().await;
        }
    }

    fn next_batch(&mut self) -> Batch {
        let count = self.dice.between(1..=self.plan.records_max) as u32;
        let mut builder = Builder::new(Codec::None);
        if let Some((id, epoch)) = self.identity {
            builder = builder.producer(Producer { id, epoch, base_sequence: self.next_sequence });
        }
        let mut values = Vec::new();
        for counter in self.next_value..self.next_value + count {
            let value = Value { place: self.plan.place, producer: self.plan.number, counter };
            builder.push(time::wall_ms(), None, Some(&value.encode(self.plan.filler_max)), &[]);
            values.push(value);
        }
        self.next_value += count;
        self.next_sequence += count as i32;
        self.world.history.borrow_mut().sent.insert(self.plan.number, self.next_value);
        Batch { values, bytes: builder.build() }
    }

    async fn send(&mut self, batch: &Batch, acks: i16) -> std::io::Result<()> {
        let Value { place, .. } = batch.values[0];
        let records = Some(Records::from(batch.bytes.clone()));
        let topic = TopicProduceData {
            name: place.topic_name().as_str().into(),
            partition_data: vec![PartitionProduceData { index: place.partition, records }],
            ..TopicProduceData::default()
        };
        let request =
            ProduceRequest { acks, timeout_ms: 1000, topic_data: vec![topic], ..ProduceRequest::default() };
        self.link.send(PRODUCE_VERSION, &request).await
    }

    async fn receive(&mut self) -> Said {
        let response = match self.link.receive::<ProduceRequest>(PRODUCE_VERSION).await {
            Ok(response) => response,
            Err(error) => {
                // Nothing is told of those that find nobody to connect to, again and again.
                if error.kind() != std::io::ErrorKind::NotConnected {
                    timeline::note(format_args!("producer {} got no answer: {error}", self.plan.number));
                }
                return Said::Nothing;
            }
        };
        let (code, offset) = outcome(&response);
        match ErrorCode::from_code(code).unwrap_or(ErrorCode::UnknownServerError) {
            ErrorCode::None => Said::Acknowledged(offset),
            error => {
                self.judge(error);
                Said::Refused(error)
            }
        }
    }

    /// Notes an error that the situation does not justify.
    fn judge(&self, error: ErrorCode) {
        let idempotent = self.identity.is_some();
        if self.told.replace(error) != error {
            timeline::note(format_args!("producer {} was told {}", self.plan.number, error.name()));
        }
        match error {
            ErrorCode::KafkaStorageError if self.world.storage_may_refuse() => {
                if self.world.disk_full.get() {
                    timeline::met(Sometimes::FullDiskRejection);
                }
            }
            // Its shard is ending.
            ErrorCode::NotLeaderOrFollower if self.world.storage_may_refuse() => {}
            // Behind a batch that was refused.
            ErrorCode::OutOfOrderSequenceNumber if idempotent => {}
            ErrorCode::CorruptMessage if !idempotent => {}
            other => self.world.breach(
                checks::FITTING_ANSWERS,
                format!("producer {} was told {}", self.plan.number, other.name()),
            ),
        }
    }

    fn acknowledged(&self, batch: &Batch, base_offset: i64) {
        self.told.set(ErrorCode::None);
        let mut history = self.world.history.borrow_mut();
        let answered_at = history.tick();
        let acks = batch.values.iter().zip(base_offset..);
        history.acks.extend(acks.map(|(value, offset)| Ack { value: *value, offset, answered_at }));
    }

    async fn pause(&self) {
        time::sleep(self.dice.millis(0..=self.plan.pause_max_ms)).await;
    }
}

fn outcome(response: &ProduceResponse) -> (i16, i64) {
    let partition = response.responses.first().and_then(|topic| topic.partition_responses.first());
    partition.map_or((-1, -1), |partition| (partition.error_code, partition.base_offset))
}

fn flip_last_bit(bytes: &Bytes) -> Bytes {
    let mut damaged = BytesMut::from(bytes.as_ref());
    if let Some(last) = damaged.last_mut() {
        *last ^= 1;
    }
    damaged.freeze()
}
