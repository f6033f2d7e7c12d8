//! The tracked files of the repository, as texts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use millrace_tests::suite::missing;
use millrace_tests::{foreign, paths, process};

/// A tracked file: its path below the root of the repository, with `/`, and what it holds.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    /// Whether it is written by `cargo gen`.
    pub(crate) fn is_generated(&self) -> bool {
        self.path.contains("/generated/")
    }

    /// Its lines with their numbers from 1, without what follows `//`.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let before_comment = |line: &'_ str| line.split("//").next().map_or(0, str::len);
        self.text.lines().enumerate().map(move |(at, line)| (at + 1, &line[..before_comment(line)]))
    }
}

/// All tracked text files that exist.
pub(crate) fn tracked() -> Result<Vec<Source>> {
    if foreign::find("git").is_none() || !paths::repository().join(".git").exists() {
        return Err(missing("git and a checkout"));
    }
    let mut git = Command::new("git");
    git.args(["ls-files", "-z"]).current_dir(paths::repository());
    let listing = process::run(&mut git, "git ls-files", Duration::from_secs(60))?;
    let mut sources = Vec::new();
    for path in listing.split('\0').filter(|path| !path.is_empty()) {
        let file: PathBuf = paths::repository().join(path);
        // Deleted but still tracked, or not a text.
        if let Ok(text) = std::fs::read_to_string(file) {
            sources.push(Source { path: path.to_owned(), text });
        }
    }
    ensure!(sources.len() > 50, "only {} tracked files", sources.len());
    Ok(sources)
}

/// Fails with all findings of a rule.
pub(crate) fn none(findings: &[String]) -> Result<()> {
    ensure!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    Ok(())
}
