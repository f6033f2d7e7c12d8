//! Bytes of a socket to request frames.
//!
//! Owns: the buffer of a connection, the check of announced sizes, the memory that a frame in arrival is charged for.
//! Invariants:
//! I1 memory is taken and charged for bytes that arrive, never for an announced size: the buffer at most doubles.
//! I2 a frame that is handed out is charged in full, until its permits are dropped; one that is larger than the shard's whole
//!    budget is charged the budget, so that it passes alone.

use bytes::{Buf, Bytes, BytesMut};
use runtime::net::ReadHalf;
use runtime::sync::{Permit, Permits};
use runtime::time::{self, Instant};
use std::cell::Cell;
use std::time::Duration;

/// Room for a read when no frame is known to be longer; an idle connection holds this much.
const READ_LEN: usize = 8 * 1024;
/// With less room than this the buffer is made anew.
const READ_LEN_MIN: usize = 1024;
/// Bytes of a frame in arrival that need not be charged before it is whole.
const UNCHARGED_LEN_MAX: usize = 16 * 1024;
/// A frame may stand still for this long.
const STALL_MAX: Duration = Duration::from_secs(30);
/// And may take this long in all, with a second more for each KiB that has arrived.
const FRAME_MAX: Duration = Duration::from_secs(30);

/// A whole frame, without its length prefix.
pub(super) struct RawFrame {
    pub(super) bytes: Bytes,
    pub(super) permits: Vec<Permit>,
}

/// Why no further frame comes.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadEnd {
    #[error("the client closed the connection")]
    Closed,
    #[error("reading from the client: {0}")]
    Io(#[from] std::io::Error),
    #[error("a frame announces {0} bytes")]
    Size(i32),
}

/// What the sweep sees of a frame in arrival.
#[derive(Debug, Default)]
pub(super) struct Arrival {
    started: Cell<Option<Instant>>,
    moved: Cell<Option<Instant>>,
    arrived: Cell<usize>,
    waits_since: Cell<Option<Instant>>,
}

impl Arrival {
    /// Whether the client takes longer with the frame in arrival than is granted.
    pub(super) fn is_late(&self) -> bool {
        let grace = Duration::from_secs(u64::try_from(self.arrived.get() / 1024).unwrap_or(u64::MAX));
        let later = |at: &Cell<Option<Instant>>, max| at.get().is_some_and(|at| at.elapsed() > max);
        self.waits_since.get().is_none()
            && (later(&self.moved, STALL_MAX) || later(&self.started, FRAME_MAX.saturating_add(grace)))
    }

    /// Since when the frame has waited for memory, which others hold.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.waits_since.get()
    }

    fn progress(&self, arrived: usize) {
        if arrived == self.arrived.replace(arrived) {
            return;
        }
        let now = (arrived > 0).then(time::now);
        self.moved.set(now);
        if self.started.get().is_none() || now.is_none() {
            self.started.set(now);
        }
    }
}

/// Reads frames of one connection.
pub(super) struct FrameReader {
    half: ReadHalf,
    buffer: BytesMut,
    memory: Permits,
    frame_len_max: usize,
}

/// What a frame is charged for so far.
#[derive(Default)]
struct Charge {
    permits: Vec<Permit>,
    len: usize,
}

impl FrameReader {
    /// `memory` has a permit for each byte.
    pub(super) fn new(half: ReadHalf, memory: Permits, frame_len_max: usize) -> FrameReader {
        FrameReader { half, buffer: BytesMut::new(), memory, frame_len_max }
    }

    /// The next frame. `touched` is called whenever bytes arrive.
    pub(super) async fn next(&mut self, arrival: &Arrival, touched: impl Fn()) -> Result<RawFrame, ReadEnd> {
        let mut charge = Charge::default();
        loop {
            let arrived = self.buffer.len();
            arrival.progress(arrived);
            let room = match self.announced()? {
                Some(len) if arrived >= 4 + len => {
                    arrival.progress(0);
                    self.charge(&mut charge, len, arrival).await;
                    self.buffer.advance(4);
                    return Ok(RawFrame {
                        bytes: self.buffer.split_to(len).freeze(),
                        permits: charge.permits,
                    });
                }
                Some(len) => {
                    if arrived > charge.len + UNCHARGED_LEN_MAX {
                        self.charge(&mut charge, arrived, arrival).await;
                    }
                    (4 + len - arrived).min(arrived.max(READ_LEN))
                }
                None => READ_LEN,
            };
            if self.buffer.capacity() - arrived < room.min(READ_LEN_MIN) {
                self.grow((arrived + room).max(READ_LEN));
            }
            if self.half.read(&mut self.buffer).await? == 0 {
                return Err(ReadEnd::Closed);
            }
            touched();
        }
    }

    /// A buffer of exactly so many bytes: one that doubles would hold up to twice what is in it, for as long as a batch of it is
    /// in the cache.
    fn grow(&mut self, capacity: usize) {
        let mut larger = BytesMut::with_capacity(capacity);
        larger.extend_from_slice(&self.buffer);
        self.buffer = larger;
    }

    /// Charges the frame for `len` bytes in all.
    async fn charge(&self, charge: &mut Charge, len: usize, arrival: &Arrival) {
        let len = len.min(usize::try_from(self.memory.capacity()).unwrap_or(usize::MAX));
        if len <= charge.len {
            return;
        }
        let more = u64::try_from(len - charge.len).unwrap_or(u64::MAX);
        let permit = match self.memory.try_acquire(more) {
            Some(permit) => permit,
            None => {
                arrival.waits_since.set(Some(time::now()));
                let permit = self.memory.acquire(more).await;
                arrival.waits_since.set(None);
                permit
            }
        };
        charge.permits.push(permit);
        charge.len = len;
    }

    /// The length of the frame at the front of the buffer, once its prefix is there.
    fn announced(&self) -> Result<Option<usize>, ReadEnd> {
        let Some(prefix) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let announced = i32::from_be_bytes(*prefix);
        match usize::try_from(announced) {
            Ok(len) if len <= self.frame_len_max => Ok(Some(len)),
            _ => Err(ReadEnd::Size(announced)),
        }
    }
}
