//! A child process that cannot outlive its deadline or the test that started it.
//!
//! 1. Its output goes to files, so that nobody has to read along for it to go on.
//! 2. Dropping it kills it and waits for its end.
//! 3. Signals go by pid, and only while the process has not been waited for.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;

pub use rustix::process::Signal;

use crate::{paths, suite};

const POLL_INTERVAL: Duration = Duration::from_millis(10);
const TAIL_LINES: usize = 60;

/// A running child.
pub struct Process {
    name: String,
    child: Child,
    deadline: Instant,
    output: TempDir,
}

/// A child that ended.
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// All that it wrote to standard output.
    pub stdout: String,
    /// All that it wrote to standard error.
    pub stderr: String,
}

impl Process {
    /// Starts a child that is killed after `limit`, and when dropped.
    pub fn spawn(command: &mut Command, name: &str, limit: Duration) -> Result<Process> {
        Self::spawn_with_input(command, name, limit, "")
    }

    /// As `spawn`, with `input` on its standard input.
    pub fn spawn_with_input(
        command: &mut Command,
        name: &str,
        limit: Duration,
        input: &str,
    ) -> Result<Process> {
        let output = paths::scratch("output")?;
        let stdin = output.path().join("stdin");
        std::fs::write(&stdin, input)?;
        let child = command
            .stdin(File::open(&stdin)?)
            .stdout(Stdio::from(File::create(output.path().join("stdout"))?))
            .stderr(Stdio::from(File::create(output.path().join("stderr"))?))
            .spawn()
            .with_context(|| format!("starting {name}: {command:?}"))?;
        Ok(Process { name: name.to_owned(), child, deadline: Instant::now() + limit, output })
    }

    /// Process id; the same for as long as the value lives.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to standard output so far.
    pub fn stdout(&self) -> String {
        read_lossy(&self.output.path().join("stdout"))
    }

    /// How many bytes it wrote to standard output so far.
    pub fn stdout_bytes(&self) -> u64 {
        std::fs::metadata(self.output.path().join("stdout")).map_or(0, |file| file.len())
    }

    /// What it wrote to standard error so far.
    pub fn stderr(&self) -> String {
        read_lossy(&self.output.path().join("stderr"))
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Sends a signal to the process itself.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        ensure!(self.ended()?.is_none(), "{} has ended before it was sent {signal:?}", self.name);
        let pid = Pid::from_raw(self.pid().cast_signed()).context("a pid is positive")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Polls `condition` until it holds; an error when the process ends first or the time is over.
    pub fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        mut condition: impl FnMut(&mut Process) -> Result<bool>,
    ) -> Result<()> {
        let end = self.deadline.min(Instant::now() + limit);
        while !condition(self)? {
            if let Some(status) = self.ended()? {
                self.keep_notes();
                bail!("{} ended with {status} before: {what}", self.name);
            }
            if Instant::now() > end {
                self.keep_notes();
                bail!("{}: timed out: {what}", self.name);
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Waits for its end, at most until its deadline.
    pub fn wait(mut self) -> Result<Finished> {
        let status = self.wait_status()?;
        Ok(Finished { status, stdout: self.stdout(), stderr: self.stderr() })
    }

    /// Waits for its end and returns its standard output; any status but 0 is an error with all that it said.
    pub fn success(mut self) -> Result<String> {
        let status = self.wait_status()?;
        if !status.success() {
            self.keep_notes();
            bail!("{} ended with {status}", self.name);
        }
        Ok(self.stdout())
    }

    fn wait_status(&mut self) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() > self.deadline {
                self.keep_notes();
                bail!("{} did not end in its time", self.name);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn keep_notes(&self) {
        suite::note(format!("{} stdout", self.name), tail(&self.stdout()));
        suite::note(format!("{} stderr", self.name), tail(&self.stderr()));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end within `limit`; its standard output, or an error with all that it said.
pub fn run(command: &mut Command, name: &str, limit: Duration) -> Result<String> {
    Process::spawn(command, name, limit)?.success()
}

/// The last lines of a text.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}
