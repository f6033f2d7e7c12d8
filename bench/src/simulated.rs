//! Whole runs in the simulated world against the stub: what is counted, what is hidden by nothing, what makes a run
//! invalid.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use protocol::ErrorCode;
use runtime::mailbox;
use runtime::sim::{NodeId, Sim, SimConfig};
use serde::Serialize;

use crate::error::BenchError;
use crate::gather::Listener;
use crate::options::{Acks, ConsumeOptions, EndToEndOptions, ProduceOptions};
use crate::plan::Plan;
use crate::progress::{Pace, unobserved};
use crate::report::{Produced, Report};
use crate::run::{consume_plan, end_to_end_plan, produce_plan, report};
use crate::stub::{self, Script};
use crate::worker;

const BROKER: NodeId = NodeId(2);
const GENERATOR: NodeId = NodeId(1);
const LIMIT: Duration = Duration::from_secs(600);

/// A world with the stub in it.
struct World {
    sim: Sim,
    bootstrap: String,
}

impl World {
    /// `brokers` listeners.
    fn new(seed: u64, brokers: u16, script: Script) -> Self {
        let sim = Sim::new(seed, SimConfig::default());
        let listeners = (0..brokers).map(|broker| SocketAddr::new(BROKER.ip(), 9092 + broker)).collect();
        let script = Script { listeners, ..script };
        sim.start_node(BROKER, 1, move |_: runtime::shard::Seed<()>| stub::serve(script.clone()));
        World { sim, bootstrap: format!("{}:9092", BROKER.ip()) }
    }

    fn produce_options(&self) -> ProduceOptions {
        let mut options = ProduceOptions::new(&self.bootstrap, "t");
        options.target.partitions = 4;
        options.load.record_size_bytes = 100;
        options.load.duration_s = 3.0;
        options
    }

    fn produce(&self, options: &ProduceOptions) -> Result<Report, BenchError> {
        options.check()?;
        self.run(options, produce_plan(options.clone()), options.generator.shards)
    }

    /// Runs a plan on a generator of its own machine.
    fn run(
        &self,
        options: &impl Serialize,
        plan: impl Future<Output = Result<Plan, BenchError>> + 'static,
        shards: u16,
    ) -> Result<Report, BenchError> {
        let plan = self.sim.block_on(LIMIT, plan).expect("a plan in time")?;
        let (events, inbox) = mailbox::channel();
        let told = plan.clone();
        self.sim.start_node(GENERATOR, shards, move |seed| worker::main(seed, told.clone(), events.clone()));
        let listener = Listener { shards, hlog: None, pace: Pace::of(&plan), observer: unobserved() };
        let outcome = self.sim.block_on(LIMIT, listener.listen(inbox)).expect("an end in time")?;
        Ok(report("simulated", options, &plan, outcome, None))
    }
}

/// Every record of the schedule has become exactly one thing.
fn accounted(produced: &Produced) -> u64 {
    produced.acked_records
        + produced.warmup_records
        + produced.failed_records
        + produced.unanswered_records
        + produced.unsent_records
}

#[test]
fn a_stalled_broker_is_seen_by_every_record_that_was_due_meanwhile() {
    let stall = Duration::from_millis(1000)..Duration::from_millis(1500);
    let world = World::new(1, 1, Script { stall: Some(stall), ..Script::default() });
    let report = world.produce(&world.produce_options()).unwrap();
    assert!(report.valid, "{:?}", report.invalid_reasons);
    let produced = report.produced.as_ref().unwrap();
    assert_eq!((produced.planned_records, produced.acked_records), (Some(3000), 3000));
    // 500 of 3000 records were due in the stall: their response times run from 500 ms down to none.
    let (response, service) = (&report.latency_us["response"], &report.latency_us["service"]);
    assert!((450_000..600_000).contains(&response.max), "{response:?}");
    assert!((200_000..500_000).contains(&response.p90), "{response:?}");
    // Only five requests could be on the way, so the time from sending hides the stall from nine records of ten.
    assert!(service.p90 < 50_000, "{service:?}");
    assert!(report.generator.behind_max_us > 400_000);
}

#[test]
fn a_run_that_falls_behind_by_more_than_the_slack_is_invalid() {
    let stall = Duration::from_millis(500)..Duration::from_millis(1100);
    let world = World::new(2, 1, Script { stall: Some(stall), ..Script::default() });
    let mut options = world.produce_options();
    options.load.slack_ms = 400.0;
    let report = world.produce(&options).unwrap();
    assert!(!report.valid);
    assert!(
        report.invalid_reasons[0].starts_with("fell behind the schedule by"),
        "{:?}",
        report.invalid_reasons
    );
    assert_eq!(report.produced.unwrap().acked_records, 3000);
}

#[test]
fn a_stall_in_the_warm_up_is_not_measured() {
    let stall = Duration::from_millis(100)..Duration::from_millis(700);
    let world = World::new(3, 1, Script { stall: Some(stall), ..Script::default() });
    let mut options = world.produce_options();
    options.load.warmup_s = 1.0;
    options.load.slack_ms = 300.0;
    let report = world.produce(&options).unwrap();
    assert!(report.valid, "{:?}", report.invalid_reasons);
    assert!(report.latency_us["response"].max < 200_000);
    let produced = report.produced.unwrap();
    assert_eq!((produced.acked_records, produced.warmup_records), (3000, 1000));
}

#[test]
fn refused_records_are_counted_by_name() {
    let refuse = Some((2, ErrorCode::NotEnoughReplicas));
    let world = World::new(4, 1, Script { refuse, ..Script::default() });
    let report = world.produce(&world.produce_options()).unwrap();
    assert!(!report.valid);
    assert_eq!(report.errors.get("NOT_ENOUGH_REPLICAS"), Some(&750));
    assert_eq!(accounted(&report.produced.unwrap()), 3000);
}

