//! A node: how it starts, stops and fails. What both worlds run.
//!
//! | module | owns |
//! |---|---|
//! | `node` | the main function of a shard; events and the handle for the outside |
//! | `identity` | `meta.properties`: who the node is, which layout its data has |
//! | `start` | the order in which everything comes up |
//! | `stop` | the order in which everything goes down |

mod identity;
mod node;
mod start;
mod stop;

pub(crate) use identity::new_uuid;
pub use identity::{Identity, IdentityError};
pub use node::{NodeEvent, NodeEvents, NodeHandle, node};
pub use start::StartError;
