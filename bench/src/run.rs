//! The entry points of the library: each prepares the cluster, starts the generator's shards, gathers what they count
//! and makes the report. Each blocks its thread, which must not be a shard.

use std::sync::Arc;

use protocol::messages::{FetchRequest, ProduceRequest};
use runtime::{random, shard};
use serde::Serialize;

use crate::client::cluster::{Cluster, End};
use crate::error::BenchError;
use crate::gather::gather;
use crate::host::{ProcessSample, ProcessUse};
use crate::options::{ConsumeOptions, EndToEndOptions, Fetching, Generator, Load, ProduceOptions, Target};
use crate::plan::{ConsumePlan, Plan, ProducePlan, Stamps};
use crate::progress::Observer;
use crate::report::{Facts, ProduceFacts, Report};

/// Produces with an open loop, or as fast as possible.
pub fn run_produce(options: &ProduceOptions, observer: Observer) -> Result<Report, BenchError> {
    options.check()?;
    let ProduceOptions { target, load, generator, null_run } = options.clone();
    let prepared = if null_run {
        let produce = ProducePlan::new(&load, target.partitions, 0, None);
        Plan { cluster: None, produce: Some(Arc::new(produce)), consume: None }
    } else {
        shard::block_on_one(async move {
            let cluster = Cluster::prepare(&target).await?;
            let produce =
                ProducePlan::new(&load, target.partitions, cluster.version::<ProduceRequest>()?, None);
            Ok::<_, BenchError>(Plan {
                cluster: Some(Arc::new(cluster)),
                produce: Some(Arc::new(produce)),
                consume: None,
            })
        })?
    };
    let kind = if null_run { "null-run" } else { "produce" };
    run(kind, options, generator, prepared, observer)
}

/// Reads a topic from its earliest offset to the end that it has now.
pub fn run_consume(options: &ConsumeOptions, observer: Observer) -> Result<Report, BenchError> {
    options.check()?;
    let ConsumeOptions { target, records, duration_s, fetching, generator } = options.clone();
    let plan = shard::block_on_one(async move {
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
        let (cluster, consume) = (Some(Arc::new(cluster)), Some(Arc::new(consume)));
        Ok::<_, BenchError>(Plan { cluster, produce: None, consume })
    })?;
    run("consume", options, generator, plan, observer)
}

/// Produces and reads at once; latency from when a record was due to when it was read.
pub fn run_end_to_end(options: &EndToEndOptions, observer: Observer) -> Result<Report, BenchError> {
    options.check()?;
    let EndToEndOptions { target, load, fetching, generator } = options.clone();
    let plan = shard::block_on_one(end_to_end_plan(target, load, fetching))?;
    run("end-to-end", options, generator, plan, observer)
}

async fn end_to_end_plan(target: Target, load: Load, fetching: Fetching) -> Result<Plan, BenchError> {
    let cluster = Cluster::prepare(&target).await?;
    let run_id = random::u64();
    let produce =
        ProducePlan::new(&load, target.partitions, cluster.version::<ProduceRequest>()?, Some(run_id));
    let consume = ConsumePlan {
        version: cluster.version::<FetchRequest>()?,
        from: cluster.offsets(End::Latest).await?,
        to: None,
        records_each: u64::MAX,
        duration_s: None,
        stamps: Some(Stamps { run_id, schedule: produce.schedule }),
        fetching,
    };
    Ok(Plan {
        cluster: Some(Arc::new(cluster)),
        produce: Some(Arc::new(produce)),
        consume: Some(Arc::new(consume)),
    })
}

/// Runs a plan and reports.
fn run(
    kind: &'static str,
    options: &impl Serialize,
    generator: Generator,
    plan: Plan,
    observer: Observer,
) -> Result<Report, BenchError> {
    let before = generator.broker_pid.map(ProcessSample::read).transpose()?;
    let outcome = gather(&generator, plan.clone(), observer)?;
    let after = generator.broker_pid.map(ProcessSample::read).transpose()?;
    let bytes = if plan.produce.is_some() { outcome.tally.acked_bytes_all } else { outcome.tally.read_bytes };
    let produce = plan.produce.as_ref().filter(|_| plan.cluster.is_some()).map(|produce| ProduceFacts {
        rate: produce.load.rate,
        warmup_s: produce.load.warmup_s,
        duration_s: produce.load.duration_s,
        planned_records: produce.schedule.measured_records(),
        slack_ms: produce.load.slack_ms,
    });
    Ok(Report::new(Facts {
        kind,
        options: serde_json::to_value(options).expect("options have string keys"),
        start_unix_ms: outcome.start_unix_ms,
        tally: outcome.tally,
        broken: outcome.broken,
        produce,
        consumes: plan.consume.is_some(),
        cluster: plan.cluster.as_ref().map(|cluster| cluster.facts()),
        broker_process: before.zip(after).map(|(before, after)| ProcessUse::between(before, after, bytes)),
    }))
}
