//! A lean client of the Kafka protocol, only as much as a load needs: nothing is retried behind the load's back.
//!
//! - [`connection`]: frames out and in on one socket, pipelined.
//! - [`cluster`]: what is asked before a load starts: versions, metadata, the topic, offsets.

pub(crate) mod cluster;
pub(crate) mod connection;
