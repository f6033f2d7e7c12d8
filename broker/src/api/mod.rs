//! The Kafka APIs: one file each, and the registry that routes requests to them and answers ApiVersions.
//!
//! | module | owns |
//! |---|---|
//! | `call` | what a handler gets and gives back: `Call`, `Reply`, the `Api` trait |
//! | `registry` | the table of APIs |
//! | `common` | what several APIs need |
//! | one file per API | its checks, its split by partition, its answer |

// A handler may promise more than the trait asks for: an answer always, where the trait allows for none.
#![allow(refining_impl_trait)]

pub(crate) mod api_versions;
mod call;
mod common;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_topic_partitions;
pub(crate) mod fetch;
mod find_coordinator;
mod heartbeat;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_groups;
mod list_offsets;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod produce;
pub mod registry;
mod sync_group;

pub(crate) use call::{Answer, Frame};
pub use call::{Api, Call, Held, Reply};
