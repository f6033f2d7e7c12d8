//! Starts that must be refused: the exit code is the documented one, and the message names the cause.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use kafka_protocol::records::Compression;
use millrace_tests::broker::{Broker, Options, free_port};
use millrace_tests::mount::Mount;
use millrace_tests::process::Process;
use millrace_tests::suite::{self, Cost, Outcome};
use millrace_tests::wire::{self, Wire};
use millrace_tests::{binary, paths};

const LIMIT: Duration = Duration::from_secs(60);
const CONFIGURATION: i32 = 3;
pub(crate) const ENVIRONMENT: i32 = 4;

/// Runs the command, which must end by itself with the code and say each of the texts.
pub(crate) fn refused(command: &mut Command, code: i32, texts: &[&str]) -> Result<()> {
    let ended = Process::spawn(command, "millrace", LIMIT)?.wait()?;
    let said = ended.stdout + &ended.stderr;
    ensure!(ended.status.code() == Some(code), "it ended with {} instead of {code}:\n{said}", ended.status);
    for text in texts {
        ensure!(said.contains(text), "it does not say {text:?}:\n{said}");
    }
    ensure!(!said.contains("panicked at"), "it panicked:\n{said}");
    Ok(())
}

fn serve(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(binary::millrace()?);
    command.arg("serve").args(arguments).args(["--set", "http.listener=off"]);
    Ok(command)
}

/// All mistakes are reported at once, each with its key and line.
#[test]
fn wrong_configuration() -> Outcome {
    suite::run(Cost::Light, || {
        let directory = paths::scratch("config")?;
        let file = directory.path().join("node.toml");
        let data = directory.path().join("data");
        let text = format!(
            "\"log.dirs\" = {data:?}\n\"shards\" = \"many\"\n\"log.segment.bytes\" = -5\n\"no.such.key\" = 1\n\
             \"zookeeper.connect\" = \"localhost:2181\"\n"
        );
        std::fs::write(&file, text)?;
        let mut command = serve(&["--config", &file.to_string_lossy()])?;
        let texts =
            [":2", "shards", ":3", "log.segment.bytes", ":4", "no.such.key", ":5", "zookeeper.connect"];
        refused(&mut command, CONFIGURATION, &texts)?;
        ensure!(!data.exists(), "a wrong configuration left data behind");
        Ok(())
    })
}

#[test]
fn a_second_node_on_the_same_directory() -> Outcome {
    suite::run(Cost::Light, || {
        let mut broker = Broker::start(Options::default())?;
        let listener = format!("PLAINTEXT://127.0.0.1:{}", free_port()?);
        let data = broker.data_dir().to_string_lossy().into_owned();
        let mut second = serve(&["--data-dir", &data, "--listener", &listener, "--shards", "2"])?;
        refused(&mut second, ENVIRONMENT, &[&data])?;
        let mut client = Wire::connect(&broker.bootstrap())?;
        client.create_topic("unharmed", 1, &[])?;
        let answer = client.produce("unharmed", 0, wire::batch(0..1, 10, Compression::None)?)?;
        ensure!(answer.error == 0, "the first node is harmed: {answer:?}");
        broker.stop()
    })
}

#[test]
fn a_port_that_is_taken() -> Outcome {
    suite::run(Cost::Light, || {
        let directory = paths::scratch("data")?;
        let taken = std::net::TcpListener::bind(("127.0.0.1", free_port()?))?;
        let port = taken.local_addr()?.port().to_string();
        let listener = format!("PLAINTEXT://127.0.0.1:{port}");
        let data = directory.path().to_string_lossy().into_owned();
        refused(&mut serve(&["--data-dir", &data, "--listener", &listener])?, ENVIRONMENT, &[&port])
    })
}

#[test]
fn a_directory_that_cannot_be_written() -> Outcome {
    suite::run(Cost::Light, || {
        let directory = paths::scratch("data")?;
        let mount = Mount::read_only(directory.path())?;
        let listener = format!("PLAINTEXT://127.0.0.1:{}", free_port()?);
        let data = mount.path().to_string_lossy().into_owned();
        refused(&mut serve(&["--data-dir", &data, "--listener", &listener])?, ENVIRONMENT, &[&data])
    })
}

#[test]
fn a_file_where_the_directory_should_be() -> Outcome {
    suite::run(Cost::Light, || {
        let directory = paths::scratch("data")?;
        let file = directory.path().join("file");
        std::fs::write(&file, "not a directory")?;
        let listener = format!("PLAINTEXT://127.0.0.1:{}", free_port()?);
        let data = file.to_string_lossy().into_owned();
        refused(&mut serve(&["--data-dir", &data, "--listener", &listener])?, ENVIRONMENT, &[&data])?;
        ensure!(std::fs::read_to_string(&file)? == "not a directory", "the file was changed");
        Ok(())
    })
}
