//! The shards' counters as Prometheus reads them: each value with its shard, latencies in buckets that never change.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::metrics::{HistogramStats, ShardMetrics, ShardStats};

/// Upper bounds of the latency buckets in microseconds; a last one takes the rest.
const BOUNDS_US: [u64; 16] = [
    100, 250, 500, 1_000, 2_000, 3_000, 5_000, 7_500, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 10_000_000,
];

/// The text of `/metrics`.
pub(super) fn text(stats: Vec<ShardStats>, alive: bool) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("millrace");
    registry.register_collector(Box::new(Snapshot { stats, alive }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Snapshot {
    stats: Vec<ShardStats>,
    alive: bool,
}

/// `shard="0"`, with `api="Produce"` where there is one.
#[derive(Debug)]
struct Labels {
    shard: u16,
    api: Option<&'static str>,
}

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        use prometheus_client::encoding::EncodeLabel;
        ("shard", u64::from(self.shard)).encode(encoder.encode_label())?;
        match self.api {
            Some(api) => ("api", api).encode(encoder.encode_label()),
            None => Ok(()),
        }
    }
}

/// Where there is no exemplar, its label set still has a type.
type NoLabels = [(&'static str, &'static str); 0];

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Whether every shard answered this scrape";
        encoder
            .encode_descriptor("alive", help, None, MetricType::Gauge)?
            .encode_gauge(&i64::from(self.alive))?;
        self.counters(&mut encoder)?;
        self.gauges(&mut encoder)?;
        self.requests(&mut encoder)
    }
}

impl Snapshot {
    fn counters(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help) in ShardMetrics::COUNTERS {
            let help = help.trim().trim_end_matches('.');
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for stats in &self.stats {
                for (_, value) in stats.counters.iter().filter(|(n, _)| n == name) {
                    let labels = Labels { shard: stats.shard, api: None };
                    family.encode_family(&labels)?.encode_counter::<NoLabels, u64, u64>(value, None)?;
                }
            }
        }
        Ok(())
    }

    fn gauges(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(first) = self.stats.first() else { return Ok(()) };
        for (name, _) in &first.gauges {
            let help = name.replace('_', " ");
            let mut family = encoder.encode_descriptor(name, &help, None, MetricType::Gauge)?;
            for stats in &self.stats {
                for (_, value) in stats.gauges.iter().filter(|(n, _)| n == name) {
                    let labels = Labels { shard: stats.shard, api: None };
                    family.encode_family(&labels)?.encode_gauge(value)?;
                }
            }
        }
        Ok(())
    }

    fn requests(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "From the arrival of a request until its response is about to be written, by API";
        let name = "request_seconds";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for stats in &self.stats {
            for request in &stats.requests {
                let labels = Labels { shard: stats.shard, api: Some(request.api) };
                let (sum_s, buckets) = in_buckets(&request.latency);
                let count = request.latency.count;
                family.encode_family(&labels)?.encode_histogram::<NoLabels>(sum_s, count, &buckets, None)?;
            }
        }
        Ok(())
    }
}

/// The sum in seconds, and counts by upper bound in seconds. A value within 6 % of a bound may count for the bucket above.
#[expect(clippy::cast_precision_loss, reason = "microseconds of any real uptime fit 52 bits")]
fn in_buckets(latency: &HistogramStats) -> (f64, Vec<(f64, u64)>) {
    let mut counts = [0; BOUNDS_US.len()];
    let mut rest = 0;
    for (us, count) in &latency.buckets {
        match counts.get_mut(BOUNDS_US.partition_point(|bound| bound < us)) {
            Some(bucket) => *bucket += count,
            None => rest += count,
        }
    }
    let seconds = |us: u64| us as f64 / 1e6;
    let bounded = BOUNDS_US.iter().zip(counts).map(|(us, count)| (seconds(*us), count));
    (seconds(latency.sum_us), bounded.chain([(f64::INFINITY, rest)]).collect())
}
