//! The knobs of a simulation. Probabilities are per mille.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How a simulated world behaves. The default is a fast, moderately unkind one without faults of the disk.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// What the wall clock shows at the start, in Unix milliseconds.
    pub wall_start_ms: i64,
    /// The longest that one poll of a task takes.
    pub poll_cost_max: Duration,
    /// How late a timer may fire.
    pub timer_slack_max: Duration,
    /// How often [`crate::time::timeout`] ends early.
    pub early_timeout_permille: u32,
    /// Time of one request to a disk.
    pub disk_latency: RangeInclusive<Duration>,
    /// Bytes that a node's disk holds.
    pub disk_capacity_bytes: u64,
    /// At a power cut, what becomes of a write that was not synced: kept, lost, torn, garbled, by weight.
    pub unsynced_weights: [u32; 4],
    /// Time of a segment from one host to another.
    pub net_latency: RangeInclusive<Duration>,
    /// How often a segment takes up to `net_spike_max`.
    pub net_spike_permille: u32,
    /// The longest time of a slow segment.
    pub net_spike_max: Duration,
    /// How often a read from the network returns less than has arrived.
    pub short_read_permille: u32,
    /// Bytes that a stream holds between writer and reader.
    pub net_window_bytes: usize,
    /// How long a silent peer is waited for: a connection to a dead host, bytes that nobody acknowledges.
    pub net_give_up: Duration,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            wall_start_ms: 1_750_000_000_000,
            poll_cost_max: Duration::from_micros(2),
            timer_slack_max: Duration::from_micros(50),
            early_timeout_permille: 0,
            disk_latency: Duration::from_micros(20)..=Duration::from_micros(800),
            disk_capacity_bytes: 1 << 40,
            unsynced_weights: [40, 30, 25, 5],
            net_latency: Duration::from_micros(20)..=Duration::from_micros(400),
            net_spike_permille: 5,
            net_spike_max: Duration::from_millis(40),
            short_read_permille: 200,
            net_window_bytes: 1 << 20,
            net_give_up: Duration::from_secs(15),
        }
    }
}
