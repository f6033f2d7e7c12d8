//! The values of the records: slices of one pseudo-random pool, made once, so that making a value costs nothing while
//! the load runs. Owns the generator of the bytes and the stamp of an end-to-end run.
//!
//! 1. Neighbouring records take neighbouring slices: no two values of a batch repeat each other's bytes, so that the
//!    asked-for entropy is what a codec sees.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::options::STAMP_BYTES;

/// Bytes of the pool that are not repeated.
const POOL_BYTES: usize = 4 << 20;

/// Length of a piece whose head is random and whose tail is zeros.
const PIECE_BYTES: usize = 64;

/// Values of one size.
#[derive(Debug)]
pub(crate) struct Payloads {
    pool: Bytes,
    record_bytes: usize,
}

impl Payloads {
    /// Values of `record_bytes`, of which a share of `entropy` (0 to 1) is random from `seed`.
    pub(crate) fn new(record_bytes: usize, entropy: f64, seed: u64) -> Self {
        let len = POOL_BYTES + record_bytes;
        let random = (entropy * PIECE_BYTES as f64).round() as usize;
        let mut pool = BytesMut::with_capacity(len + PIECE_BYTES);
        let mut state = seed;
        while pool.len() < len {
            let mut piece = [0u8; PIECE_BYTES];
            for word in piece.chunks_exact_mut(8) {
                word.copy_from_slice(&splitmix64(&mut state).to_le_bytes());
            }
            pool.put_slice(piece.get(..random).unwrap_or(&piece));
            pool.put_bytes(0, PIECE_BYTES - random);
        }
        Payloads { pool: pool.freeze(), record_bytes }
    }

    /// Value of record `n`.
    pub(crate) fn value(&self, n: u64) -> Bytes {
        let start = (n.wrapping_mul(self.record_bytes as u64) % POOL_BYTES as u64) as usize;
        self.pool.slice(start..start + self.record_bytes)
    }

    /// Value of record `n` that starts with a stamp.
    pub(crate) fn stamped(&self, n: u64, stamp: Stamp) -> Bytes {
        let mut value = BytesMut::with_capacity(self.record_bytes);
        value.put_u64(stamp.run_id);
        value.put_u64(stamp.due_ns);
        value.put_slice(self.value(n).get(STAMP_BYTES..).unwrap_or_default());
        value.freeze()
    }
}

/// What an end-to-end run writes into each value: 16 bytes, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Tells the records of this run from those of another on the same topic.
    pub(crate) run_id: u64,
    /// When the record was due, in ns since the start of the run.
    pub(crate) due_ns: u64,
}

impl Stamp {
    /// Reads the stamp of a value, if it is long enough to have one.
    pub(crate) fn read(mut value: &[u8]) -> Option<Self> {
        (value.len() >= STAMP_BYTES).then(|| Stamp { run_id: value.get_u64(), due_ns: value.get_u64() })
    }
}

/// Sebastiano Vigna's SplitMix64 step.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_values_twice_and_neighbours_differ() {
        let (one, two) = (Payloads::new(1000, 1.0, 7), Payloads::new(1000, 1.0, 7));
        assert_eq!(one.value(3), two.value(3));
        assert_ne!(one.value(3), one.value(4));
        assert_ne!(one.value(3), Payloads::new(1000, 1.0, 8).value(3));
        assert_eq!(one.value(u64::MAX / 1000).len(), 1000);
    }

    #[test]
    fn entropy_is_the_random_share() {
        let value = Payloads::new(64 * 1024, 0.25, 1).value(0);
        let zeros = value.iter().filter(|byte| **byte == 0).count();
        assert!((48 * 1024..50 * 1024).contains(&zeros), "{zeros} zeros");
    }

    #[test]
    fn a_stamp_survives_and_keeps_the_length() {
        let payloads = Payloads::new(STAMP_BYTES, 1.0, 1);
        let stamp = Stamp { run_id: 9, due_ns: u64::MAX };
        let value = payloads.stamped(5, stamp);
        assert_eq!((value.len(), Stamp::read(&value)), (STAMP_BYTES, Some(stamp)));
        assert_eq!(Stamp::read(&value[1..]), None);
    }
}
