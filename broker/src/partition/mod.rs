//! A partition on the shard that owns it.
//!
//! | module | owns |
//! |---|---|
//! | `state` | `Partition`: its raft group, settings, end |
//! | `append` | a batch into the log, and the answer once it is acknowledged |
//! | `read` | offsets and batches out of it; waiting for more |

mod append;
mod read;
mod state;

pub use append::Appended;
pub use read::{FetchError, Fetched};
pub(crate) use read::{read_error, storage_error};
pub use state::Partition;
