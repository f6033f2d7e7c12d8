//! The program under test: built once for each test program, in the profile of the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::{paths, process};

/// Path of the `millrace` program. `MILLRACE_TEST_BINARY` names one that is not to be built.
pub fn millrace() -> Result<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf>> = OnceLock::new();
    match PROGRAM.get_or_init(build) {
        Ok(path) => Ok(path),
        Err(error) => Err(anyhow!("building millrace: {error:#}")),
    }
}

fn build() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("MILLRACE_TEST_BINARY") {
        return Ok(PathBuf::from(path));
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--quiet", "--package", "millrace", "--bin", "millrace", "--target-dir"])
        .arg(paths::target())
        .current_dir(paths::repository());
    if paths::profile().ends_with("release") {
        cargo.arg("--release");
    }
    process::run(&mut cargo, "cargo build", Duration::from_secs(1200))?;
    Ok(paths::profile().join("millrace"))
}
