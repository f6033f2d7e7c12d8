//! The other languages: finds their tools, and brings their packages by their own package managers.
//!
//! 1. Packages lie in `target/foreign/NAME-HASH`, where the hash is over the files that name them: a changed file makes
//!    a new directory, an unchanged one is used again.
//! 2. A directory counts only with its `.complete` mark, which is written last.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::suite::missing;
use crate::{paths, process};

const FETCH_LIMIT: Duration = Duration::from_secs(600);

/// Where `program` is on the PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

/// Fails with the name of the first of the programs that is not on the PATH.
pub fn need(programs: &[&str]) -> Result<()> {
    match programs.iter().find(|program| find(program).is_none()) {
        Some(program) => Err(missing(*program)),
        None => Ok(()),
    }
}

/// The sources of the client programs in `language`.
pub fn sources(language: &str) -> PathBuf {
    paths::repository().join("tests/clients").join(language)
}

/// A directory filled once by `fill` for the present contents of the files `inputs`.
pub fn prepared(name: &str, inputs: &[PathBuf], fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    for input in inputs {
        std::fs::read(input).with_context(|| format!("reading {}", input.display()))?.hash(&mut hasher);
    }
    let directory = paths::foreign(&format!("{name}-{:016x}", hasher.finish()));
    std::fs::create_dir_all(&directory)?;
    let lock = File::create(directory.join(".lock"))?;
    lock.lock()?;
    let mark = directory.join(".complete");
    if !mark.exists() {
        fill(&directory).with_context(|| format!("preparing {name}"))?;
        File::create(mark)?;
    }
    Ok(directory)
}

fn fetch(command: &mut Command, name: &str) -> Result<()> {
    process::run(command, name, FETCH_LIMIT).map(drop)
}

/// All files of a directory with the extension, sorted.
pub fn files(directory: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(extension)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The Java client program, compiled against one release of kafka-clients.
pub struct Java {
    directory: PathBuf,
}

impl Java {
    /// Fetches the jars of `kafka-clients` in `version` and compiles the program against them.
    pub fn with_clients(version: &str) -> Result<Java> {
        need(&["java", "javac", "mvn"])?;
        let sources = sources("java");
        let programs = files(&sources.join("src"), "java")?;
        let mut inputs = programs.clone();
        inputs.push(sources.join("pom.xml"));
        let directory = prepared(&format!("java-{version}"), &inputs, |directory| {
            let libraries = directory.join("libs");
            let mut maven = Command::new("mvn");
            maven.args(["-q", "-B", "-Dstyle.color=never", "-DincludeScope=runtime", "-f"]);
            maven.arg(sources.join("pom.xml")).arg("dependency:copy-dependencies");
            maven.arg(format!("-Dclients.version={version}"));
            maven.arg(format!("-DoutputDirectory={}", libraries.display()));
            fetch(&mut maven, "mvn")?;
            let mut compiler = Command::new("javac");
            compiler.args(["-encoding", "UTF-8", "-d"]).arg(directory.join("classes"));
            compiler.args(["-cp", &format!("{}/*", libraries.display())]).args(&programs);
            fetch(&mut compiler, "javac")
        })?;
        Ok(Java { directory })
    }

    /// The command that runs the client program.
    pub fn client(&self) -> Command {
        let mut command = Command::new("java");
        // Short runs: compile quickly rather than well.
        command.args(["-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
        command.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp"]);
        command.arg(format!("{0}/classes:{0}/libs/*", self.directory.display())).arg("Client");
        command
    }
}

/// The command that runs a Python client program with its packages.
pub fn python(program: &str) -> Result<Command> {
    need(&["python3"])?;
    let sources = sources("python");
    let requirements = sources.join("requirements.txt");
    let environment = prepared("python", std::slice::from_ref(&requirements), |directory| {
        fetch(Command::new("python3").args(["-m", "venv"]).arg(directory), "python3 -m venv")?;
        let mut pip = Command::new(directory.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        fetch(pip.arg(&requirements), "pip install")
    })?;
    let mut command = Command::new(environment.join("bin/python"));
    command.arg("-B").arg(sources.join(program));
    Ok(command)
}

/// The command that runs the Go client program, built with its modules.
pub fn go() -> Result<Command> {
    need(&["go"])?;
    let sources = sources("go");
    let mut inputs = files(&sources, "go")?;
    inputs.extend([sources.join("go.mod"), sources.join("go.sum")]);
    let directory = prepared("go", &inputs, |directory| {
        let mut go = Command::new("go");
        go.args(["build", "-mod=readonly", "-o"])
            .arg(directory.join("client"))
            .arg(".")
            .current_dir(&sources);
        fetch(&mut go, "go build")
    })?;
    Ok(Command::new(directory.join("client")))
}

/// The command that runs the Node client program with its packages.
pub fn node() -> Result<Command> {
    need(&["node", "npm"])?;
    let sources = sources("node");
    let manifests = [sources.join("package.json"), sources.join("package-lock.json")];
    let mut inputs = files(&sources, "js")?;
    inputs.extend(manifests.clone());
    let programs = inputs.clone();
    let directory = prepared("node", &inputs, |directory| {
        // Node looks for packages beside the program, and nothing is to be installed among the sources.
        for program in &programs {
            let name = program.file_name().context("a file has a name")?;
            std::fs::copy(program, directory.join(name))?;
        }
        fetch(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(directory), "npm ci")
    })?;
    let mut command = Command::new("node");
    command.arg(directory.join("client.js"));
    Ok(command)
}

/// The command `kcat`; root installs it when it is missing.
pub fn kcat() -> Result<Command> {
    if find("kcat").is_none() {
        if find("apt-get").is_none() || !rustix::process::geteuid().is_root() {
            return Err(missing("kcat"));
        }
        fetch(Command::new("apt-get").args(["update", "-qq"]), "apt-get update")?;
        let mut install = Command::new("apt-get");
        install.args(["install", "-y", "-qq", "--no-install-recommends", "kcat"]);
        fetch(install.env("DEBIAN_FRONTEND", "noninteractive"), "apt-get install kcat")?;
    }
    Ok(Command::new("kcat"))
}
