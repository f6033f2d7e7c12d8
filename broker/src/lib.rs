//! The server: everything between a socket and the journal.
//!
//! | module | owns |
//! |---|---|
//! | `server` | start, stop and failure of a node: what both worlds run |
//! | `shard` | one core's state, and the one way from shard to shard |
//! | `net` | listeners, connections, their order, limits and deadlines |
//! | `api` | one file per Kafka API, and the registry that ApiVersions answers from |
//! | `partition` | a partition on its shard: append, read, wait for more |
//! | `metadata` | topics and their configurations: pure decisions, the metadata log, the image |
//! | `coordinator` | consumer groups and their offsets |
//! | `metrics` | what a shard counts |
//! | `config` | the settings of a node |
//! | `http` | health and metrics over HTTP, on a thread of its own |

pub mod api;
pub mod config;
pub mod coordinator;
pub mod http;
pub mod metadata;
pub mod metrics;
pub mod net;
pub mod partition;
pub mod server;
pub mod shard;
