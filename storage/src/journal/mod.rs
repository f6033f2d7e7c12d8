//! The shard's journal: one flush makes the changes of all logs durable (docs/storage-format.md, section 2).
//!
//! | module | what it owns |
//! |---|---|
//! | [`entry`], [`block`] | bytes (pure) |
//! | [`order`] | which blocks are replayed; torn or corrupt (pure) |
//! | [`files`] | preallocated files, their recycling |
//! | [`writer`] | gathering, group commit, durability |
//! | [`open`] | reading it all back at start |

pub(crate) mod block;
pub(crate) mod entry;
pub(crate) mod files;
pub(crate) mod open;
pub(crate) mod order;
pub(crate) mod writer;

pub(crate) use writer::Journal;
