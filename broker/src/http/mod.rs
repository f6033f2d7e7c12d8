//! Health and metrics over HTTP, on a thread of its own: a slow scrape costs the shards one message each.
//!
//! | module | owns |
//! |---|---|
//! | `sidecar` | the thread, the listener, the paths |
//! | `shards` | asking every shard, and not waiting longer than a moment |
//! | `health` | what the answers mean: alive, ready, and why not |
//! | `exposition` | the answers as Prometheus reads them |

mod exposition;
mod health;
mod shards;
mod sidecar;
#[cfg(test)]
mod tests;

pub use health::Health;
pub use shards::Shards;
pub use sidecar::Sidecar;
