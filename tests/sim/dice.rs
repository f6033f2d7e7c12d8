//! Random choices of one seed, in streams by purpose: what one part draws does not shift what another part gets.

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A stream of random numbers.
pub(crate) struct Dice(Cell<u64>);

impl Dice {
    /// The stream of `seed` for `purpose`.
    pub(crate) fn new(seed: u64, purpose: &str) -> Dice {
        let salt = purpose.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        Dice(Cell::new(mix(seed) ^ salt))
    }

    fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(state);
        mix(state)
    }

    /// A number in the range.
    pub(crate) fn between(&self, range: RangeInclusive<u64>) -> u64 {
        let span = range.end() - range.start() + 1;
        range.start() + ((u128::from(self.next()) * u128::from(span)) >> 64) as u64
    }

    /// True so many times in a hundred.
    pub(crate) fn chance(&self, percent: u64) -> bool {
        self.between(0..=99) < percent
    }

    /// One of the choices, of which there is one at least.
    pub(crate) fn pick<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.between(0..=choices.len() as u64 - 1) as usize]
    }

    /// A time in milliseconds.
    pub(crate) fn millis(&self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.between(range))
    }
}

/// SplitMix64's finaliser.
fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}
