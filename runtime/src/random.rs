//! Random numbers of the current world: an OS-seeded ChaCha per thread, or a stream of the simulation's seed.

use crate::real;
use crate::world::{self, World};

/// A uniform 64-bit number.
pub fn u64() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Fills `bytes` with uniform random bytes (fit for UUIDs and producer ids; keys are not made here).
pub fn fill(bytes: &mut [u8]) {
    match world::try_current() {
        Some(World::Real(_)) | None => real::entropy::fill(bytes),
        Some(World::Sim(shard)) => shard.random.fill(bytes),
    }
}

/// A uniform number in `0..n`.
///
/// # Panics
/// When `n` is zero.
pub fn below(n: u64) -> u64 {
    assert!(n > 0, "no number is below zero");
    // Multiply and shift: the bias is at most n / 2^64.
    ((u128::from(u64()) * u128::from(n)) >> 64) as u64
}
