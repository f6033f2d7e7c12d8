//! Tests of the whole crate.
//!
//! | module | what it proves |
//! |---|---|
//! | [`basics`] | append, durability, reads from memory and disk, restarts, on real files |
//! | [`features`] | look-ups by time, retention, deletion, votes, truncation, producers, many partitions |
//! | [`surgery`] | torn tails, corrupt middles, stale files, damaged derived files, by editing bytes |
//! | [`compaction`] | compaction, with crashes in the simulated world: the last record of each key is never lost |
//! | [`lives`] | lives of a simulated node and how they end: what the two against a model share |
//! | [`model`] | random work, crashes and faults in the simulated world against a model |

mod basics;
mod compaction;
mod features;
mod lives;
mod model;
mod rig;
mod surgery;
