//! The simulator itself: its disk keeps and loses what it should, its network breaks as told, and a seed is one run.
#![allow(clippy::unwrap_used)]

mod determinism;
mod disk;
mod net;
mod node;
