//! One run: faults under load, then healing, then everything is read and judged.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use broker::config::NodeConfig;
use protocol::Str;
use protocol::messages::CreateTopicsRequest;
use protocol::messages::create_topics_request::CreatableTopic;
use runtime::sim::Sim;
use runtime::time;

use crate::checks;
use crate::client::Link;
use crate::fetcher;
use crate::history::{Breach, FinalLog};
use crate::plan::Plan;
use crate::timeline::{self, Sometimes};
use crate::value::Place;
use crate::world::{NODE, Status, World};
use crate::{committer, nemesis, producer};

/// Virtual time that a whole run may take.
const RUN_LIMIT: Duration = Duration::from_secs(600);
/// The longest time from the last fault until everything is served again.
const LIVENESS_LIMIT: Duration = Duration::from_secs(10);
/// The longest time until all producers have got rid of what waits.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// What came of a run.
pub(crate) struct Outcome {
    pub seed: u64,
    pub breaches: Vec<Breach>,
    pub story: Vec<String>,
    pub met: Vec<Sometimes>,
    /// The simulator's hash of every step.
    pub trace: u64,
    pub records: usize,
}

/// Runs a seed.
pub(crate) fn run(seed: u64) -> Outcome {
    let ((history, trace, panicked), story, met) = timeline::tell(|| {
        let kept: RefCell<Option<Rc<World>>> = RefCell::default();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let plan = Plan::new(seed);
            let sim = Sim::new(seed, plan.sim.clone());
            let world = World::new(&sim, plan);
            kept.replace(Some(Rc::clone(&world)));
            if sim.block_on(RUN_LIMIT, script(Rc::clone(&world))).is_none() {
                let what = format!("the run has not ended after {} s", RUN_LIMIT.as_secs());
                world.history.borrow_mut().breach(checks::SERVES_AGAIN, what);
            }
            world.ended.set(true);
            sim.trace_hash()
        }));
        let history = kept.take().map(|world| world.history.take()).unwrap_or_default();
        match ran {
            Ok(trace) => (history, trace, None),
            Err(panic) => (history, 0, Some(panic_text(panic.as_ref()))),
        }
    });
    let mut breaches = match &panicked {
        // What was not read at the end proves nothing.
        Some(what) => vec![Breach { check: checks::NO_PANIC, what: what.clone() }],
        None if history.logs.is_empty() => history.breaches.clone(),
        None => checks::judge(&history),
    };
    if breaches.is_empty() && history.logs.is_empty() {
        breaches.push(Breach { check: checks::SERVES_AGAIN, what: "nothing was read".to_owned() });
    }
    let records = history.logs.values().map(|log| log.records.len()).sum();
    Outcome { seed, breaches, story, met, trace, records }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}

/// The run as a client task that holds all strings.
async fn script(world: Rc<World>) {
    if !world.ensure_up().await || !create_topics(&world).await {
        return;
    }
    let plan = world.plan.clone();
    let NodeConfig { memory_bytes, log_segment_bytes, journal_file_bytes, journal_files_max, .. } =
        &*plan.config;
    timeline::note(format_args!(
        "{} shards, {memory_bytes} bytes of memory, segments of {log_segment_bytes} bytes, {journal_files_max} journal files of \
         {journal_file_bytes} bytes",
        plan.shards
    ));
    for producer in &plan.producers {
        timeline::note(format_args!("{producer:?}"));
    }
    let mut load = Vec::new();
    for producer in plan.producers {
        load.push(world.sim.spawn_client(producer::run(Rc::clone(&world), producer)));
    }
    for number in 0..plan.fetchers {
        drop(world.sim.spawn_client(fetcher::run(Rc::clone(&world), number)));
    }
    if plan.with_group {
        load.push(world.sim.spawn_client(committer::run(Rc::clone(&world))));
    }
    nemesis::run(Rc::clone(&world)).await;
    nemesis::heal(&world);
    if !world.ensure_up().await {
        return;
    }
    // Everything is served again, with the load still on.
    if !all_readable(&world).await {
        return;
    }
    time::sleep(Duration::from_millis(100)).await;
    world.winding_down.set(true);
    let drained = time::sleep(DRAIN_LIMIT);
    let all = async {
        for producer in load {
            producer.await;
        }
    };
    futures::pin_mut!(drained, all);
    if let futures::future::Either::Left(_) = futures::future::select(drained, all).await {
        if let Status::Ready(handle) = world.status() {
            for shard in handle.stats().await {
                timeline::note(format_args!(
                    "shard {}: {:?} {:?}",
                    shard.shard, shard.counters, shard.gauges
                ));
            }
        }
        world.breach(checks::SERVES_AGAIN, "producers still repeat what is not acknowledged");
        world.ended.set(true);
    }
    // What is read at the end is what a last power cut leaves.
    world.cut_power();
    if world.ensure_up().await && all_readable(&world).await {
        read_all(&world).await;
    }
}

