//! One TCP connection between two simulated processes: two pipes, and what ended them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use crate::sim::core::{SimCore, SimSleep};
use crate::sim::node::Host;
use crate::sim::trace::{Step, digest};
use crate::sync::{Event, Listener};
use crate::time::Instant;

/// Which end: the one that connected, or the one that accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// One end's host and the address that it shows.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) host: Host,
    pub(crate) addr: SocketAddr,
}

/// A connection.
pub(crate) struct Connection {
    ends: [End; 2],
    /// Bytes on their way to the end of the same index.
    inbound: [RefCell<Pipe>; 2],
    open: [Cell<bool>; 2],
    /// From then on every operation answers with a reset.
    reset_at: Cell<Option<Instant>>,
    /// The peer lost power and says nothing: the first write starts the wait for a reset.
    silent: Cell<bool>,
    changed: Event,
}

#[derive(Default)]
struct Pipe {
    segments: VecDeque<Segment>,
    bytes: usize,
    last_arrival: Option<Instant>,
    finished: bool,
}

struct Segment {
    arrives: Instant,
    /// Empty: the sender has finished.
    bytes: Bytes,
}

/// What an operation has to wait for.
pub(crate) enum Wait {
    For(Instant),
    ForChange,
}

impl Connection {
    pub(crate) fn new(client: End, server: End) -> Rc<Self> {
        Rc::new(Self {
            ends: [client, server],
            inbound: Default::default(),
            open: [Cell::new(true), Cell::new(true)],
            reset_at: Cell::new(None),
            silent: Cell::new(false),
            changed: Event::new(),
        })
    }

    pub(crate) fn end(&self, side: Side) -> End {
        self.ends[side as usize]
    }

    pub(crate) fn touches(&self, host: Host) -> bool {
        self.ends.iter().any(|end| end.host == host)
    }

    /// Notified when anything but the clock changes.
    pub(crate) fn listen(&self) -> Listener {
        self.changed.listen()
    }

    /// Resets both ends at `at`, unless they are reset earlier.
    pub(crate) fn reset_at(&self, core: &SimCore, at: Instant) {
        if self.reset_at.get().is_none_or(|earlier| at < earlier) {
            self.reset_at.set(Some(at));
            core.trace.note(Step::NetReset, &[at.as_nanos()]);
        }
        self.changed.notify_all();
    }

    /// The process at `host` is gone.
    pub(crate) fn end_lost(&self, core: &SimCore, host: Host, silent: bool) {
        for end in [Side::Client, Side::Server] {
            if self.end(end).host == host {
                self.open[end as usize].set(false);
            }
        }
        if silent {
            self.silent.set(true);
        } else {
            self.reset_at(core, core.now() + segment_time(core));
        }
    }

    /// The silent peer's host runs again and knows nothing of this connection: what is unacknowledged is answered by a reset.
    pub(crate) fn peer_is_back(&self, core: &SimCore) {
        if self.silent.get() && self.reset_at.get().is_some() {
            self.reset_at(core, core.now() + segment_time(core));
        }
    }

    fn check_reset(&self, core: &SimCore) -> io::Result<()> {
        match self.reset_at.get() {
            Some(at) if at <= core.now() => Err(io::ErrorKind::ConnectionReset.into()),
            _ => Ok(()),
        }
    }

    /// Appends what has arrived at `side` to the spare capacity of `buf`; or says what to wait for.
    pub(crate) fn try_read(
        &self,
        core: &SimCore,
        side: Side,
        buf: &mut BytesMut,
    ) -> Result<io::Result<usize>, Wait> {
        if let Err(error) = self.check_reset(core) {
            return Ok(Err(error));
        }
        let (from, to) = (self.end(side.other()).host, self.end(side).host);
        let blocked = core.network.is_blocked(from, to);
        let mut pipe = self.inbound[side as usize].borrow_mut();
        let arrival = pipe.segments.front().map(|front| front.arrives);
        match arrival {
            Some(arrives) if arrives <= core.now() && !blocked => {
                let count = pipe.take(core, buf);
                core.trace.note(Step::NetReceive, &[count as u64]);
                drop(pipe);
                self.changed.notify_all();
                Ok(Ok(count))
            }
            Some(arrives) if !blocked => Err(self.wait_for(Some(arrives))),
            _ => Err(self.wait_for(None)),
        }
    }

