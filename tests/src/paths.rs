//! Where things are: the repository, cargo's target directory, and scratch directories below it.
//!
//! Scratch lies in the target directory because the brokers need a file system with direct I/O, which `/tmp` may lack.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use tempfile::TempDir;

/// The root of the repository.
pub fn repository() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        package.parent().map_or_else(|| package.to_owned(), Path::to_owned)
    })
}

/// The target directory that the running test was built into, and the directory of its profile within (`debug`).
fn built() -> &'static (PathBuf, PathBuf) {
    static BUILT: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    BUILT.get_or_init(|| {
        // TARGET/PROFILE/deps/NAME
        let program = std::env::current_exe().unwrap_or_default();
        let mut above = program.ancestors().skip(2).map(Path::to_owned);
        let profile = above.next().unwrap_or_default();
        (above.next().unwrap_or_default(), profile)
    })
}

/// Cargo's target directory.
pub fn target() -> &'static Path {
    &built().0
}

/// The directory of the profile, where the programs are.
pub fn profile() -> &'static Path {
    &built().1
}

/// Where packages of other languages are kept between runs; `name` is one of them.
pub fn foreign(name: &str) -> PathBuf {
    target().join("foreign").join(name)
}

/// A new empty directory, removed when it is dropped.
pub fn scratch(name: &str) -> Result<TempDir> {
    let parent = target().join("tmp");
    std::fs::create_dir_all(&parent).with_context(|| format!("creating {}", parent.display()))?;
    Ok(tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(parent)?)
}
