//! Finds Kafka's jars, by Maven or in a directory, and reads the message definitions out of them.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::model::Definition;
use crate::{ARTIFACTS, KAFKA_VERSION};

/// The jars of [`ARTIFACTS`]: in `dir`, or where Maven keeps them once it has fetched them.
pub(crate) fn locate(dir: Option<&Path>) -> Result<Vec<PathBuf>> {
    let names = ARTIFACTS.map(|artifact| format!("{artifact}-{KAFKA_VERSION}.jar"));
    if let Some(dir) = dir {
        return Ok(names.map(|name| dir.join(name)).into());
    }
    let known = maven_class_path()?;
    names
        .iter()
        .map(|name| {
            let found = known.iter().find(|path| path.ends_with(name));
            found.cloned().with_context(|| format!("pom.xml does not bring {name}"))
        })
        .collect()
}

/// The jars that `pom.xml` names, fetched by Maven where it does not have them.
fn maven_class_path() -> Result<Vec<PathBuf>> {
    let listed = std::env::temp_dir().join(format!("millrace-gen-{}.txt", std::process::id()));
    let status = Command::new("mvn")
        .args(["--batch-mode", "--quiet", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/pom.xml")])
        .arg("org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath")
        .arg(format!("-Dmdep.outputFile={}", listed.display()))
        .status()
        .context("cannot run Maven (`mvn`); install it or name a directory with --jars")?;
    ensure!(status.success(), "Maven could not fetch Kafka's jars");
    let paths = fs::read_to_string(&listed)?;
    fs::remove_file(&listed)?;
    Ok(std::env::split_paths(paths.trim()).collect())
}

/// Every message definition in the jars, ordered by jar and name.
pub(crate) fn read_definitions(jars: &[PathBuf]) -> Result<Vec<Definition>> {
    let mut definitions = Vec::new();
    for jar in jars {
        let file = File::open(jar).with_context(|| format!("cannot open {}", jar.display()))?;
        let mut archive = zip::ZipArchive::new(file)?;
        let mut names: Vec<String> = archive.file_names().map(str::to_owned).collect();
        names.retain(|name| name.starts_with("common/") && name.ends_with(".json"));
        names.sort();
        if names.is_empty() {
            bail!("{} holds no message definitions", jar.display());
        }
        for name in names {
            let mut text = String::new();
            archive.by_name(&name)?.read_to_string(&mut text)?;
            let definition = serde_json::from_str(&without_comments(&text));
            definitions.push(definition.with_context(|| format!("{name} in {}", jar.display()))?);
        }
    }
    Ok(definitions)
}

/// The definitions are JSON with whole-line `//` comments.
fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_lines_are_dropped_and_strings_kept() {
        assert_eq!(without_comments("// a\n{\n  // b\n  \"c\": \"d//e\"\n}"), "{\n  \"c\": \"d//e\"\n}");
    }
}
