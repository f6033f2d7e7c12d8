//! What goes wrong on a simulated disk when a test says so, and the test's handle for it.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use super::NodeDisk;
use crate::sim::core::SimCore;
use crate::sim::trace::Step;
use crate::time::Instant;

/// A fault that strikes once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A sync (or a write to an `O_DSYNC` file) answers EIO; the data stays visible, and is lost at the next power cut
    /// although later syncs succeed.
    SyncError,
    /// A write answers EIO and changes nothing.
    WriteError,
    /// A read answers EIO.
    ReadError,
    /// A write lands one to eight blocks beside its place, and says nothing.
    MisdirectedWrite,
    /// A write has one bit flipped, and says nothing.
    CorruptedWrite,
}

pub(crate) struct Faults {
    pub(crate) capacity_bytes: u64,
    pub(crate) stalled_until: Instant,
    once: Vec<(Fault, PathBuf)>,
    bad_ranges: Vec<(PathBuf, u64, u64)>,
}

impl Faults {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self {
            capacity_bytes,
            stalled_until: Instant::from_nanos(0),
            once: Vec::new(),
            bad_ranges: Vec::new(),
        }
    }

    /// Whether `fault` strikes an operation on `path` now.
    pub(crate) fn strikes(&mut self, core: &SimCore, fault: Fault, path: &Path) -> bool {
        let found = self.once.iter().position(|(kind, under)| *kind == fault && path.starts_with(under));
        if let Some(index) = found {
            self.once.remove(index);
            core.trace.note(Step::Fault, &[fault as u64]);
            tracing::debug!(?fault, path = %path.display(), "simulated fault");
        }
        found.is_some()
    }

    pub(crate) fn is_bad(&self, path: &Path, position: u64, len: usize) -> bool {
        let end = position.saturating_add(len as u64);
        self.bad_ranges.iter().any(|(bad, from, to)| bad == path && *from < end && position < *to)
    }
}

/// EIO.
pub(crate) fn device_error() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

/// Breaks and inspects the disk of one node.
pub struct SimDisk {
    core: Rc<SimCore>,
    disk: Rc<NodeDisk>,
}

impl SimDisk {
    pub(crate) fn new(core: Rc<SimCore>, disk: Rc<NodeDisk>) -> Self {
        Self { core, disk }
    }

    /// Lets `fault` strike the next fitting operation on a path under `under` (`"/"` for any).
    pub fn inject(&self, fault: Fault, under: impl AsRef<Path>) {
        self.disk.faults.borrow_mut().once.push((fault, under.as_ref().to_owned()));
    }

    /// [`Fault::SyncError`] for the next sync of any file or directory.
    pub fn fail_next_sync(&self) {
        self.inject(Fault::SyncError, "/");
    }

    /// Takes back the faults that have not struck yet.
    pub fn disarm(&self) {
        self.disk.faults.borrow_mut().once.clear();
    }

    /// Sets how many bytes the disk holds; files that are there already stay. More than is free: writes that need space
    /// answer ENOSPC until it returns.
    pub fn set_capacity(&self, bytes: u64) {
        self.disk.faults.borrow_mut().capacity_bytes = bytes;
    }

    /// Bytes that files take now.
    pub fn used_bytes(&self) -> u64 {
        self.disk.used_bytes()
    }

    /// Reads of `path` that touch `len` bytes at `position` answer EIO from now on.
    pub fn fail_reads(&self, path: impl AsRef<Path>, position: u64, len: u64) {
        let range = (path.as_ref().to_owned(), position, position.saturating_add(len));
        self.disk.faults.borrow_mut().bad_ranges.push(range);
    }

    /// Reads succeed again everywhere.
    pub fn heal_reads(&self) {
        self.disk.faults.borrow_mut().bad_ranges.clear();
    }

    /// Every request takes until `duration` from now, at least.
    pub fn stall(&self, duration: Duration) {
        self.disk.faults.borrow_mut().stalled_until = self.core.now() + duration;
    }

    /// Flips one bit of the byte at `position` of `path`; false when there is no such byte.
    pub fn corrupt(&self, path: impl AsRef<Path>, position: u64) -> bool {
        let names = self.disk.names.borrow();
        let Some(inode) = names.file(path.as_ref()) else { return false };
        let mut inode = inode.borrow_mut();
        let inside = position < inode.len();
        if inside {
            inode.flip_bit(position);
            self.core.trace.note(Step::Fault, &[inode.number(), position]);
        }
        inside
    }

    /// The bytes of `path` as programs see them.
    pub fn contents(&self, path: impl AsRef<Path>) -> Option<Bytes> {
        self.disk.contents(path.as_ref())
    }

    /// The paths of all files, sorted.
    pub fn files(&self) -> Vec<PathBuf> {
        self.disk.names.borrow().files().map(|(path, _)| path.to_owned()).collect()
    }
}
