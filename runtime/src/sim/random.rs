//! Independent streams of random numbers, all from the one seed.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// What a stream is for. One consumer's draws must not shift another's.
#[derive(Clone, Copy)]
pub(crate) enum Salt {
    Scheduler,
    Disk,
    Net,
    Client(u64),
    Shard { node: u16, incarnation: u32, shard: u16 },
}

impl Salt {
    fn number(self) -> u64 {
        match self {
            Salt::Scheduler => 0,
            Salt::Disk => 1,
            Salt::Net => 2,
            Salt::Client(client) => (1 << 63) | client,
            Salt::Shard { node, incarnation, shard } => {
                (1 << 62)
                    | (u64::from(incarnation & 0x3FFF_FFFF) << 32)
                    | (u64::from(node) << 16)
                    | u64::from(shard)
            }
        }
    }
}

/// One stream.
pub(crate) struct Stream(RefCell<ChaCha8Rng>);

impl Stream {
    pub(crate) fn new(seed: u64, salt: Salt) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(salt.number());
        Self(RefCell::new(generator))
    }

    pub(crate) fn u64(&self) -> u64 {
        self.0.borrow_mut().next_u64()
    }

    pub(crate) fn fill(&self, bytes: &mut [u8]) {
        self.0.borrow_mut().fill_bytes(bytes);
    }

    /// A number in `0..n`; zero when `n` is zero.
    pub(crate) fn below(&self, n: u64) -> u64 {
        ((u128::from(self.u64()) * u128::from(n)) >> 64) as u64
    }

    /// An index into something of `len` items, which is not empty.
    pub(crate) fn index(&self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub(crate) fn chance(&self, permille: u32) -> bool {
        permille > 0 && self.below(1000) < u64::from(permille)
    }

    pub(crate) fn between(&self, range: &RangeInclusive<Duration>) -> Duration {
        let span = range.end().saturating_sub(*range.start()).as_nanos() as u64;
        *range.start() + Duration::from_nanos(self.below(span + 1))
    }

    pub(crate) fn up_to(&self, max: Duration) -> Duration {
        self.between(&(Duration::ZERO..=max))
    }

    /// An index into `weights`, each as likely as its weight.
    pub(crate) fn weighted(&self, weights: &[u32]) -> usize {
        let mut draw = self.below(weights.iter().map(|weight| u64::from(*weight)).sum());
        for (index, weight) in weights.iter().enumerate() {
            match draw.checked_sub(u64::from(*weight)) {
                Some(rest) => draw = rest,
                None => return index,
            }
        }
        0
    }
}
