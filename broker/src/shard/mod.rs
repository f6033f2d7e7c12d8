//! A shard: one core and all that it owns, and the one way from shard to shard.
//!
//! | module | owns |
//! |---|---|
//! | `state` | `Shard`: storage, partitions, image, budgets |
//! | `call` | messages between shards: a closure there, its answer back |
//! | `publish` | taking in a new metadata image: partitions begin and end with it |

mod call;
mod publish;
mod state;

pub use call::{Message, ShardGone};
pub use publish::Publication;
pub use state::Shard;
