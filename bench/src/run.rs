//! The entry points of the library: each prepares the cluster, starts the generator's shards, gathers what they count
//! and makes the report. Each blocks its thread, which must not be a shard.

use std::sync::Arc;

use protocol::messages::{FetchRequest, ProduceRequest};
use runtime::{random, shard};
use serde::Serialize;

use crate::client::cluster::{Cluster, End};
use crate::error::BenchError;
use crate::gather::{Outcome, gather};
use crate::host::{ProcessSample, ProcessUse};
use crate::options::{ConsumeOptions, EndToEndOptions, Generator, ProduceOptions};
use crate::plan::{ConsumePlan, Plan, ProducePlan, Stamps};
use crate::progress::Observer;
use crate::report::{Facts, Report, ScheduleFacts};

/// Produces with an open loop, or as fast as possible.
pub fn run_produce(options: &ProduceOptions, observer: Observer) -> Result<Report, BenchError> {
    options.check()?;
    let kind = if options.null_run { "null-run" } else { "produce" };
    let plan = shard::block_on_one(produce_plan(options.clone()))?;
    run(kind, options, &options.generator, plan, observer)
}

/// Reads a topic from its earliest offset to the end that it has now.
pub fn run_consume(options: &ConsumeOptions, observer: Observer) -> Result<Report, BenchError> {
    options.check()?;
    let plan = shard::block_on_one(consume_plan(options.clone()))?;
    run("consume", options, &options.generator, plan, observer)
}

/// Produces and reads at once; latency from when a record was due to when it was read.
pub fn run_end_to_end(options: &EndToEndOptions, observer: Observer) -> Result<Report, BenchError> {
    options.check()?;
    let plan = shard::block_on_one(end_to_end_plan(options.clone()))?;
    run("end-to-end", options, &options.generator, plan, observer)
}

/// The topic is there, its leaders answer, and what is to be sent is known.
pub(crate) async fn produce_plan(options: ProduceOptions) -> Result<Plan, BenchError> {
    let ProduceOptions { target, load, null_run, .. } = options;
    let cluster = if null_run { None } else { Some(Cluster::prepare(&target).await?) };
    let version = cluster.as_ref().map_or(Ok(0), Cluster::version::<ProduceRequest>)?;
    let produce = ProducePlan::new(&load, target.partitions, version, None);
    Ok(Plan { cluster: cluster.map(Arc::new), produce: Some(Arc::new(produce)), consume: None })
}

/// The offsets between which to read are known.
pub(crate) async fn consume_plan(options: ConsumeOptions) -> Result<Plan, BenchError> {
    let ConsumeOptions { target, records, duration_s, fetching, .. } = options;
    let cluster = Cluster::prepare(&target).await?;
    let consume = ConsumePlan {
        version: cluster.version::<FetchRequest>()?,
        from: cluster.offsets(End::Earliest).await?,
        to: Some(cluster.offsets(End::Latest).await?),
        records_each: records.map_or(u64::MAX, |records| records.div_ceil(u64::from(fetching.consumers))),
        duration_s,
        stamps: None,
        fetching,
    };
    Ok(Plan { cluster: Some(Arc::new(cluster)), produce: None, consume: Some(Arc::new(consume)) })
}

/// The offset from which to read is known before the first record is sent.
pub(crate) async fn end_to_end_plan(options: EndToEndOptions) -> Result<Plan, BenchError> {
    let EndToEndOptions { target, load, fetching, .. } = options;
    let cluster = Cluster::prepare(&target).await?;
    let run_id = random::u64();
    let version = cluster.version::<ProduceRequest>()?;
    let produce = ProducePlan::new(&load, target.partitions, version, Some(run_id));
    let consume = ConsumePlan {
        version: cluster.version::<FetchRequest>()?,
        from: cluster.offsets(End::Latest).await?,
        to: None,
        records_each: u64::MAX,
        duration_s: None,
        stamps: Some(Stamps { run_id, schedule: produce.schedule }),
        fetching,
    };
    let (produce, consume) = (Some(Arc::new(produce)), Some(Arc::new(consume)));
    Ok(Plan { cluster: Some(Arc::new(cluster)), produce, consume })
}

/// Runs a plan and reports.
fn run(
    kind: &'static str,
    options: &impl Serialize,
    generator: &Generator,
    plan: Plan,
    observer: Observer,
) -> Result<Report, BenchError> {
    let before = generator.broker_pid.map(ProcessSample::read).transpose()?;
    let outcome = gather(generator, plan.clone(), observer)?;
    let after = generator.broker_pid.map(ProcessSample::read).transpose()?;
    let tally = &outcome.tally;
    let bytes = if plan.produce.is_some() { tally.acked_bytes_all } else { tally.read_bytes };
    let process = before.zip(after).map(|(before, after)| ProcessUse::between(before, after, bytes));
    Ok(report(kind, options, &plan, outcome, process))
}

/// What a run of a plan came to.
pub(crate) fn report(
    kind: &'static str,
    options: &impl Serialize,
    plan: &Plan,
    outcome: Outcome,
    broker_process: Option<ProcessUse>,
) -> Report {
    let schedule = plan.produce.as_ref().map(|produce| ScheduleFacts {
        rate: produce.load.rate,
        warmup_s: produce.load.warmup_s,
        planned_records: produce.schedule.measured_records(),
        slack_ms: produce.load.slack_ms,
    });
    Report::new(Facts {
        kind,
        options: serde_json::to_value(options).expect("options have string keys"),
        start_unix_ms: outcome.start_unix_ms,
        tally: outcome.tally,
        broken: outcome.broken,
        schedule,
        produces: plan.produce.is_some() && plan.cluster.is_some(),
        consumes: plan.consume.is_some(),
        cluster: plan.cluster.as_ref().map(|cluster| cluster.facts()),
        broker_process,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use runtime::net::probe;
    use runtime::shard::ShardsConfig;

    use super::*;
    use crate::progress::Progress;
    use crate::stub::{self, Script};

    #[test]
    fn a_real_run_goes_from_options_to_json() {
        let address = probe("127.0.0.1:0".parse().unwrap()).unwrap();
        let script = Script { listeners: vec![address], ..Script::default() };
        let main = move |_: shard::Seed<()>| stub::serve(script.clone());
        let _serving = shard::start(ShardsConfig::default(), main).unwrap();

        let log = std::env::temp_dir().join(format!("millrace-bench-{}.hlog", std::process::id()));
        let mut options = EndToEndOptions::new(&address.to_string(), "t");
        options.target.partitions = 3;
        options.load.rate = 500.0;
        options.load.duration_s = 0.5;
        options.load.slack_ms = 60_000.0;
        options.generator.shards = 2;
        options.generator.hlog = Some(log.clone());
        options.generator.broker_pid = Some(std::process::id());
        let (seen, progress) = mpsc::channel();
        let observer = move |now: &Progress| seen.send(now.clone()).unwrap();
        let report = run_end_to_end(&options, Box::new(observer)).unwrap();

        assert!(report.valid, "{:?}", report.invalid_reasons);
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(json["produced"]["acked_records"], 250);
        assert_eq!(json["latency_us"]["end_to_end"]["count"], 250);
        assert_eq!(json["options"]["partitions"], 3);
        assert!(json["broker_process"]["rss_after_bytes"].as_u64() > Some(0));
        assert_eq!(progress.iter().last().unwrap().records, 250);
        assert!(std::fs::read_to_string(&log).unwrap().contains("Tag=end-to-end"));
        std::fs::remove_file(log).unwrap();
    }
}
