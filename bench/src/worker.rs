//! One shard of the generator: opens its share of the connections, starts together with the other shards, and sends
//! what was counted to the coordinator a few times a second. Runs in either world.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use runtime::mailbox;
use runtime::shard::Seed;
use runtime::sync::Watch;
use runtime::{task, time};

use crate::consumer::Fetcher;
use crate::error::BenchError;
use crate::null;
use crate::plan::{Event, Gate, Plan};
use crate::producer::Lane;
use crate::tally::Tally;

/// How often counts go to the coordinator.
const COUNT_INTERVAL: Duration = Duration::from_millis(200);

/// From the moment that all are ready to the start of the schedule: long enough for the word to reach every shard.
const START_DELAY: Duration = Duration::from_millis(20);

/// A shard's share of the connections.
struct Share {
    lanes: Vec<Lane>,
    fetchers: Vec<Fetcher>,
}

/// Main of a shard.
pub(crate) async fn main(seed: Seed<Gate>, plan: Plan, events: mailbox::Sender<Event>) {
    let tell = |event| {
        // A coordinator that went away wants to know no more.
        let _ = events.send(event);
    };
    let tally = Rc::new(RefCell::new(Tally::default()));
    let share = open(&seed, &plan, &tally).await;
    if let Err(error) = &share {
        tell(Event::Broken(error.to_string()));
    }
    let gate = Gatekeeper { seed, produced: 0 };
    let (start, gate) = gate.start(share.is_ok(), &events).await;
    if let (Ok(share), Some(start)) = (share, start) {
        let counting = task::spawn(count(Rc::clone(&tally), events.clone()));
        for outcome in run(share, &plan, gate, start, &tally).await {
            if let Err(error) = outcome {
                tell(Event::Broken(error.to_string()));
            }
        }
        counting.cancel();
    }
    tell(Event::Counted(Box::new(tally.borrow_mut().take())));
    tell(Event::Finished);
}

/// Sends what was counted, again and again.
async fn count(tally: Rc<RefCell<Tally>>, events: mailbox::Sender<Event>) {
    loop {
        time::sleep(COUNT_INTERVAL).await;
        let counted = tally.borrow_mut().take();
        if events.send(Event::Counted(Box::new(counted))).is_err() {
            return;
        }
    }
}

/// Opens the connections of this shard: every producer and consumer has one to each broker that leads a partition.
async fn open(seed: &Seed<Gate>, plan: &Plan, tally: &Rc<RefCell<Tally>>) -> Result<Share, BenchError> {
    let mut share = Share { lanes: Vec::new(), fetchers: Vec::new() };
    let Some(cluster) = &plan.cluster else { return Ok(share) };
    if let Some(produce) = &plan.produce {
        for producer in mine(seed, produce.load.producers) {
            for broker in cluster.brokers.keys() {
                share.lanes.push(Lane::open(produce, cluster, producer, *broker, tally).await?);
            }
        }
    }
    if let Some(consume) = &plan.consume {
        let consumers = consume.fetching.consumers;
        for consumer in mine(seed, consumers) {
            let budget = Rc::new(Cell::new(consume.records_each));
            for broker in cluster.brokers.keys() {
                let led = cluster.led_by(*broker);
                let partitions: Vec<u32> =
                    led.filter(|partition| partition % consumers == consumer).collect();
                if !partitions.is_empty() {
                    let fetcher =
                        Fetcher::open(consume, cluster, *broker, &partitions, &budget, tally).await?;
                    share.fetchers.push(fetcher);
                }
            }
        }
    }
    Ok(share)
}

/// Producers or consumers of this shard, of `count`.
fn mine(seed: &Seed<Gate>, count: u32) -> impl Iterator<Item = u32> + use<> {
    (u32::from(seed.id.0)..count).step_by(usize::from(seed.count))
}

/// Runs everything of this shard to its end.
async fn run(
    share: Share,
    plan: &Plan,
    gate: Gatekeeper,
    start: time::Instant,
    tally: &Rc<RefCell<Tally>>,
) -> Vec<Result<(), BenchError>> {
    let produced = Watch::new(plan.produce.is_none());
    let lanes = share.lanes.into_iter().map(|lane| task::spawn(lane.run(start)));
    let fetchers =
        share.fetchers.into_iter().map(|fetcher| task::spawn(fetcher.run(start, produced.clone())));
    let (lanes, fetchers): (Vec<_>, Vec<_>) = (lanes.collect(), fetchers.collect());
    if let (Some(produce), None) = (&plan.produce, &plan.cluster) {
        let lanes = mine(&gate.seed, produce.load.producers)
            .map(|producer| null::run(Arc::clone(produce), producer, start, Rc::clone(tally)));
        join_all(lanes).await;
    }
    let mut outcomes = join_all(lanes).await;
    if plan.consume.is_some() {
        gate.wait_for_all_producers().await;
        produced.set(true);
    }
    outcomes.extend(join_all(fetchers).await);
    outcomes.into_iter().flatten().collect()
}

/// Keeps the shards together: all start at one time, and each learns when the producers of all are done.
struct Gatekeeper {
    seed: Seed<Gate>,
    produced: u16,
}

impl Gatekeeper {
    /// Tells shard 0 whether this shard is ready and waits for the time to start; `None` when some shard is not.
    async fn start(
        mut self,
        ready: bool,
        events: &mailbox::Sender<Event>,
    ) -> (Option<time::Instant>, Gatekeeper) {
        send(&self.seed.peers[..1], Gate::Ready(ready));
        let (mut heard, mut all_ready) = (0, true);
        loop {
            match self.seed.inbox.recv().await {
                Some(Gate::Ready(ready)) => {
                    heard += 1;
                    all_ready &= ready;
                    if heard == self.seed.count {
                        let start = all_ready.then(|| time::now() + START_DELAY);
                        if let Some(start) = start {
                            // A coordinator that went away wants to know no more.
                            let _ = events.send(Event::Started(start));
                        }
                        send(&self.seed.peers, Gate::Go(start));
                    }
                }
                Some(Gate::Go(start)) => return (start, self),
                Some(Gate::Produced) => self.produced += 1,
                None => return (None, self),
            }
        }
    }

    /// Tells all that the producers of this shard are done, and waits until all have said so.
    async fn wait_for_all_producers(mut self) {
        send(&self.seed.peers, Gate::Produced);
        while self.produced < self.seed.count {
            match self.seed.inbox.recv().await {
                Some(Gate::Produced) => self.produced += 1,
                Some(_) => {}
                None => return,
            }
        }
    }
}

fn send(peers: &[mailbox::Sender<Gate>], word: Gate) {
    for peer in peers {
        // A shard that ended has said why to the coordinator.
        let _ = peer.send(word);
    }
}
