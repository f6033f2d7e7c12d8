//! Tests of the whole crate on real files.
//!
//! | module | what it proves |
//! |---|---|
//! | [`basics`] | append, durability, reads from memory and disk, restarts |

mod basics;
mod rig;
