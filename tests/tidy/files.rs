//! Rules about single files: how they open, how long they are, what they must not contain.

use millrace_tests::paths;
use millrace_tests::suite::{self, Cost, Outcome};

use crate::tree::{Source, none, tracked};

const MAX_LINES: usize = 800;

/// Every file opens by saying what it is.
fn without_header(sources: &[Source]) -> Vec<String> {
    let rust = sources.iter().filter(|source| source.is_rust());
    rust.filter(|source| !source.text.starts_with("//! ")).map(|source| source.path.clone()).collect()
}

/// A file that is too long has two purposes.
fn too_long(sources: &[Source]) -> Vec<String> {
    let rust = sources.iter().filter(|source| source.is_rust() && !source.is_generated());
    let lengths = rust.map(|source| (source, source.text.lines().count()));
    lengths
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(source, lines)| format!("{}: {lines} lines", source.path))
        .collect()
}

/// Marks of unfinished work. The parts are joined here so that this file does not find itself.
fn unfinished(sources: &[Source]) -> Vec<String> {
    let signs = [
        ["to", "do!("],
        ["unimple", "mented!("],
        ["db", "g!("],
        ["FIX", "ME"],
        ["#[ign", "ore"],
        ["TO", "DO"],
    ]
    .map(|parts| parts.concat());
    found(sources, &signs, |source| source.is_rust())
}

/// Paths of the machine that somebody worked on.
fn machine_paths(sources: &[Source]) -> Vec<String> {
    let signs = [["/wo", "rk/"], ["/ro", "ot/"], ["/tm", "p/"], ["/home", "/"]].map(|parts| parts.concat());
    found(sources, &signs, |_| true)
}

/// Hosts of package registries: which one is used is a matter of the machine. Cargo.lock cannot do without one.
fn registry_hosts(sources: &[Source]) -> Vec<String> {
    let signs = [
        ["crates", ".io"],
        ["npmjs", ".org"],
        ["npmjs", ".com"],
        ["pypi", ".org"],
        ["pythonhosted", ".org"],
        ["proxy.golang", ".org"],
        ["sum.golang", ".org"],
        ["maven", ".org"],
        ["repo.maven", ".apache.org"],
        ["deb.debian", ".org"],
    ]
    .map(|parts| parts.concat());
    found(sources, &signs, |source| source.path != "Cargo.lock")
}

fn found(sources: &[Source], signs: &[String], of: impl Fn(&Source) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| of(source)) {
        for (at, line) in source.text.lines().enumerate() {
            for sign in signs.iter().filter(|sign| line.contains(sign.as_str())) {
                findings.push(format!("{}:{}: {sign}", source.path, at + 1));
            }
        }
    }
    findings
}

/// `lib.rs` is a map of its crate: no functions.
fn logic_in_maps(sources: &[Source]) -> Vec<String> {
    let maps = sources.iter().filter(|source| source.path.ends_with("/lib.rs"));
    let is_function = |line: &str| line.trim_start().starts_with("fn ") || line.contains("pub fn ");
    maps.flat_map(|source| {
        let functions = source.code_lines().filter(|(_, line)| is_function(line));
        functions.map(|(at, _)| format!("{}:{at}: a function", source.path)).collect::<Vec<_>>()
    })
    .collect()
}

/// Relative links of Markdown pages lead to files.
fn dead_links(sources: &[Source], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".md")) {
        let directory = source.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        for target in source.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.contains(char::is_whitespace) {
                continue;
            }
            if !exists(&format!("{directory}/{file}")) {
                findings.push(format!("{}: {target}", source.path));
            }
        }
    }
    findings
}

#[test]
fn files_open_with_a_header() -> Outcome {
    suite::run(Cost::Light, || none(&without_header(&tracked()?)))
}

#[test]
fn files_are_short() -> Outcome {
    suite::run(Cost::Light, || none(&too_long(&tracked()?)))
}

#[test]
fn nothing_is_unfinished() -> Outcome {
    suite::run(Cost::Light, || none(&unfinished(&tracked()?)))
}

#[test]
fn no_machine_paths() -> Outcome {
    suite::run(Cost::Light, || none(&machine_paths(&tracked()?)))
}

#[test]
fn no_registry_hosts() -> Outcome {
    suite::run(Cost::Light, || none(&registry_hosts(&tracked()?)))
}

#[test]
fn maps_hold_no_logic() -> Outcome {
    suite::run(Cost::Light, || none(&logic_in_maps(&tracked()?)))
}

#[test]
fn links_lead_somewhere() -> Outcome {
    suite::run(Cost::Light, || {
        let root = paths::repository();
        none(&dead_links(&tracked()?, |path| root.join(path.trim_start_matches('/')).exists()))
    })
}

#[test]
fn the_rules_find_what_they_are_for() {
    let one = |path: &str, text: &str| vec![Source::new(path, text)];
    assert_eq!(without_header(&one("a/b.rs", "fn f() {}\n")).len(), 1);
    assert!(without_header(&one("a/b.rs", "//! What it is.\n")).is_empty());
    assert_eq!(too_long(&one("a/b.rs", &"\n".repeat(801))).len(), 1);
    assert!(too_long(&one("a/generated/b.rs", &"\n".repeat(801))).is_empty());
    assert_eq!(unfinished(&one("a/b.rs", &["    to", "do!()"].concat())).len(), 1);
    assert_eq!(machine_paths(&one("a.md", &["see /wo", "rk/x"].concat())).len(), 1);
    assert_eq!(registry_hosts(&one("a.json", &["registry.npmjs", ".org"].concat())).len(), 1);
    assert!(registry_hosts(&one("Cargo.lock", &["crates", ".io"].concat())).is_empty());
    assert_eq!(logic_in_maps(&one("a/src/lib.rs", "//! Map.\npub fn f() {}\n")).len(), 1);
    assert_eq!(
        dead_links(&one("docs/a.md", "[x](b.md#c) [y](gone.md)"), |path| path == "docs/b.md").len(),
        1
    );
}
