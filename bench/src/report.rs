//! The result of a run: everything to judge it and to repeat it, as one JSON object. Owns its shape and the verdict
//! on whether the run is valid; `text` draws the same for people.
//!
//! 1. A run is valid only if it kept to its schedule and every record of it was acknowledged: a slower load than asked
//!    for is never reported as if it were the asked-for one.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::host::{Host, ProcessUse};
use crate::tally::Tally;

/// Version of this shape; raised when a field changes its meaning.
const REPORT_VERSION: u32 = 1;

/// A run and its result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of this shape.
    pub report_version: u32,
    /// Version of the generator.
    pub bench_version: &'static str,
    /// `produce`, `consume`, `end-to-end` or `null-run`.
    pub kind: &'static str,
    /// Whether the figures may be used (invariant 1).
    pub valid: bool,
    /// Why not.
    pub invalid_reasons: Vec<String>,
    /// The options, by the names of the command line.
    pub options: serde_json::Value,
    /// When the load started, Unix ms.
    pub start_unix_ms: i64,
    /// When the first record of the run was acknowledged, Unix ms.
    pub first_ack_unix_ms: Option<i64>,
    /// Length of the measured part that the rates are over, seconds.
    pub measured_s: f64,
    /// What was produced; absent when consuming.
    pub produced: Option<Produced>,
    /// What was read; absent when producing.
    pub consumed: Option<Consumed>,
    /// Latencies in µs by name: `response` from due to acknowledged, `service` from sent to acknowledged, `fetch` the
    /// round trip of a fetch that brought records, `end_to_end` from due to read. Those without a value are absent.
    pub latency_us: BTreeMap<&'static str, Percentiles>,
    /// The generator itself.
    pub generator: GeneratorHealth,
    /// Records that the broker refused, by the name of the error.
    pub errors: BTreeMap<String, u64>,
    /// The cluster; absent in a null run.
    pub cluster: Option<ClusterFacts>,
    /// The broker's process, when its id was given.
    pub broker_process: Option<ProcessUse>,
    /// The machine of the generator.
    pub host: Host,
}

/// Records produced in the measured part, and their rates.
#[derive(Clone, Debug, Serialize)]
pub struct Produced {
    /// Records that the schedule asked for; absent without a rate.
    pub planned_records: Option<u64>,
    /// Records acknowledged.
    pub acked_records: u64,
    /// Records refused or lost with a connection, warm-up included.
    pub failed_records: u64,
    /// Records sent and never answered.
    pub unanswered_records: u64,
    /// Records due and never sent.
    pub unsent_records: u64,
    /// Records of the warm-up that were acknowledged.
    pub warmup_records: u64,
    /// Produce requests sent, warm-up included.
    pub requests: u64,
    /// Records per second asked for; 0 = as fast as possible.
    pub target_records_per_s: f64,
    /// Records acknowledged per second of the measured part.
    pub records_per_s: f64,
    /// MiB of values acknowledged per second of the measured part.
    pub mib_per_s: f64,
}

/// Records read, and their rates.
#[derive(Clone, Debug, Serialize)]
pub struct Consumed {
    /// Records read.
    pub records: u64,
    /// Records on the topic that this run did not write.
    pub foreign_records: u64,
    /// Bytes of batches as they came over the wire.
    pub bytes: u64,
    /// Records per second, up to the last record.
    pub records_per_s: f64,
    /// MiB of batches per second, up to the last record.
    pub mib_per_s: f64,
}

/// How well the generator itself did.
#[derive(Clone, Debug, Serialize)]
pub struct GeneratorHealth {
    /// How late the generator's own timer was, µs; what a null run measures.
    pub jitter_us: Percentiles,
    /// Longest time that a record was sent after it was due and its linger was over, µs.
    pub behind_max_us: u64,
}

/// The cluster as it describes itself.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterFacts {
    /// Cluster id.
    pub cluster_id: Option<String>,
    /// Brokers that Metadata names.
    pub brokers: usize,
    /// Versions that the bootstrap broker advertises, oldest and newest, by API.
    pub api_versions: BTreeMap<String, (i16, i16)>,
    /// Versions that the run used.
    pub used_versions: BTreeMap<&'static str, i16>,
}

/// A histogram's summary, µs, three significant digits.
#[derive(Clone, Debug, Serialize)]
pub struct Percentiles {
    /// Values.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// 99.99 %.
    #[serde(rename = "p99.99")]
    pub p99_99: u64,
    /// Largest.
    pub max: u64,
}

