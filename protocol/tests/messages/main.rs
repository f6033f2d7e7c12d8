//! Every message against what others make of it: random valid encodings, the `kafka-protocol` crate, and the Java
//! client.

#[path = "../support/mod.rs"]
mod support;

mod crate_records;
mod java_messages;
mod java_oracle;
mod java_records;
mod kafka_protocol_crate;
mod round_trip;
