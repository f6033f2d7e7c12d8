//! One file per command.

pub(crate) mod bench;
pub(crate) mod config;
pub(crate) mod group;
pub(crate) mod log;
pub(crate) mod quickstart;
pub(crate) mod serve;
pub(crate) mod topic;
