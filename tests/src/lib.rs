//! What the process-level test suites share: starting brokers and foreign programs with deadlines, and judging them.
//!
//! - `suite`: wraps each test: skips what the machine lacks (fails in CI), prints logs of a failed one.
//! - `process`: a child process with a deadline; `binary`: builds `millrace` once; `broker`: a running node.
//! - `foreign`: Java, Python, Go, Node and their packages; `kafka_tools`: Apache Kafka's own command line tools.
//! - `mount`: small file systems of a test's own; `logs`: what a node's log may say.
//! - `wire`: a small Kafka client over an independent protocol crate.

pub mod binary;
pub mod broker;
pub mod foreign;
pub mod kafka_tools;
pub mod logs;
pub mod mount;
pub mod paths;
pub mod process;
pub mod suite;
pub mod wire;
