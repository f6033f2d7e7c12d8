//! Whole nodes in a simulated world, spoken to in the Kafka protocol.

mod admin;
mod basics;
mod client;
mod crash;
mod hostile;
mod memory;
mod world;
