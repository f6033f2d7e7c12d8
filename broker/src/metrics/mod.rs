//! What a shard counts: plain cells on the shard, plain numbers in a snapshot that may leave it.
//!
//! | module | owns |
//! |---|---|
//! | `histogram` | latencies in buckets of about 6 % |
//! | `shard` | the counters of a shard |
//! | `stats` | the snapshot that `http` and tools read |

mod histogram;
mod shard;
mod stats;

pub use histogram::{Histogram, HistogramStats};
pub use shard::{Counter, ShardMetrics};
pub use stats::{RequestStats, ShardStats};
