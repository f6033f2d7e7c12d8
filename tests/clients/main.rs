//! Unmodified Kafka clients against a node: each creates topics, produces with every codec that it has, reads back,
//! consumes as a group of two with a rebalance, commits and resumes.
//!
//! The programs are in the directories beside this file, one for each language; `kcat` has no program but a scenario here.

mod kcat;
mod programs;
