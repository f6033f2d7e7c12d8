//! Running the binary: to its end within a bound, or as a node that is killed when the test ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use runtime::time;
use serde_json::Value;

/// Bounds for a machine that is busy with other builds.
const COMMAND_WITHIN: Duration = Duration::from_secs(60);
const READY_WITHIN: Duration = Duration::from_secs(60);

/// What a command that ended has said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Standard output as one JSON value.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The failure on standard error as JSON: its last line.
    pub(crate) fn failure(&self) -> Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the binary to its end.
pub(crate) fn millrace(args: &[&str]) -> Ended {
    let mut child = command(args).spawn().expect("the binary starts");
    let out = read_all(child.stdout.take().expect("piped"));
    let err = read_all(child.stderr.take().expect("piped"));
    let code = wait(&mut child, COMMAND_WITHIN);
    let text = |r: Receiver<String>| r.recv_timeout(COMMAND_WITHIN).unwrap_or_default();
    Ended { code, stdout: text(out), stderr: text(err) }
}

fn read_all(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        let _ = from.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    receiver
}

/// The exit code; the child is killed when it takes too long.
fn wait(child: &mut Child, within: Duration) -> Option<i32> {
    let end = time::now() + within;
    while time::now() < end {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return status.code();
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
    panic!("the command did not end within {within:?}");
}

/// A node that serves; killed on drop.
pub(crate) struct Node {
    child: Child,
    log: Receiver<String>,
    seen: Vec<String>,
    /// The fields of its "ready" line.
    pub(crate) ready: Value,
}

impl Node {
    /// Starts a small node on free ports and waits until it serves.
    pub(crate) fn start(dir: &Path, more: &[&str]) -> Node {
        let dir = dir.to_str().expect("UTF-8");
        let mut args =
            vec!["serve", "--format", "json", "--data-dir", dir, "--memory", "64MiB", "--shards", "2"];
        args.extend(["--listener", "PLAINTEXT://127.0.0.1:0", "--http", "127.0.0.1:0"]);
        args.extend(["--set", "journal.file.bytes=4MiB", "--set", "storage.min.free.bytes=1MiB"]);
        args.extend(more);
        let mut child = command(&args).stdout(Stdio::null()).spawn().expect("the binary starts");
        let stderr = child.stderr.take().expect("piped");
        let (sender, log) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
        });
        let mut node = Node { child, log, seen: Vec::new(), ready: Value::Null };
        node.ready = node.wait_log("ready");
        node
    }

    /// The log line with this message.
    pub(crate) fn wait_log(&mut self, message: &str) -> Value {
        let end = time::now() + READY_WITHIN;
        while let Ok(line) = self.log.recv_timeout(end.duration_since(time::now())) {
            let value: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
            self.seen.push(line);
            if value["message"] == message {
                return value;
            }
        }
        panic!("no {message:?} in the log:\n{}", self.seen.join("\n"));
    }

    /// Where clients connect.
    pub(crate) fn bootstrap(&self) -> String {
        let advertised = self.ready["advertised"].as_str().unwrap_or_default();
        advertised.trim_start_matches("PLAINTEXT://").to_owned()
    }

    /// Runs an admin command against it.
    pub(crate) fn admin(&self, args: &[&str]) -> Ended {
        let bootstrap = self.bootstrap();
        let args: Vec<&str> = args.iter().copied().chain(["--bootstrap", &bootstrap]).collect();
        millrace(&args)
    }

    /// Stops it with SIGTERM; gives the exit code and how long it took.
    pub(crate) fn stop(&mut self) -> (Option<i32>, Duration) {
        let started = time::now();
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        assert!(sent.success());
        (wait(&mut self.child, Duration::from_secs(30)), started.elapsed())
    }

    /// Status and body of a GET on its HTTP server.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let address = self.ready["http"].as_str().expect("it has an HTTP server");
        let mut stream = TcpStream::connect(address).expect("the HTTP server accepts");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
            .expect("writes");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("reads");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        (status, body.to_owned())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
