//! Tidy: what the project promises of its own tree, read from the tracked files, and what cargo's own checkers say.
//!
//! `files` and `layers` are rules over texts, tested on texts that break them; `cargo` runs the checkers.

mod cargo;
mod files;
mod layers;
mod tree;
