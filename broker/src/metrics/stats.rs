//! The snapshot of a shard's counters: plain numbers with names.

use super::histogram::HistogramStats;

/// What one shard counted, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardStats {
    /// Which shard.
    pub shard: u16,
    /// Sums since the start, by name.
    pub counters: Vec<(&'static str, u64)>,
    /// Present values, by name.
    pub gauges: Vec<(&'static str, i64)>,
    /// Requests by API.
    pub requests: Vec<RequestStats>,
}

/// Requests of one API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestStats {
    /// Kafka's name of the API.
    pub api: &'static str,
    /// From the arrival of a request until its response is about to be written.
    pub latency: HistogramStats,
}
