//! Apache Kafka's own command line tools, run by the peer's `kafka.sh` against whatever broker a test has.
//!
//! `MILLRACE_KAFKA_PEER` names the directory of the peer's scripts; otherwise it is `../shared/peers/kafka` beside the
//! repository.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::process::Process;
use crate::suite::missing;
use crate::{foreign, paths, process};

/// A JVM that starts, asks one thing and ends.
const TOOL_LIMIT: Duration = Duration::from_secs(90);
const SETUP_LIMIT: Duration = Duration::from_secs(900);

/// The tools and the broker that they talk to.
pub struct KafkaTools {
    script: PathBuf,
    bootstrap: String,
}

impl KafkaTools {
    /// Finds the scripts and fetches Kafka's jars when they are not there.
    pub fn find(bootstrap: String) -> Result<KafkaTools> {
        Ok(KafkaTools { script: Self::need()?, bootstrap })
    }

    /// As `find`, before there is a broker: the path of `kafka.sh`.
    pub fn need() -> Result<PathBuf> {
        foreign::need(&["bash", "java", "mvn"])?;
        let directory = std::env::var_os("MILLRACE_KAFKA_PEER")
            .map_or_else(|| paths::repository().join("../shared/peers/kafka"), PathBuf::from);
        let script = directory.join("kafka.sh");
        if !script.is_file() {
            return Err(missing("Apache Kafka's tools: MILLRACE_KAFKA_PEER names the directory of kafka.sh"));
        }
        process::run(Command::new("bash").arg(directory.join("setup.sh")), "setup.sh", SETUP_LIMIT)?;
        Ok(script)
    }

    /// The command that runs a tool, without arguments.
    pub fn command(&self, tool: &str) -> Command {
        let mut command = Command::new("bash");
        command.arg(&self.script).arg(tool);
        command
    }

    /// The command that runs a tool against the broker.
    pub fn client(&self, tool: &str, arguments: &[&str]) -> Command {
        let mut command = self.command(tool);
        command.args(["--bootstrap-server", &self.bootstrap]).args(arguments);
        command
    }

    /// Runs a tool against the broker; its standard output.
    pub fn run(&self, tool: &str, arguments: &[&str]) -> Result<String> {
        process::run(&mut self.client(tool, arguments), tool, TOOL_LIMIT)
    }

    /// As `run`, with text on its standard input.
    pub fn run_with_input(&self, tool: &str, arguments: &[&str], input: &str) -> Result<String> {
        Process::spawn_with_input(&mut self.client(tool, arguments), tool, TOOL_LIMIT, input)?.success()
    }
}
