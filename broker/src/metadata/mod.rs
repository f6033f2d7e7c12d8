//! Topics and their configurations: decided on shard 0, written to the metadata log, published to every shard.
//!
//! | module | owns |
//! |---|---|
//! | `record` | the records of the metadata log, in Kafka's schemas |
//! | `image` | what they add up to; `apply` |
//! | `settings` | what a topic's configuration means |
//! | `topic_name` | rules for names |
//! | `decide` | which records a request becomes (pure) |
//! | `controller` | the shell on shard 0: propose, apply, publish |
//! | `create` | topics that nobody asked CreateTopics for |
//! | `producer_ids` | a shard's block of producer ids |

mod controller;
mod create;
pub mod decide;
mod image;
mod producer_ids;
mod record;
pub mod settings;
pub mod topic_name;

pub(crate) use controller::publish;
pub use controller::{ChangeError, Controller, ReplayError, change};
pub use create::{auto_create, ensure_topic};
pub use image::{Image, PartitionImage, TopicImage};
pub use producer_ids::ProducerIds;
pub use record::MetadataRecord;
pub use settings::TopicSettings;
