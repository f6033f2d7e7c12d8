//! A node in this process: its shards, its HTTP server, and what happens to it, as one stream of events.
//!
//! 1. `Ended` is the last event, and comes exactly once.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use broker::config::NodeConfig;
use broker::http::{Shards, Sidecar};
use broker::server::{self, NodeEvent, NodeHandle};
use runtime::shard::{self, ShardsConfig};
use runtime::{signal, thread};

use crate::exit::{Exit, Failure};
use crate::startup::Prepared;

/// How long a node may take to stop.
pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(10);

/// What happens to a node or to its process.
pub(crate) enum Event {
    /// Something in the node.
    Node(NodeEvent),
    /// A signal to stop, by its name.
    Signal(&'static str),
    /// Every shard has ended.
    Ended,
}

/// A node that was started.
pub(crate) struct Node {
    pub(crate) config: Arc<NodeConfig>,
    events: Receiver<Event>,
    sidecar: Option<Sidecar>,
    handle: Option<NodeHandle>,
    ended: bool,
}

impl Node {
    /// Starts the shards and waits until clients are served. SIGTERM and SIGINT become events from here on.
    pub(crate) fn start(prepared: Prepared) -> Result<Node, Failure> {
        let Prepared { config, http } = prepared;
        let config = Arc::new(config);
        let (sender, events) = mpsc::channel();
        watch_signals(sender.clone())?;
        let (peers_sender, peers) = mpsc::channel();
        let main = server::node(Arc::clone(&config), on_event(sender.clone()));
        let shards_config =
            ShardsConfig { count: config.shards, cpus: config.cpus.clone(), name: "shard".to_owned() };
        let running = shard::start(shards_config, move |seed| {
            // The HTTP server reaches the shards as they reach each other.
            let _ = peers_sender.send(seed.peers.clone());
            main(seed)
        });
        let running = running.map_err(|error| {
            Failure::new(
                Exit::Environment,
                error.to_string(),
                "see docs/operations/running.md, \"What the machine needs\"",
            )
        })?;
        let join = move || {
            running.join();
            let _ = sender.send(Event::Ended);
        };
        thread::spawn("join", join).map_err(|error| no_thread(&error))?;
        let sidecar = match (http, peers.recv()) {
            (Some(listener), Ok(peers)) => {
                Some(Sidecar::start(listener, Shards::new(peers)).map_err(|e| no_thread(&e))?)
            }
            _ => None,
        };
        let mut node = Node { config, events, sidecar, handle: None, ended: false };
        node.wait_ready()?;
        Ok(node)
    }

    fn wait_ready(&mut self) -> Result<(), Failure> {
        loop {
            match self.next() {
                Event::Node(NodeEvent::Ready(handle)) => {
                    self.handle = Some(handle);
                    if let Some(sidecar) = &self.sidecar {
                        sidecar.node_serves();
                    }
                    return Ok(());
                }
                Event::Node(NodeEvent::StartFailed(error)) => {
                    let cure =
                        "see docs/operations/running.md; nothing was changed that a later start would miss";
                    return Err(Failure::new(Exit::Environment, error.to_string(), cure));
                }
                Event::Node(NodeEvent::StorageFailed { shard, reason }) => {
                    return Err(storage_failed(shard.0, &reason));
                }
                Event::Node(NodeEvent::Stopped) => {}
                Event::Signal(name) => {
                    return Err(Failure::new(
                        Exit::Refused,
                        format!("{name} came while the node started"),
                        "start it again",
                    ));
                }
                Event::Ended => {
                    let what = "the shards ended before they served";
                    return Err(Failure::new(Exit::Environment, what, "the log above says why"));
                }
            }
        }
    }

    /// Where metrics and health are.
    pub(crate) fn http_address(&self) -> Option<std::net::SocketAddr> {
        self.sidecar.as_ref().map(Sidecar::address)
    }

    /// The next event; blocks.
    pub(crate) fn next(&mut self) -> Event {
        // The joining thread says `Ended` before the last sender goes.
        let event = self.events.recv().unwrap_or(Event::Ended);
        self.ended |= matches!(event, Event::Ended);
        event
    }

    /// Serves until a signal or a failure, and stops.
    pub(crate) fn serve(mut self) -> Result<(), Failure> {
        loop {
            match self.next() {
                Event::Signal(name) => {
                    tracing::info!(signal = name, "stopping");
                    return self.stop();
                }
                Event::Node(NodeEvent::StorageFailed { shard, reason }) => {
                    tracing::error!(shard = shard.0, reason, "storage failed; stopping");
                    // What the failure left to stop may fail as well; the first reason is the one to report.
                    let _ = self.stop();
                    return Err(storage_failed(shard.0, &reason));
                }
                Event::Ended => {
                    return Err(Failure::new(
                        Exit::Storage,
                        "the shards ended by themselves",
                        "the log above says why",
                    ));
                }
                Event::Node(_) => {}
            }
        }
    }

    /// Stops: connections are closed, what was acknowledged is on disk.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        if let Some(handle) = self.handle.take() {
            handle.stop();
        }
        let mut failed = None;
        while !self.ended {
            match self.events.recv_timeout(STOP_WITHIN) {
                Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => self.ended = true,
                Ok(Event::Node(NodeEvent::StorageFailed { shard, reason })) => {
                    failed = Some(storage_failed(shard.0, &reason));
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let what = format!("the node did not stop within {} s", STOP_WITHIN.as_secs());
                    let cure = "nothing acknowledged is lost: the next start recovers it from the journal";
                    return Err(Failure::new(Exit::Refused, what, cure));
                }
            }
        }
        if let Some(sidecar) = self.sidecar.take() {
            sidecar.stop();
        }
        failed.map_or(Ok(()), Err)
    }
}

fn on_event(sender: Sender<Event>) -> server::NodeEvents {
    Arc::new(move |event| {
        // Nobody listens when the process is ending.
        let _ = sender.send(Event::Node(event));
    })
}

fn watch_signals(sender: Sender<Event>) -> Result<(), Failure> {
    let watch = move || match signal::wait_for_stop() {
        Ok(name) => drop(sender.send(Event::Signal(name))),
        Err(error) => {
            tracing::warn!(%error, "signals are not handled: SIGTERM and SIGINT end the process at once")
        }
    };
    thread::spawn("signals", watch).map(drop).map_err(|error| no_thread(&error))
}

fn no_thread(error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Environment,
        format!("a thread cannot be started: {error}"),
        "raise the limit of processes (ulimit -u)",
    )
}

fn storage_failed(shard: u16, reason: &str) -> Failure {
    let cure = "look at the device and the kernel's log (dmesg); what was acknowledged is on disk, and a start recovers it";
    Failure::new(Exit::Storage, format!("the storage of shard {shard} failed: {reason}"), cure)
}
