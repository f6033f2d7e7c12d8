//! One connection: frames in, responses out in the order of their requests.
//!
//! Owns: the task of a connection, its queue of requests in flight.
//! Does not own: which connections there may be (`connections`), what a request means (`api`).
//! Invariants:
//! I1 responses leave in the order in which their requests arrived.
//! I2 no more than `IN_FLIGHT_MAX` requests run at once; reading stops there, so that a peer that does not read its responses
//!    is not read either.
//! I3 the memory of a request stays charged until its response is written.

use super::dispatch::dispatch;
use super::frame_reader::{Arrival, FrameReader, ReadEnd};
use super::turns::Turns;
use crate::api::registry::Entry;
use crate::api::{Answer, Held, Reply};
use crate::shard::Shard;
use bytes::Bytes;
use futures::future::{self, Either, FutureExt};
use futures::stream::{FuturesOrdered, StreamExt};
use runtime::net::{TcpStream, WriteHalf};
use runtime::sync::Event;
use runtime::time::{self, Instant};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Requests of one connection that run at once.
const IN_FLIGHT_MAX: usize = 128;
/// Responses that are ready at once leave in one write, up to this many bytes.
const WRITE_LEN_MAX: usize = 1 << 20;

/// A longer write goes in pieces of this, so that its progress is seen.
const WRITE_PIECE_LEN: usize = 256 * 1024;
/// A piece may take this long, or the client is not reading.
const WRITE_STALL_MAX: Duration = Duration::from_secs(30);
const WRITE_STALL_STARVED_MAX: Duration = Duration::from_secs(4);

/// What a request may know of its connection.
#[derive(Debug)]
pub struct ConnectionInfo {
    /// Number of the connection on its shard.
    pub id: u64,
    /// The client's address.
    pub peer: SocketAddr,
    /// The address by which the client reached this node.
    pub local: SocketAddr,
    /// Position of the listener in the configuration.
    pub listener: usize,
    /// Fetches read one after the other, so that a client that does not read its answers holds no more than one.
    pub(crate) fetch_turns: Turns,
}

/// A connection as its own task and the sweep see it.
pub(super) struct Connection {
    pub(super) info: Rc<ConnectionInfo>,
    arrival: Arrival,
    last_active: Cell<Instant>,
    in_flight: Cell<usize>,
    /// When the write at hand began.
    writing: Cell<Option<Instant>>,
    /// Requests that the reader has started and the writer has not taken yet.
    started: RefCell<Vec<InFlight>>,
    /// A request was started, or no further one will be.
    reader_moved: Event,
    /// A response was written.
    writer_moved: Event,
    reading_ended: Cell<bool>,
    /// Asks the reader to stop after the frame at hand.
    stop: Event,
    stopping: Cell<bool>,
}

struct InFlight {
    answer: Answer,
    held: Held,
    entry: &'static Entry,
    since: Instant,
}

struct Finished {
    reply: Reply<Vec<Bytes>>,
    held: Held,
    entry: &'static Entry,
    since: Instant,
}

impl Future for InFlight {
    type Output = Finished;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Finished> {
        let this = &mut *self;
        this.answer.as_mut().poll(cx).map(|reply| Finished {
            reply,
            held: this.held.clone(),
            entry: this.entry,
            since: this.since,
        })
    }
}

impl Connection {
    pub(super) fn new(info: ConnectionInfo) -> Connection {
        Connection {
            info: Rc::new(info),
            arrival: Arrival::default(),
            last_active: Cell::new(time::now()),
            in_flight: Cell::new(0),
            writing: Cell::new(None),
            started: RefCell::default(),
            reader_moved: Event::new(),
            writer_moved: Event::new(),
            reading_ended: Cell::new(false),
            stop: Event::new(),
            stopping: Cell::new(false),
        }
    }

    /// How long nothing has moved, if the client is not waiting for us.
    pub(super) fn idle(&self) -> Option<Duration> {
        (self.in_flight.get() == 0).then(|| self.last_active.get().elapsed())
    }

    /// Whether the client sends a frame or reads its responses too slowly to be waited for. Where answers that nobody reads
    /// keep others from theirs, there is less patience.
    pub(super) fn is_stuck(&self, others_starve: bool) -> bool {
        let patience = if others_starve { WRITE_STALL_STARVED_MAX } else { WRITE_STALL_MAX };
        self.arrival.is_late() || self.writing.get().is_some_and(|since| since.elapsed() > patience)
    }

    /// Since when a frame of this connection has waited for memory.
    pub(super) fn waits_for_memory_since(&self) -> Option<Instant> {
        self.arrival.waits_since()
    }

    /// Ends the connection once what is in flight is answered.
    pub(super) fn begin_stop(&self) {
        self.stopping.set(true);
        self.stop.notify_all();
    }

    fn touch(&self) {
        self.last_active.set(time::now());
    }