impl Percentiles {
    /// Summary of a histogram; zeros when it is empty.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        Percentiles {
            count: histogram.len(),
            min: histogram.min(),
            mean: (histogram.mean() * 10.0).round() / 10.0,
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p99_9: histogram.value_at_quantile(0.999),
            p99_99: histogram.value_at_quantile(0.9999),
            max: histogram.max(),
        }
    }
}

/// Everything that a report is made from.
pub(crate) struct Facts {
    pub(crate) kind: &'static str,
    pub(crate) options: serde_json::Value,
    pub(crate) start_unix_ms: i64,
    pub(crate) tally: Tally,
    pub(crate) broken: Vec<String>,
    pub(crate) schedule: Option<ScheduleFacts>,
    pub(crate) produces: bool,
    pub(crate) consumes: bool,
    pub(crate) cluster: Option<ClusterFacts>,
    pub(crate) broker_process: Option<ProcessUse>,
}

/// What the schedule of a run asked for.
pub(crate) struct ScheduleFacts {
    pub(crate) rate: f64,
    pub(crate) warmup_s: f64,
    pub(crate) planned_records: Option<u64>,
    pub(crate) slack_ms: f64,
}

impl Report {
    pub(crate) fn new(facts: Facts) -> Self {
        let tally = &facts.tally;
        let measured_s = measured_seconds(&facts);
        let read_s = positive(tally.last_read_ns as f64 / 1e9);
        let invalid_reasons = invalid_reasons(&facts);
        let latency_us = [
            ("response", &tally.response_us),
            ("service", &tally.service_us),
            ("fetch", &tally.fetch_us),
            ("end_to_end", &tally.end_to_end_us),
        ]
        .into_iter()
        .filter(|(_, histogram)| !histogram.is_empty())
        .map(|(name, histogram)| (name, Percentiles::of(histogram)))
        .collect();
        Report {
            report_version: REPORT_VERSION,
            bench_version: env!("CARGO_PKG_VERSION"),
            kind: facts.kind,
            valid: invalid_reasons.is_empty(),
            invalid_reasons,
            start_unix_ms: facts.start_unix_ms,
            first_ack_unix_ms: tally.first_ack_ns.map(|ns| facts.start_unix_ms + (ns / 1_000_000) as i64),
            measured_s,
            produced: facts.schedule.as_ref().filter(|_| facts.produces).map(|plan| Produced {
                planned_records: plan.planned_records,
                acked_records: tally.acked_records,
                failed_records: tally.failed.values().sum(),
                unanswered_records: tally.unanswered,
                unsent_records: tally.unsent,
                warmup_records: tally.warmup_records,
                requests: tally.requests,
                target_records_per_s: plan.rate,
                records_per_s: tally.acked_records as f64 / measured_s,
                mib_per_s: mib(tally.acked_bytes) / measured_s,
            }),
            consumed: facts.consumes.then(|| Consumed {
                records: tally.read_records,
                foreign_records: tally.foreign_records,
                bytes: tally.read_bytes,
                records_per_s: tally.read_records as f64 / read_s,
                mib_per_s: mib(tally.read_bytes) / read_s,
            }),
            latency_us,
            generator: GeneratorHealth {
                jitter_us: Percentiles::of(&tally.jitter_us),
                behind_max_us: tally.behind_max_ns / 1000,
            },
            errors: facts.tally.failed,
            cluster: facts.cluster,
            broker_process: facts.broker_process,
            options: facts.options,
            host: Host::read(),
        }
    }

