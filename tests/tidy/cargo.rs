//! What cargo's checkers say of the workspace: format, lints, each crate alone, generated code, licences, advisories.
//!
//! They run one after the other, in target directories of their own where they would otherwise undo each other's work.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use millrace_tests::suite::{self, Cost, Outcome, say};
use millrace_tests::{foreign, paths, process};

const DENY_VERSION: &str = "0.20.2";
const LIMIT: Duration = Duration::from_secs(1200);
const PACKAGES: [&str; 9] = [
    "millrace-runtime",
    "millrace-protocol",
    "millrace-gen",
    "millrace-storage",
    "millrace-raft",
    "millrace-broker",
    "millrace-bench",
    "millrace",
    "millrace-tests",
];

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(paths::repository());
    // The checks share one directory, which is not that of the running tests.
    command.env("CARGO_TARGET_DIR", paths::target().join("tidy"));
    command
}

fn run(arguments: &[&str]) -> Result<String> {
    process::run(&mut cargo(arguments), &format!("cargo {}", arguments.join(" ")), LIMIT)
}

#[test]
fn format() -> Outcome {
    suite::run(Cost::Light, || run(&["fmt", "--all", "--check"]).map(drop))
}

#[test]
fn lints() -> Outcome {
    suite::run(Cost::Heavy, || {
        run(&["clippy", "--quiet", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])
            .map(drop)
    })
}

/// Building all at once unites features, and so hides a crate that needs one which only another asks for.
#[test]
fn each_crate_alone() -> Outcome {
    suite::run(Cost::Heavy, || {
        for package in PACKAGES {
            run(&["check", "--quiet", "--locked", "--package", package])?;
        }
        Ok(())
    })
}

/// The generated messages are those that the generator makes of Kafka's definitions.
#[test]
fn generated_code_is_fresh() -> Outcome {
    suite::run(Cost::Heavy, || {
        foreign::need(&["mvn"])?;
        run(&["gen", "--check"]).map(drop)
    })
}

/// Licences, sources and duplicates of all dependencies; advisories where their database can be had.
#[test]
fn dependencies_are_allowed() -> Outcome {
    suite::run(Cost::Heavy, || {
        let deny = cargo_deny()?;
        let check = |what: &[&str]| {
            let mut command = Command::new(&deny);
            command.args(["--locked", "check", "--hide-inclusion-graph"]).args(what);
            process::Process::spawn(command.current_dir(paths::repository()), "cargo deny", LIMIT)?.wait()
        };
        let ended = check(&["bans", "licenses", "sources"])?;
        ensure!(ended.status.success(), "cargo deny:\n{}{}", ended.stdout, process::tail(&ended.stderr));
        let ended = check(&["advisories"])?;
        if ended.status.success() {
            return Ok(());
        }
        let text = ended.stdout + &ended.stderr;
        ensure!(text.contains("failed to fetch advisory database"), "cargo deny advisories:\n{text}");
        say(
            "NOTE cargo deny: the advisory database cannot be reached from here; advisories were not checked",
        );
        Ok(())
    })
}

/// The program `cargo-deny`; installed once, outside the target directory, since building it takes minutes.
fn cargo_deny() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).context("HOME is not set")?;
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let root = cache.join("millrace-tools").join(format!("cargo-deny-{DENY_VERSION}"));
    let program = root.join("bin/cargo-deny");
    if !program.is_file() {
        let mut install =
            cargo(&["install", "cargo-deny", "--quiet", "--version", DENY_VERSION, "--locked", "--root"]);
        process::run(install.arg(&root), "cargo install cargo-deny", LIMIT)?;
    }
    ensure!(program.is_file(), "{} was not installed", program.display());
    Ok(program)
}

/// What the machine that judges a change runs is what the README tells everybody to run.
#[test]
fn the_ci_runs_the_readme_s_command() -> Outcome {
    suite::run(Cost::Light, || {
        let read =
            |path: &str| std::fs::read_to_string(paths::repository().join(path)).context(path.to_owned());
        let script = read(".ci/run")?;
        let Some(command) = script.lines().rev().find(|line| line.starts_with("cargo test")) else {
            bail!(".ci/run has no line that begins with `cargo test`");
        };
        let readme = read("README.md")?;
        let said = readme.lines().any(|line| line.split('#').next().unwrap_or_default().trim() == command);
        ensure!(said, "README.md does not say `{command}`");
        Ok(())
    })
}
