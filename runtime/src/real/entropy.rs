//! Random numbers of a real thread: ChaCha seeded once by the operating system.

use std::cell::RefCell;

use rand_chacha::ChaCha12Rng;
use rand_core::{RngCore, SeedableRng};
use rustix::rand::{GetRandomFlags, getrandom};

thread_local! {
    static STREAM: RefCell<ChaCha12Rng> = RefCell::new(ChaCha12Rng::from_seed(os_seed()));
}

/// Fills `bytes` from this thread's stream.
pub(crate) fn fill(bytes: &mut [u8]) {
    STREAM.with(|stream| stream.borrow_mut().fill_bytes(bytes));
}

fn os_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    let mut filled = 0;
    while filled < seed.len() {
        match getrandom(&mut seed[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the operating system gives no random numbers: {error}"),
        }
    }
    seed
}
