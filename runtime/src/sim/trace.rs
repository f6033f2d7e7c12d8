//! A running hash over everything that a simulation does, to prove that a seed gives one run.

use std::cell::Cell;

/// What happened.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Poll = 1,
    Timer,
    Start,
    Kill,
    PowerCut,
    Fault,
    DiskOpen,
    DiskWrite,
    DiskRead,
    DiskSync,
    DiskName,
    NetConnect,
    NetSend,
    NetReceive,
    NetReset,
}

/// The hash so far.
#[derive(Default)]
pub(crate) struct Trace(Cell<u64>);

impl Trace {
    /// Folds a step and its numbers in.
    pub(crate) fn note(&self, step: Step, numbers: &[u64]) {
        let mut hash = fold(self.0.get(), step as u64);
        for number in numbers {
            hash = fold(hash, *number);
        }
        self.0.set(hash);
    }

    /// The hash.
    pub(crate) fn hash(&self) -> u64 {
        self.0.get()
    }
}

/// A number that stands for `bytes`.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| fold(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| fold(hash, u64::from(*byte)))
}

fn fold(hash: u64, number: u64) -> u64 {
    (hash.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