#[test]
fn records_that_an_answer_leaves_out_have_none() {
    let world = World::new(5, 1, Script { omit: Some(1), ..Script::default() });
    let report = world.produce(&world.produce_options()).unwrap();
    assert!(!report.valid);
    assert_eq!(report.errors.get("NO_ANSWER"), Some(&750));
    assert_eq!(accounted(&report.produced.unwrap()), 3000);
}

#[test]
fn a_lost_connection_ends_the_run_and_every_record_is_accounted_for() {
    let world = World::new(6, 1, Script { close_at: Some(200), ..Script::default() });
    let report = world.produce(&world.produce_options()).unwrap();
    assert!(!report.valid);
    assert!(report.invalid_reasons[0].contains("connection was lost"), "{:?}", report.invalid_reasons);
    let produced = report.produced.unwrap();
    assert!(produced.acked_records > 0 && produced.failed_records > 0 && produced.unsent_records > 0);
    assert_eq!(accounted(&produced), 3000);
}

#[test]
fn a_broker_that_never_answers_is_given_up() {
    let stall = Duration::from_secs(1)..Duration::from_secs(10_000);
    let world = World::new(7, 1, Script { stall: Some(stall), ..Script::default() });
    let report = world.produce(&world.produce_options()).unwrap();
    assert!(!report.valid);
    let produced = report.produced.unwrap();
    assert!(produced.unanswered_records > 0 && produced.unsent_records > 0);
    assert_eq!(accounted(&produced), 3000);
}

#[test]
fn producers_on_several_shards_and_brokers_share_the_schedule() {
    let world = World::new(8, 3, Script { producer_id_refusals: 3, leaderless: 2, ..Script::default() });
    let mut options = world.produce_options();
    options.load.producers = 3;
    options.load.idempotent = true;
    options.load.linger_ms = 100.0;
    options.generator.shards = 2;
    let report = world.produce(&options).unwrap();
    assert!(report.valid, "{:?}", report.invalid_reasons);
    let produced = report.produced.unwrap();
    assert_eq!(produced.acked_records, 3000);
    assert!(produced.requests < 700, "a linger gathers records: {} requests", produced.requests);
    assert!(report.latency_us["response"].p50 >= 40_000);
}

#[test]
fn without_acknowledgements_a_record_is_done_when_it_is_written() {
    let world = World::new(9, 1, Script::default());
    let mut options = world.produce_options();
    options.load.acks = Acks::None;
    let report = world.produce(&options).unwrap();
    assert!(report.valid, "{:?}", report.invalid_reasons);
    assert_eq!(report.produced.unwrap().acked_records, 3000);
}

#[test]
fn without_a_rate_only_service_time_is_told() {
    let world = World::new(10, 2, Script::default());
    let mut options = world.produce_options();
    options.load.rate = 0.0;
    options.load.records = Some(20_000);
    let report = world.produce(&options).unwrap();
    assert!(report.valid, "{:?}", report.invalid_reasons);
    assert_eq!(report.latency_us.keys().copied().collect::<Vec<_>>(), ["service"]);
    assert_eq!(report.produced.unwrap().acked_records, 20_000);
}

#[test]
fn what_was_produced_is_read_from_the_earliest_offset() {
    let world = World::new(11, 2, Script::default());
    world.produce(&world.produce_options()).unwrap();
    let mut options = ConsumeOptions::new(&world.bootstrap, "t");
    options.target.partitions = 4;
    options.fetching.consumers = 3;
    let report = world.run(&options, consume_plan(options.clone()), 2).unwrap();
    assert!(report.valid, "{:?}", report.invalid_reasons);
    assert_eq!(report.consumed.unwrap().records, 3000);

    options.fetching.consumers = 1;
    options.records = Some(100);
    let report = world.run(&options, consume_plan(options.clone()), 1).unwrap();
    assert!((100..1000).contains(&report.consumed.unwrap().records));
}

#[test]
fn end_to_end_reads_each_record_of_the_run_once_and_no_other() {
    let world = World::new(12, 2, Script::default());
    world.produce(&world.produce_options()).unwrap();
    let mut options = EndToEndOptions::new(&world.bootstrap, "t");
    options.target.partitions = 4;
    options.load.duration_s = 2.0;
    options.load.warmup_s = 1.0;
    options.fetching.consumers = 2;
    let report = world.run(&options, end_to_end_plan(options.clone()), 2).unwrap();
    assert!(report.valid, "{:?}", report.invalid_reasons);
    let consumed = report.consumed.unwrap();
    assert_eq!((consumed.records, consumed.foreign_records), (3000, 0));
    assert_eq!(report.latency_us["end_to_end"].count, 2000);
    assert!(report.latency_us["end_to_end"].min > 0);
}

#[test]
fn a_topic_with_other_partitions_is_refused() {
    let world = World::new(13, 1, Script { partitions: Some(3), ..Script::default() });
    let error = world.produce(&world.produce_options()).unwrap_err();
    assert_eq!(error.to_string(), "topic t has 3 partitions, --partitions says 4");
}

#[test]
fn a_cluster_that_is_not_there_is_waited_for_and_then_named() {
    let world = World::new(14, 1, Script::default());
    let mut options = world.produce_options();
    options.target.bootstrap = format!("{}:1", BROKER.ip());
    options.target.wait_s = 0.2;
    let error = world.produce(&options).unwrap_err();
    assert!(error.to_string().starts_with("no connection to"), "{error}");
}
