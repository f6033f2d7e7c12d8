//! Hostile bytes over sockets: whatever arrives, the peer gets an error or a closed connection, the process stays up,
//! its memory stays in its budget, and others are served.
//!
//! After each group of attacks `victim::Victim::check` produces and fetches as a normal client, and looks at the
//! process and its log.

mod batches;
mod frames;
mod requests;
mod sockets;
mod victim;
