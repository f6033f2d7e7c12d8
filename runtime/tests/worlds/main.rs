//! One test body, both worlds: what a caller may rely on wherever its code runs.

use std::future::Future;
use std::path::PathBuf;

mod disk;
mod net;
mod sync;

/// Runs `body` on one shard of the real world, with an empty directory on the disk.
fn real<Fut: Future<Output = ()> + 'static>(body: fn(PathBuf) -> Fut) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    runtime::shard::block_on_one(body(dir.path().to_owned()));
}

/// Makes a test of `body` for each world.
macro_rules! in_both_worlds {
    ($($body:ident),+ $(,)?) => {$(
        mod $body {
            #[test]
            fn real() {
                crate::real(super::$body);
            }
        }
    )+};
}
pub(crate) use in_both_worlds;
