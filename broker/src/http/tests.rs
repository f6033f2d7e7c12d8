//! Health's meaning and the text of the metrics; the server itself is tested with a node, in `tools/tests`.

use crate::metrics::{HistogramStats, RequestStats, ShardMetrics, ShardStats};

use super::exposition::text;
use super::health::Health;
use super::shards::ShardReport;

fn stats(shard: u16) -> ShardStats {
    let metrics = ShardMetrics::default();
    metrics.records_in.add(7);
    let mut stats = metrics.stats(shard, vec![("connections", 3)]);
    let latency = HistogramStats {
        count: 3,
        sum_us: 2_000_400,
        max_us: 2_000_000,
        buckets: vec![(200, 2), (2_000_000, 1)],
    };
    stats.requests.push(RequestStats { api: "Produce", latency });
    stats
}

fn report(not_ready: &[&str]) -> Option<ShardReport> {
    let not_ready = not_ready.iter().map(|r| (*r).to_owned()).collect();
    Some(ShardReport { stats: stats(0), not_ready })
}

#[test]
fn ready_and_alive() {
    let health = Health::of(&[report(&[]), report(&[])], true);
    assert_eq!(health, Health { alive: true, ready: true, reasons: vec![] });
}

#[test]
fn alive_and_not_ready_with_the_reason() {
    let health = Health::of(&[report(&[]), report(&["the disk is full"])], true);
    assert!(health.alive && !health.ready);
    assert_eq!(health.reasons, ["shard 1: the disk is full"]);
}

#[test]
fn a_shard_that_does_not_answer_is_not_alive() {
    let health = Health::of(&[None, report(&[])], true);
    assert!(!health.alive && !health.ready);
    assert_eq!(health.reasons, ["shard 0 does not answer"]);
}

#[test]
fn a_node_that_starts_is_alive_and_not_ready() {
    let health = Health::of(&[report(&[])], false);
    assert!(health.alive && !health.ready);
    assert_eq!(health.reasons, ["the node is starting"]);
}

#[test]
fn metrics_are_openmetrics_with_shard_and_api() {
    let text = text(vec![stats(0), stats(1)], true).unwrap();
    for line in [
        "# TYPE millrace_records_in counter",
        "millrace_records_in_total{shard=\"0\"} 7",
        "millrace_records_in_total{shard=\"1\"} 7",
        "# TYPE millrace_connections gauge",
        "millrace_connections{shard=\"1\"} 3",
        "millrace_alive 1",
        "millrace_request_seconds_sum{shard=\"0\",api=\"Produce\"} 2.0004",
        "millrace_request_seconds_count{shard=\"0\",api=\"Produce\"} 3",
        "# EOF",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\nis missing in\n{text}");
    }
    let bucket = |le: &str, count: u64| {
        let line = text.lines().find(|l| l.contains(&format!("le=\"{le}\"")) && l.contains("shard=\"1\""));
        assert!(line.is_some_and(|l| l.ends_with(&format!(" {count}"))), "{le}: {line:?}\n{text}");
    };
    bucket("0.0001", 0);
    bucket("0.00025", 2);
    bucket("1.0", 2);
    bucket("10.0", 3);
    bucket("+Inf", 3);
}
