//! The world has an address: time, randomness, tasks, mailboxes, disk and network, in two worlds behind one set of functions.
//!
//! * **Real**: one glommio executor (io_uring) per shard thread, `O_DIRECT` files, TCP sockets.
//! * **Simulated** ([`sim`]): one thread, virtual clock, seeded scheduler, disk and network with faults; one seed, one run.
//!
//! Every function acts on the world of the task that calls it. Nothing else in the workspace names glommio, io-uring or libc.
//!
//! | module | what it gives |
//! |---|---|
//! | [`time`], [`random`], [`task`] | clock and timers, seeded numbers, tasks in two queues |
//! | [`sync`] | events, watched values, permits, one-shot values inside a shard |
//! | [`mailbox`] | the one way between shards, and from foreign threads |
//! | [`shard`] | starting the shards of a process, or one executor for tools and tests |
//! | [`disk`], [`net`] | aligned direct files and directories, TCP |
//! | [`check`], [`thread`], [`signal`] | start-up checks and the few threads that are not shards |
//! | [`sim`] | the simulated world |

pub mod check;
pub mod disk;
pub mod mailbox;
pub mod net;
pub mod random;
mod real;
pub mod shard;
pub mod signal;
pub mod sim;
pub mod sync;
pub mod task;
pub mod thread;
pub mod time;
mod world;