    /// Serves the connection to its end.
    pub(super) async fn serve(&self, shard: &Rc<Shard>, stream: TcpStream) {
        let (read, write) = stream.into_split();
        let frame_len_max = usize::try_from(shard.config.socket_request_max_bytes).unwrap_or(0);
        let reader = FrameReader::new(read, shard.request_memory.clone(), frame_len_max);
        let mut writing = pin!(self.write_responses(shard, write));
        let reading = pin!(self.read_requests(shard, reader));
        // The writer ends when a response asks for it or a write fails. If the reader ends first, what is in flight is still
        // answered. The reader goes first, so that the writer sees a new request in the same turn.
        if let Either::Left(((), writing)) = future::select(reading, writing.as_mut()).await {
            self.reading_ended.set(true);
            self.reader_moved.notify_all();
            writing.await;
        }
    }

    async fn read_requests(&self, shard: &Rc<Shard>, mut reader: FrameReader) {
        loop {
            while self.in_flight.get() >= IN_FLIGHT_MAX {
                self.writer_moved.wait().await;
            }
            let stop = self.stop.listen();
            if self.stopping.get() {
                return;
            }
            let frame = match future::select(pin!(reader.next(&self.arrival, || self.touch())), stop).await {
                Either::Left((Ok(frame), _)) => frame,
                Either::Left((Err(end), _)) => {
                    if let ReadEnd::Size(_) = end {
                        shard.metrics.requests_malformed.add(1);
                        tracing::debug!(reason = %end, peer = %self.info.peer, "closing a connection");
                    }
                    return;
                }
                Either::Right(_) => return,
            };
            shard.metrics.bytes_in.add(frame.bytes.len());
            let held = Held::new(frame.permits);
            let Some((entry, answer)) = dispatch(shard, &self.info, &held, frame.bytes) else {
                shard.metrics.requests_malformed.add(1);
                return;
            };
            self.in_flight.set(self.in_flight.get() + 1);
            self.started.borrow_mut().push(InFlight { answer, held, entry, since: time::now() });
            self.reader_moved.notify_all();
        }
    }

    async fn write_responses(&self, shard: &Rc<Shard>, mut half: WriteHalf) {
        let mut running = FuturesOrdered::new();
        while let Some(first) = self.next_finished(&mut running).await {
            let mut close = false;
            let mut chunks = Vec::new();
            let mut len = 0;
            let mut done = Vec::new();
            let mut next = Some(first);
            while let Some(finished) = next {
                shard.metrics.request(finished.entry.key, finished.since.elapsed());
                done.push(finished.held);
                match finished.reply {
                    Reply::Response(response) => {
                        len += response.iter().map(Bytes::len).sum::<usize>();
                        chunks.extend(response);
                    }
                    Reply::Nothing => {}
                    Reply::Close => close = true,
                }
                next = if close || len >= WRITE_LEN_MAX {
                    None
                } else {
                    running.next().now_or_never().flatten()
                };
            }
            shard.metrics.bytes_out.add(len);
            if self.write(&mut half, chunks).await.is_err() {
                return;
            }
            self.in_flight.set(self.in_flight.get() - done.len());
            self.writer_moved.notify_all();
            if close {
                break;
            }
        }
        half.shutdown().await;
    }

    async fn write(&self, half: &mut WriteHalf, chunks: Vec<Bytes>) -> io::Result<()> {
        for piece in pieces(chunks) {
            self.writing.set(Some(time::now()));
            let written = half.write_all(piece).await;
            self.writing.set(None);
            written?;
            self.touch();
        }
        Ok(())
    }

    /// The next response in order; none when the reader has ended and everything is answered.
    async fn next_finished(&self, running: &mut FuturesOrdered<InFlight>) -> Option<Finished> {
        loop {
            let moved = self.reader_moved.listen();
            running.extend(self.started.borrow_mut().drain(..));
            if running.is_empty() {
                if self.reading_ended.get() {
                    return None;
                }
                moved.await;
            } else if let Either::Left((finished, _)) = future::select(running.next(), moved).await {
                return finished;
            }
        }
    }
}

/// The same bytes in writes of `WRITE_PIECE_LEN` at most.
fn pieces(chunks: Vec<Bytes>) -> Vec<Vec<Bytes>> {
    let mut pieces = Vec::new();
    let mut piece = Vec::with_capacity(chunks.len());
    let mut room = WRITE_PIECE_LEN;
    for mut chunk in chunks {
        while chunk.len() > room {
            piece.push(chunk.split_to(room));
            pieces.push(std::mem::take(&mut piece));
            room = WRITE_PIECE_LEN;
        }
        room -= chunk.len();
        piece.push(chunk);
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_the_bytes_in_order(lens in prop::collection::vec(0_usize..700_000, 0..8)) {
            let chunks: Vec<Bytes> = (0_u8..).zip(&lens).map(|(n, len)| Bytes::from(vec![n; *len])).collect();
            let cut = pieces(chunks.clone());
            prop_assert!(cut.iter().all(|piece| piece.iter().map(Bytes::len).sum::<usize>() <= WRITE_PIECE_LEN));
            prop_assert_eq!(cut.concat().concat(), chunks.concat());
        }
    }
}
