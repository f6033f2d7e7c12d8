//! Bytes of a socket to request frames.
//!
//! Owns: the buffer of a connection, the check of announced sizes, the memory that a frame in arrival is charged for.
//! Invariants:
//! I1 memory is charged for bytes that have arrived or are about to be read, never for an announced size.
//! I2 a frame that is handed out is charged in full (clamped to the shard's budget), until its permits are dropped.

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
/// A longer frame is read, and charged, in steps of this.
const STEP_LEN: usize = 256 * 1024;
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
}

impl Arrival {
    /// Whether the frame in arrival takes longer than is granted. A frame that waits for memory stands still, too: frames
    /// that wait for each other's memory must not do so for ever.
    pub(super) fn is_late(&self) -> bool {
        let grace = Duration::from_secs(u64::try_from(self.arrived.get() / 1024).unwrap_or(u64::MAX));
        let later = |at: &Cell<Option<Instant>>, max| at.get().is_some_and(|at| at.elapsed() > max);
        later(&self.moved, STALL_MAX) || later(&self.started, FRAME_MAX.saturating_add(grace))
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

impl FrameReader {
    pub(super) fn new(half: ReadHalf, memory: Permits, frame_len_max: usize) -> FrameReader {
        FrameReader { half, buffer: BytesMut::new(), memory, frame_len_max }
    }

    /// The next frame. `touched` is called whenever bytes arrive.
    pub(super) async fn next(&mut self, arrival: &Arrival, touched: impl Fn()) -> Result<RawFrame, ReadEnd> {
        let mut permits = Vec::new();
        let mut charged = 0;
        loop {
            arrival.progress(self.buffer.len());
            let room = match self.announced()? {
                Some(len) if self.buffer.len() >= 4 + len => {
                    arrival.progress(0);
                    if len > charged {
                        permits.push(self.charge(len - charged).await);
                    }
                    self.buffer.advance(4);
                    return Ok(RawFrame { bytes: self.buffer.split_to(len).freeze(), permits });
                }
                Some(len) => {
                    let room = (4 + len - self.buffer.len()).min(STEP_LEN);
                    // What a small frame needs is charged when it is whole.
                    if room > READ_LEN && self.buffer.len() + room > charged {
                        permits.push(self.charge(room).await);
                        charged += room;
                    }
                    room
                }
                None => 4,
            };
            if self.buffer.capacity() - self.buffer.len() < room.max(READ_LEN_MIN) {
                self.buffer.reserve(room.max(READ_LEN));
            }
            if self.half.read(&mut self.buffer).await? == 0 {
                return Err(ReadEnd::Closed);
            }
            touched();
        }
    }

    async fn charge(&self, len: usize) -> Permit {
        self.memory.acquire(u64::try_from(len).unwrap_or(u64::MAX)).await
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
