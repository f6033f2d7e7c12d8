//! Sockets: listeners, connections, their order, limits and deadlines.
//!
//! | module | owns |
//! |---|---|
//! | `listener` | accepting on one shard, within the limits |
//! | `connections` | the connections of a shard: counts, the sweep for idle and stuck ones, draining at a stop |
//! | `connection` | one connection: frames in, responses out in order |
//! | `frame_reader` | bytes to frames, charged against the shard's memory as they arrive |
//! | `dispatch` | a frame to its API |
//! | `turns` | doing things one after the other, in the order of their requests |

mod connection;
mod connections;
mod dispatch;
mod frame_reader;
mod listener;
mod turns;

pub use connection::ConnectionInfo;
pub use connections::{ConnectionLimits, Connections};
pub use listener::{BindError, bind, probe, serve};
pub(crate) use turns::Turn;