    /// Sends as much of `chunk` from `side` as the window takes, and returns how much; or says what to wait for.
    pub(crate) fn try_write(
        &self,
        core: &SimCore,
        side: Side,
        chunk: &mut Bytes,
    ) -> Result<io::Result<()>, Wait> {
        if let Err(error) = self.check_reset(core) {
            return Ok(Err(error));
        }
        let other = side.other();
        if !self.silent.get() && !self.open[other as usize].get() {
            return Ok(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.silent.get() {
            self.provoke_reset(core, other);
        }
        let mut pipe = self.inbound[other as usize].borrow_mut();
        if pipe.finished {
            return Ok(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = core.config.net_window_bytes.saturating_sub(pipe.bytes);
        if room == 0 {
            drop(pipe);
            return Err(self.wait_for(None));
        }
        let bytes = chunk.split_to(room.min(chunk.len()));
        core.trace.note(Step::NetSend, &[digest(&bytes)]);
        pipe.push(core, bytes);
        drop(pipe);
        self.changed.notify_all();
        Ok(Ok(()))
    }

    fn provoke_reset(&self, core: &SimCore, dead: Side) {
        let dark = core.network.is_dark(self.end(dead).host);
        let wait = if dark { core.config.net_give_up } else { segment_time(core) };
        self.reset_at(core, core.now() + wait);
    }

    /// Nothing more comes from `side`.
    pub(crate) fn finish(&self, core: &SimCore, side: Side) {
        let mut pipe = self.inbound[side.other() as usize].borrow_mut();
        if !pipe.finished {
            pipe.push(core, Bytes::new());
            pipe.finished = true;
        }
        drop(pipe);
        self.changed.notify_all();
    }

    /// Both halves of `side` are gone: a farewell, or a reset when it leaves bytes unread.
    pub(crate) fn close(&self, core: &SimCore, side: Side) {
        if !self.open[side as usize].replace(false) {
            return;
        }
        if self.inbound[side as usize].borrow().bytes > 0 {
            self.reset_at(core, core.now() + segment_time(core));
        } else {
            self.finish(core, side);
        }
    }

    fn wait_for(&self, arrival: Option<Instant>) -> Wait {
        match (arrival, self.reset_at.get()) {
            (Some(arrival), Some(reset)) => Wait::For(arrival.min(reset)),
            (Some(at), None) | (None, Some(at)) => Wait::For(at),
            (None, None) => Wait::ForChange,
        }
    }
}

impl Pipe {
    fn push(&mut self, core: &SimCore, bytes: Bytes) {
        let arrives = core.now() + segment_time(core);
        let arrives = self.last_arrival.map_or(arrives, |last| arrives.max(last));
        self.last_arrival = Some(arrives);
        self.bytes += bytes.len();
        self.segments.push_back(Segment { arrives, bytes });
    }

    /// Moves arrived bytes into `buf`. The end of the stream stays at the front, so that every later read sees it.
    fn take(&mut self, core: &SimCore, buf: &mut BytesMut) -> usize {
        let mut room = buf.capacity() - buf.len();
        if core.net_random.chance(core.config.short_read_permille) {
            room = 1 + core.net_random.index(room);
        }
        let mut count = 0;
        while let Some(front) = self.segments.front_mut() {
            if front.arrives > core.now() || front.bytes.is_empty() || count == room {
                break;
            }
            let part = front.bytes.len().min(room - count);
            buf.extend_from_slice(&front.bytes[..part]);
            front.bytes.advance(part);
            count += part;
            self.bytes -= part;
            if front.bytes.is_empty() {
                self.segments.pop_front();
            }
        }
        count
    }
}

/// Waits until `wait` is over or `changed` tells of a change.
pub(crate) async fn pause(core: &Rc<SimCore>, wait: Wait, changed: Listener) {
    match wait {
        Wait::For(at) => {
            futures::future::select(SimSleep::until(core, at), changed).await;
        }
        Wait::ForChange => changed.await,
    }
}

/// The time that one segment takes.
pub(crate) fn segment_time(core: &SimCore) -> Duration {
    if core.net_random.chance(core.config.net_spike_permille) {
        core.net_random.up_to(core.config.net_spike_max)
    } else {
        core.net_random.between(&core.config.net_latency)
    }
}
