//! Finds Kafka's jars, by Maven or in a directory, and reads the message definitions out of them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::model::Definition;
use crate::{ARTIFACTS, KAFKA_VERSION};

/// The jars of [`ARTIFACTS`]: in `dir`, or fetched by Maven into its local repository.
pub(crate) fn locate(dir: Option<&Path>) -> Result<Vec<PathBuf>> {
    ARTIFACTS
        .iter()
        .map(|artifact| match dir {
            Some(dir) => Ok(dir.join(format!("{artifact}-{KAFKA_VERSION}.jar"))),
            None => fetch(artifact),
        })
        .collect()
}

fn fetch(artifact: &str) -> Result<PathBuf> {
    let coordinates = format!("org.apache.kafka:{artifact}:{KAFKA_VERSION}");
    let target = std::env::temp_dir().join(format!("millrace-gen-jars-{}", std::process::id()));
    // `copy` resolves through the local repository first, so a second run needs no network.
    let status = Command::new("mvn")
        .args(["--batch-mode", "--quiet", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"])
        .arg(format!("-Dartifact={coordinates}"))
        .arg(format!("-DoutputDirectory={}", target.display()))
        .status()
        .context("cannot run Maven (`mvn`); install it or name a directory with --jars")?;
    ensure!(status.success(), "Maven could not fetch {coordinates}");
    Ok(target.join(format!("{artifact}-{KAFKA_VERSION}.jar")))
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
