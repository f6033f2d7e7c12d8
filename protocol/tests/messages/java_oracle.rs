//! Runs `tests/java/Oracle.java`, which answers for Apache Kafka.
//!
//! Needs `java` (17 or later) and, for Kafka's jars, `mvn`. Without them the tests that ask are skipped and say so; where
//! the variable `CI` is `true` that is a failure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// What Kafka answered: the text behind `ok`, or the name of the exception.
pub(crate) type Answer = Result<String, String>;

/// An answer for each question, or `None` where Kafka cannot be asked. `name` tells the tests apart.
pub(crate) fn ask(name: &str, questions: &[String]) -> Option<Vec<Answer>> {
    static CLASS_PATH: OnceLock<Result<String, String>> = OnceLock::new();
    let class_path = match CLASS_PATH.get_or_init(class_path) {
        Ok(class_path) => class_path,
        Err(missing) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
            eprintln!("skipped: {missing}");
            return None;
        }
    };
    let file = scratch(name);
    fs::write(&file, questions.join("\n")).expect("a scratch file");
    let output = Command::new("java")
        .args(["-XX:TieredStopAtLevel=1", "-cp", class_path])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/Oracle.java"))
        .arg(&file)
        .stderr(Stdio::inherit())
        .output()
        .expect("java ran before");
    assert!(output.status.success(), "the oracle failed");
    let text = String::from_utf8(output.stdout).expect("hexadecimal text");
    let answers: Vec<Answer> = text
        .lines()
        .map(|line| match line.split_once(' ').expect("two words") {
            ("ok", answer) => Ok(answer.to_owned()),
            (_, exception) => Err(exception.to_owned()),
        })
        .collect();
    assert_eq!(answers.len(), questions.len());
    Some(answers)
}

/// Kafka's jars, or what is missing to have them.
fn class_path() -> Result<String, String> {
    let runs = |program: &str, argument: &str| {
        let status = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if status.is_ok_and(|status| status.success()) {
            return Ok(());
        }
        Err(format!("`{program}` is not installed; the tests against Apache Kafka's own code need it"))
    };
    runs("java", "-version")?;
    runs("mvn", "-version")?;
    let listed = scratch("class-path");
    let status = Command::new("mvn")
        .args(["--batch-mode", "--quiet", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/gen/pom.xml")])
        .arg("org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath")
        .arg(format!("-Dmdep.outputFile={}", listed.display()))
        .stdout(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("Maven could not fetch Kafka's jars".to_owned());
    }
    Ok(fs::read_to_string(listed).expect("what Maven wrote").trim().to_owned())
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("oracle-{name}.txt"))
}