    /// The report as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a report has string keys and finite numbers")
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The rates are over the planned time, or longer when the last acknowledgement came later; those without a rate, or
/// of a consumer, are up to the last record.
fn measured_seconds(facts: &Facts) -> f64 {
    let tally = &facts.tally;
    positive(match &facts.schedule {
        Some(plan) => {
            let acked_s = tally.last_ack_ns as f64 / 1e9 - plan.warmup_s;
            match plan.planned_records {
                Some(records) => acked_s.max(records as f64 / plan.rate),
                None => acked_s,
            }
        }
        None => tally.last_read_ns as f64 / 1e9,
    })
}

/// A divisor.
fn positive(seconds: f64) -> f64 {
    seconds.max(1e-9)
}

fn invalid_reasons(facts: &Facts) -> Vec<String> {
    let tally = &facts.tally;
    let mut reasons = facts.broken.clone();
    if let Some(plan) = &facts.schedule {
        let behind_ms = tally.behind_max_ns as f64 / 1e6;
        if plan.rate > 0.0 && behind_ms > plan.slack_ms {
            reasons.push(format!(
                "fell behind the schedule by {behind_ms:.1} ms, {:.1} ms are allowed (the generator's own timer: {:.1} ms)",
                plan.slack_ms,
                tally.jitter_us.max() as f64 / 1000.0
            ));
        }
        let failed: u64 = tally.failed.values().sum();
        for (records, what) in [
            (failed, "failed"),
            (tally.unanswered, "were sent and not answered"),
            (tally.unsent, "were due and not sent"),
        ] {
            if records > 0 {
                reasons.push(format!("{records} records {what}"));
            }
        }
        if facts.consumes && tally.acked_records + tally.warmup_records != tally.read_records {
            reasons.push(format!(
                "{} records were acknowledged and {} were read",
                tally.acked_records + tally.warmup_records,
                tally.read_records
            ));
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Acked;

    fn facts(tally: Tally) -> Facts {
        Facts {
            kind: "produce",
            options: serde_json::json!({"topic": "t"}),
            start_unix_ms: 1_000_000,
            tally,
            broken: Vec::new(),
            schedule: Some(ScheduleFacts {
                rate: 100.0,
                warmup_s: 1.0,
                planned_records: Some(200),
                slack_ms: 1000.0,
            }),
            produces: true,
            consumes: false,
            cluster: None,
            broker_process: None,
        }
    }

    fn acked(at_ms: u64) -> Acked {
        Acked {
            due_ns: Some(1_000_000_000),
            sent_ns: 1_000_000_000,
            answered_ns: at_ms * 1_000_000,
            value_bytes: 1 << 20,
            measured: true,
        }
    }

    #[test]
    fn a_run_that_fell_behind_is_invalid_and_says_by_how_much() {
        let mut tally = Tally::default();
        tally.behind(1_234_500_000);
        let report = Report::new(facts(tally));
        assert!(!report.valid);
        assert!(report.invalid_reasons[0].contains("1234.5 ms"), "{:?}", report.invalid_reasons);

        let mut tally = Tally::default();
        tally.behind(999_000_000);
        assert!(Report::new(facts(tally)).valid);
    }

    #[test]
    fn records_without_an_acknowledgement_make_a_run_invalid() {
        for spoil in [
            (|tally| tally.failed("NOT_LEADER_OR_FOLLOWER", 3)) as fn(&mut Tally),
            |tally| tally.unanswered = 3,
            |tally| tally.unsent = 3,
        ] {
            let mut tally = Tally::default();
            spoil(&mut tally);
            let report = Report::new(facts(tally));
            assert!(!report.valid && report.invalid_reasons[0].starts_with("3 records"));
        }
    }

    #[test]
    fn rates_are_over_the_planned_time_or_longer() {
        let mut tally = Tally::default();
        tally.acked(acked(1_500));
        assert_eq!(Report::new(facts(tally)).produced.unwrap().mib_per_s, 0.5);
        let mut tally = Tally::default();
        tally.acked(acked(5_000));
        let report = Report::new(facts(tally));
        assert_eq!((report.measured_s, report.produced.unwrap().mib_per_s), (4.0, 0.25));
        assert_eq!(report.first_ack_unix_ms, Some(1_005_000));
    }

    #[test]
    fn the_json_has_what_scripts_read() {
        let mut tally = Tally::default();
        tally.acked(acked(1_250));
        let json: serde_json::Value = serde_json::from_str(&Report::new(facts(tally)).to_json()).unwrap();
        assert_eq!(json["kind"], "produce");
        assert_eq!(json["valid"], true);
        assert_eq!(json["options"]["topic"], "t");
        assert_eq!(json["latency_us"]["response"]["p99.99"], json["latency_us"]["response"]["max"]);
        for name in ["min", "mean", "p50", "p90", "p99", "p99.9", "max", "count"] {
            assert!(json["latency_us"]["service"][name].is_number(), "{name}");
            assert!(json["generator"]["jitter_us"][name].is_number(), "{name}");
        }
        for name in ["kernel", "cpu", "cpus"] {
            assert!(!json["host"][name].is_null(), "{name}");
        }
        assert!(!json.to_string().contains('\n'));
    }
}
