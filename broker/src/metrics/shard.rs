//! The counters of a shard.

use super::histogram::Histogram;
use super::stats::{RequestStats, ShardStats};
use protocol::ApiKey;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

/// Counts up.
#[derive(Debug, Default)]
pub struct Counter(Cell<u64>);

impl Counter {
    /// Adds.
    pub fn add(&self, count: usize) {
        self.0.set(self.0.get().wrapping_add(count as u64));
    }

    /// The sum.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $field:ident,)*) => {
        /// Everything a shard counts.
        #[derive(Default)]
        pub struct ShardMetrics {
            $($(#[doc = $doc])+ pub $field: Counter,)*
            requests: RefCell<BTreeMap<i16, (ApiKey, Histogram)>>,
        }

        impl ShardMetrics {
            /// Names of the counters, with one sentence each.
            pub const COUNTERS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), concat!($($doc),+)),)*];

            fn counters(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field.get()),)*]
            }
        }
    };
}

counters! {
    /// Connections accepted.
    connections_accepted,
    /// Connections closed at once because of a limit.
    connections_refused,
    /// Requests that closed their connection: malformed, too large, unknown API or version.
    requests_malformed,
    /// Bytes of requests received.
    bytes_in,
    /// Bytes of responses sent.
    bytes_out,
    /// Batches appended.
    batches_in,
    /// Records appended.
    records_in,
    /// Bytes of batches appended.
    record_bytes_in,
    /// Bytes of batches fetched.
    record_bytes_out,
    /// Batches refused, whatever the reason.
    produce_errors,
    /// Batches of idempotent producers answered from memory because they were appended before.
    produce_duplicates,
    /// Fetches that waited for data.
    fetches_parked,
}

impl ShardMetrics {
    /// Counts a request, from its arrival until its response is about to be written.
    pub fn request(&self, api: ApiKey, latency: Duration) {
        let mut requests = self.requests.borrow_mut();
        requests.entry(api as i16).or_insert_with(|| (api, Histogram::default())).1.record(latency);
    }

    /// A copy that may leave the shard; gauges are the caller's.
    #[must_use]
    pub fn stats(&self, shard: u16, gauges: Vec<(&'static str, i64)>) -> ShardStats {
        let requests = self.requests.borrow();
        ShardStats {
            shard,
            counters: self.counters(),
            gauges,
            requests: requests
                .values()
                .map(|(api, latency)| RequestStats { api: api.name(), latency: latency.stats() })
                .collect(),
        }
    }
}