async fn create_topics(world: &Rc<World>) -> bool {
    let mut link = Link::new(world);
    let topics = world.plan.places.iter().map(|place| place.topic);
    for topic in topics.max().map_or(0..0, |last| 0..last + 1) {
        let place = Place { topic, partition: 0 };
        let wanted = CreatableTopic {
            name: Str::from(place.topic_name().as_str()),
            num_partitions: world.plan.partitions(topic),
            replication_factor: -1,
            ..CreatableTopic::default()
        };
        let request =
            CreateTopicsRequest { topics: vec![wanted], timeout_ms: 5000, ..CreateTopicsRequest::default() };
        // A client may lose patience with what is done all the same.
        let exists = protocol::ErrorCode::TopicAlreadyExists.code();
        let mut created = false;
        for _ in 0..10 {
            let answer = link.call(7, &request).await;
            created = answer.is_ok_and(|answer| {
                answer.topics.first().is_some_and(|topic| topic.error_code == 0 || topic.error_code == exists)
            });
            if created {
                break;
            }
        }
        if !created {
            world.breach(checks::SERVES_AGAIN, format!("topic {} is not created", place.topic_name()));
            return false;
        }
    }
    true
}

/// Waits until every partition shows at least what was acknowledged or shown before.
async fn all_readable(world: &Rc<World>) -> bool {
    let began = time::now();
    let mut link = Link::new(world);
    for place in world.plan.places.clone() {
        loop {
            let end = world.history.borrow().end_of(place);
            if fetcher::fetch(world, &mut link, place, end, 1 << 20, 0).await.is_some() {
                break;
            }
            let late = began.elapsed() > LIVENESS_LIMIT;
            if late || !world.sim.is_running(NODE) {
                // Where the records are gone, other checks say so, once the log is read.
                if !world.sim.is_running(NODE) {
                    world.breach(checks::SERVES_AGAIN, "the node has ended without a fault");
                    return false;
                }
                break;
            }
            time::sleep(Duration::from_millis(50)).await;
        }
    }
    true
}

/// Reads every partition from its start.
async fn read_all(world: &Rc<World>) {
    let mut link = Link::new(world);
    for place in world.plan.places.clone() {
        let began = time::now();
        let mut log = FinalLog::default();
        loop {
            let from = log.records.last().map_or(0, |(offset, _)| offset + 1);
            match fetcher::fetch(world, &mut link, place, from, 1 << 20, 0).await {
                Some(fetched) => {
                    let ended = fetched.records.is_empty();
                    log.records.extend(fetched.records);
                    (log.high_watermark, log.log_start) = (fetched.high_watermark, fetched.log_start);
                    if ended {
                        break;
                    }
                }
                None if began.elapsed() > LIVENESS_LIMIT => {
                    world.breach(checks::SERVES_AGAIN, format!("{place} cannot be read"));
                    break;
                }
                None => time::sleep(Duration::from_millis(50)).await,
            }
        }
        world.history.borrow_mut().logs.insert(place, log);
    }
    if !world.history.borrow().committed.is_empty() {
        let began = time::now();
        while committer::ask(world, &mut link).await.is_none() {
            if began.elapsed() > LIVENESS_LIMIT {
                world.breach(checks::SERVES_AGAIN, "the group's offset cannot be read");
                break;
            }
            time::sleep(Duration::from_millis(50)).await;
        }
    }
}
