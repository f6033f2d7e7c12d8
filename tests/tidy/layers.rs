//! Rules about layers: which crate may use which, and which names may stand where (docs/architecture.md).

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use millrace_tests::suite::{self, Cost, Outcome};
use millrace_tests::{paths, process};
use serde_json::Value;

use crate::tree::{Source, none, tracked};

/// Each crate and those of ours that it may depend on outside its tests.
const MAY_USE: [(&str, &[&str]); 8] = [
    ("millrace-runtime", &[]),
    ("millrace-protocol", &[]),
    ("millrace-gen", &[]),
    ("millrace-storage", &["millrace-runtime", "millrace-protocol"]),
    ("millrace-raft", &["millrace-storage", "millrace-runtime", "millrace-protocol"]),
    ("millrace-broker", &["millrace-raft", "millrace-storage", "millrace-runtime", "millrace-protocol"]),
    ("millrace-bench", &["millrace-runtime", "millrace-protocol"]),
    (
        "millrace",
        &[
            "millrace-bench",
            "millrace-broker",
            "millrace-raft",
            "millrace-storage",
            "millrace-runtime",
            "millrace-protocol",
        ],
    ),
];

/// A name that may stand in the code below some directories only.
struct Fence {
    names: &'static [&'static str],
    inside: &'static [&'static str],
    why: &'static str,
}

const FENCES: [Fence; 3] = [
    Fence {
        names: &["glommio", "io_uring", "libc"],
        inside: &["runtime/"],
        why: "only the runtime crate knows the machine",
    },
    Fence {
        names: &["tokio", "axum", "hyper"],
        inside: &["broker/src/http/", "runtime/tests/"],
        why: "only the HTTP sidecar uses them",
    },
    Fence {
        names: &["std::thread::spawn", "std::time::SystemTime", "SystemTime::now", "Instant::now"],
        inside: &["runtime/", "tests/", "protocol/gen/", "protocol/tests/"],
        why: "threads and clocks come from the runtime crate",
    },
];

/// Directories of pure state machines, and what they must not name.
const PURE: [&str; 2] = ["broker/src/coordinator/group/", "broker/src/metadata/decide/"];
const IMPURE: [&str; 7] = ["runtime", "async", "tokio", "std::time", "HashMap", "HashSet", "RefCell"];

/// The parts of `protocol` that storage and raft do not know: messages and frames.
const LOW: [&str; 2] = ["storage/src/", "raft/src/"];
const HIGH_NAMES: [&str; 2] = ["protocol::messages", "protocol::frame"];

/// Whether `name` stands in the line as a name of its own.
fn names(line: &str, name: &str) -> bool {
    let is_part = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(name).any(|(at, _)| {
        !is_part(line[..at].chars().next_back()) && !is_part(line[at + name.len()..].chars().next())
    })
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}

fn breaches(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let below = |directories: &[&str]| directories.iter().any(|d| source.path.starts_with(d));
        let mut forbidden: Vec<(&str, &str)> = Vec::new();
        for fence in FENCES.iter().filter(|fence| !below(fence.inside)) {
            forbidden.extend(fence.names.iter().map(|name| (*name, fence.why)));
        }
        if below(&PURE) && !is_test(&source.path) {
            forbidden.extend(IMPURE.map(|name| (name, "deciding is pure")));
        }
        if below(&LOW) && !is_test(&source.path) {
            forbidden.extend(HIGH_NAMES.map(|name| (name, "this layer knows record batches only")));
        }
        // The rules themselves, and tests of the process from outside, which have clocks of their own.
        if below(&["tests/"]) {
            continue;
        }
        for (at, line) in source.code_lines() {
            for (name, why) in forbidden.iter().filter(|(name, _)| names(line, name)) {
                findings.push(format!("{}:{at}: {name}: {why}", source.path));
            }
        }
    }
    findings
}

/// Dependencies (not of tests) of a workspace's packages that `MAY_USE` does not allow.
fn wrong_dependencies(metadata: &Value) -> Result<Vec<String>> {
    let allowed: BTreeMap<_, _> = MAY_USE.into_iter().collect();
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        let name = package["name"].as_str().context("no name")?;
        if name == "millrace-tests" {
            continue;
        }
        let Some(may_use) = allowed.get(name) else {
            findings.push(format!("{name} has no place in the layers"));
            continue;
        };
        for dependency in package["dependencies"].as_array().context("no dependencies")? {
            let used = dependency["name"].as_str().context("no name")?;
            let ours = used == "millrace" || used.starts_with("millrace-");
            if ours && dependency["kind"].is_null() && !may_use.contains(&used) {
                findings.push(format!("{name} must not use {used}"));
            }
        }
    }
    Ok(findings)
}

#[test]
fn names_stay_in_their_layer() -> Outcome {
    suite::run(Cost::Light, || none(&breaches(&tracked()?)))
}

#[test]
fn dependencies_point_one_way() -> Outcome {
    suite::run(Cost::Light, || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version", "1", "--no-deps", "--locked"]);
        let metadata =
            process::run(cargo.current_dir(paths::repository()), "cargo metadata", Duration::from_secs(120))?;
        none(&wrong_dependencies(&serde_json::from_str(&metadata)?)?)
    })
}

#[test]
fn the_rules_find_breaches() -> Result<()> {
    let one = |path: &str, text: &str| vec![Source::new(path, text)];
    assert_eq!(breaches(&one("storage/src/a.rs", "use glommio::io;\n")).len(), 1);
    assert!(breaches(&one("runtime/src/a.rs", "use glommio::io;\n")).is_empty());
    assert!(breaches(&one("storage/src/a.rs", "// glommio does this\nlet libcfoo = 1;\n")).is_empty());
    assert_eq!(breaches(&one("broker/src/net/a.rs", "tokio::spawn(x);\n")).len(), 1);
    assert_eq!(breaches(&one("broker/src/coordinator/group/a.rs", "async fn f() {}\n")).len(), 1);
    assert!(
        breaches(&one("broker/src/coordinator/group/tests/a.rs", "use std::collections::HashMap;\n"))
            .is_empty()
    );
    assert_eq!(breaches(&one("storage/src/a.rs", "use protocol::messages::FetchRequest;\n")).len(), 1);
    let package = |name: &str, uses: &str, kind: Value| serde_json::json!({"packages": [{"name": name, "dependencies": [{"name": uses, "kind": kind}]}]});
    assert_eq!(wrong_dependencies(&package("millrace-storage", "millrace-broker", Value::Null))?.len(), 1);
    assert!(wrong_dependencies(&package("millrace-storage", "millrace-broker", "dev".into()))?.is_empty());
    assert!(wrong_dependencies(&package("millrace-storage", "millrace-runtime", Value::Null))?.is_empty());
    assert_eq!(wrong_dependencies(&package("millrace-new", "bytes", Value::Null))?.len(), 1);
    Ok(())
}
