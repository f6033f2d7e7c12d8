//! One test body, both worlds: what a caller may rely on wherever its code runs.
#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use runtime::sim::{Sim, SimConfig};

mod disk;
mod net;
mod sync;

/// Runs `body` on one shard of the real world, with an empty directory on the disk.
fn real<Fut: Future<Output = ()> + 'static>(body: fn(PathBuf) -> Fut) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    runtime::shard::block_on_one(body(dir.path().to_owned()));
}

/// Runs `body` in simulated worlds of several seeds, with an empty directory on a simulated disk.
fn simulated<Fut: Future<Output = ()> + 'static>(body: fn(PathBuf) -> Fut) {
    for seed in 0..10 {
        let sim = Sim::new(seed, SimConfig::default());
        let ended = sim.block_on(Duration::from_secs(600), async move {
            let dir = PathBuf::from("/test");
            runtime::disk::create_dir_all(&dir).await.unwrap();
            body(dir).await;
        });
        assert!(ended.is_some(), "seed {seed} has not ended");
    }
}

/// Makes a test of `body` for each world.
macro_rules! in_both_worlds {
    ($($body:ident),+ $(,)?) => {$(
        mod $body {
            #[test]
            fn real() {
                crate::real(super::$body);
            }

            #[test]
            fn simulated() {
                crate::simulated(super::$body);
            }
        }
    )+};
}
pub(crate) use in_both_worlds;
