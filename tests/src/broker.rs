//! A Millrace node as a process: start, stop, kill and start again on one data directory and port.
//!
//! 1. Whatever ends the test, the process is killed and its directories are removed.
//! 2. The logs of all starts are scanned when the value is dropped (see `logs`); what is unexpected fails the test.
//! 3. `MILLRACE_TEST_BOOTSTRAP=HOST:PORT` makes `Target::start` use a broker that runs already, of whatever make.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::process::{Process, Signal};
use crate::{binary, logs, paths, process, suite};

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const LIFE_LIMIT: Duration = Duration::from_secs(900);

/// How a node is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of shards; they may share a core.
    pub shards: u16,
    /// Memory budget as on the command line (`256MiB`).
    pub memory: &'static str,
    /// Data directory; a scratch directory when `None`.
    pub data_dir: Option<PathBuf>,
    /// Settings that go as `--set KEY=VALUE`.
    pub settings: Vec<(&'static str, String)>,
    /// Parts of WARN and ERROR lines that this test provokes.
    pub allowed_logs: Vec<&'static str>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            shards: 2,
            memory: "256MiB",
            data_dir: None,
            settings: Vec::new(),
            allowed_logs: Vec::new(),
        }
    }
}

/// A node, running or stopped.
pub struct Broker {
    options: Options,
    port: u16,
    data_dir: PathBuf,
    process: Option<Process>,
    log: String,
    _scratch: Option<TempDir>,
}

impl Broker {
    /// Starts a node and waits until it answers.
    pub fn start(options: Options) -> Result<Broker> {
        let scratch = options.data_dir.is_none().then(|| paths::scratch("data")).transpose()?;
        let data_dir = match (&options.data_dir, &scratch) {
            (Some(given), _) => given.clone(),
            (None, Some(made)) => made.path().to_owned(),
            (None, None) => bail!("no data directory"),
        };
        let port = free_port()?;
        let mut broker =
            Broker { options, port, data_dir, process: None, log: String::new(), _scratch: scratch };
        broker.start_again()?;
        Ok(broker)
    }

    /// Starts the node again on the same port and data.
    pub fn start_again(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the node is running");
        let mut process = Process::spawn(&mut self.command()?, "millrace", LIFE_LIMIT)?;
        let port = self.port;
        let ready = process.wait_until("ready", START_LIMIT, |_| Ok(answers(port)));
        self.process = Some(process);
        if ready.is_err() {
            self.take_log();
        }
        ready
    }

    /// The command line that starts this node.
    pub fn command(&self) -> Result<Command> {
        let mut command = Command::new(binary::millrace()?);
        command.arg("serve").arg("--data-dir").arg(&self.data_dir);
        command.args(["--listener", &format!("PLAINTEXT://127.0.0.1:{}", self.port)]);
        command.args(["--shards", &self.options.shards.to_string(), "--memory", self.options.memory]);
        command.args(["--set", "http.listener=off"]);
        for (key, value) in &self.options.settings {
            command.args(["--set", &format!("{key}={value}")]);
        }
        Ok(command)
    }

    /// `HOST:PORT` for clients.
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The pid of the running process.
    pub fn pid(&self) -> Result<u32> {
        Ok(self.process.as_ref().context("the node is not running")?.pid())
    }

    /// The running process, for waiting and signals.
    pub fn process(&mut self) -> Result<&mut Process> {
        self.process.as_mut().context("the node is not running")
    }

    /// What the node logged in its current and earlier lives.
    pub fn log(&self) -> String {
        let now = self.process.as_ref().map(|p| p.stdout() + &p.stderr()).unwrap_or_default();
        format!("{}{now}", self.log)
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
        let kib: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kib * 1024)
    }

    /// `kill -9`.
    pub fn kill(&mut self) -> Result<()> {
        self.process()?.signal(Signal::KILL)?;
        self.wait_end()?;
        Ok(())
    }

    /// SIGTERM; the node must end by itself with status 0.
    pub fn stop(&mut self) -> Result<()> {
        self.process()?.signal(Signal::TERM)?;
        let status = self.wait_end()?;
        ensure!(status.success(), "the node ended with {status} after SIGTERM");
        Ok(())
    }

    /// Waits for the end of a process that was told to end, or that ends by itself.
    pub fn wait_end(&mut self) -> Result<ExitStatus> {
        let process = self.process()?;
        let mut status = None;
        let outcome = process.wait_until("end", STOP_LIMIT, |process| {
            status = process.ended()?;
            Ok(status.is_some())
        });
        self.take_log();
        outcome?;
        status.context("the process ended")
    }

    fn take_log(&mut self) {
        self.log = self.log();
        self.process = None;
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.take_log();
        suite::note(format!("log of the node on port {}", self.port), process::tail(&self.log));
        for line in logs::unexpected(&self.log, &self.options.allowed_logs) {
            suite::problem(format!("unexpected in the node's log: {line}"));
        }
    }
}

/// What a client test talks to.
pub enum Target {
    /// A Millrace node of this test.
    Own(Box<Broker>),
    /// A broker that was running before.
    Given(String),
}

impl Target {
    /// A new node, or the broker of `MILLRACE_TEST_BOOTSTRAP`.
    pub fn start(options: Options) -> Result<Target> {
        match std::env::var("MILLRACE_TEST_BOOTSTRAP") {
            Ok(given) => Ok(Target::Given(given)),
            Err(_) => Ok(Target::Own(Box::new(Broker::start(options)?))),
        }
    }

    /// `HOST:PORT` for clients.
    pub fn bootstrap(&self) -> String {
        match self {
            Target::Own(broker) => broker.bootstrap(),
            Target::Given(given) => given.clone(),
        }
    }
}

/// A name that no earlier run used, for topics and groups.
pub fn unique(prefix: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{prefix}-{:x}", now.as_nanos())
}

/// A loopback port that nobody listens on, below those that the kernel hands to outgoing connections: a client that
/// knocks at a killed node's port must not be given that port itself, and so talk to itself or keep it taken.
pub fn free_port() -> Result<u16> {
    const FIRST: u32 = 20_000;
    const COUNT: u32 = 12_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        let turn = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id().wrapping_mul(97));
        let port = u16::try_from(FIRST + turn % COUNT)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port")
}

/// Whether a broker answers an ApiVersions request (version 0) on the port.
fn answers(port: u16) -> bool {
    const REQUEST: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];
    let mut answer = [0; 10];
    let mut ask = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(&REQUEST)?;
        stream.read_exact(&mut answer)
    };
    ask().is_ok() && answer[4..] == [0, 0, 0, 7, 0, 0]
}
