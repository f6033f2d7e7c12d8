//! Lays the generated files out with `rustfmt`, then writes them or compares them with what is checked in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::emit::{LIBRARY_DIR, TESTS_DIR};

/// Writes `files` (paths below `protocol`) and removes generated files that are no longer among them; with `check`,
/// changes nothing and fails where either would change something.
pub(crate) fn publish(protocol: &Path, files: &BTreeMap<String, String>, check: bool) -> Result<()> {
    let files = formatted(protocol, files)?;
    let mut stale = Vec::new();
    for (path, text) in &files {
        if fs::read_to_string(protocol.join(path)).ok().as_ref() != Some(text) {
            stale.push(path.clone());
        }
    }
    let mut extra = Vec::new();
    for dir in [LIBRARY_DIR, TESTS_DIR] {
        for entry in fs::read_dir(protocol.join(dir)).into_iter().flatten() {
            let path = format!("{dir}/{}", entry?.file_name().to_string_lossy());
            if !files.contains_key(&path) {
                extra.push(path);
            }
        }
    }
    if check {
        stale.append(&mut extra);
        ensure!(stale.is_empty(), "out of date, run `cargo gen`: {}", stale.join(", "));
        return Ok(());
    }
    for path in &stale {
        let target = protocol.join(path);
        fs::create_dir_all(target.parent().context("a file lies in a directory")?)?;
        fs::write(&target, &files[path]).with_context(|| format!("cannot write {}", target.display()))?;
    }
    for path in &extra {
        fs::remove_file(protocol.join(path))?;
    }
    Ok(())
}

fn formatted(protocol: &Path, files: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let scratch = std::env::temp_dir().join(format!("millrace-gen-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let result = format_in(protocol, files, &scratch);
    fs::remove_dir_all(&scratch)?;
    result
}

fn format_in(
    protocol: &Path,
    files: &BTreeMap<String, String>,
    scratch: &Path,
) -> Result<BTreeMap<String, String>> {
    let mut sources: Vec<PathBuf> = Vec::new();
    for (path, text) in files {
        let target = scratch.join(path);
        fs::create_dir_all(target.parent().context("a file lies in a directory")?)?;
        fs::write(&target, text)?;
        if path.ends_with(".rs") {
            sources.push(target);
        }
    }
    let config = protocol.join("../.rustfmt.toml");
    let status = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(config)
        .args(&sources)
        .status()
        .context("cannot run rustfmt")?;
    if !status.success() {
        bail!("rustfmt does not understand what was generated");
    }
    files.keys().map(|path| Ok((path.clone(), fs::read_to_string(scratch.join(path))?))).collect()
}
