//! A machine's disk: what programs see, what a power cut would leave, and what lies between the two.
//!
//! Invariants:
//! 1. A write is seen at once and durable only after a sync of its file that began when the write had returned.
//! 2. A name is durable only after a sync of its directory; a file's length after a sync of the file.
//! 3. At a power cut every write that was not synced is kept, lost, torn at 512 bytes or 4 KiB, or garbled, each by itself;
//!    of the names that were not synced, a prefix is kept, as a journaling file system would.
//! 4. A sync that fails leaves its writes visible, counts them as clean, and loses them at the next power cut, whatever later
//!    syncs say (fsyncgate).

mod blocks;
mod faults;
mod file;
mod inode;
mod names;
mod ops;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use self::faults::Faults;
use self::inode::Inode;
use self::names::{NameOp, Names};
use super::core::SimCore;
use super::trace::Step;

pub use self::faults::{Fault, SimDisk};
pub(crate) use self::file::SimFile;
pub(crate) use self::ops::{
    SimDirLock, create_dir_all, exists, free_space, lock_dir, read_dir, remove_dir_all, remove_file, rename,
    sync_dir,
};

/// All state of one disk.
pub(crate) struct NodeDisk {
    names: RefCell<Names>,
    faults: RefCell<Faults>,
    locks: RefCell<BTreeMap<PathBuf, u64>>,
    locks_made: Cell<u64>,
    inodes_made: Cell<u64>,
}

impl NodeDisk {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        Self {
            names: RefCell::default(),
            faults: RefCell::new(Faults::new(capacity_bytes)),
            locks: RefCell::default(),
            locks_made: Cell::new(0),
            inodes_made: Cell::new(0),
        }
    }

    /// What dies with a process: its locks. What it wrote stays.
    pub(crate) fn process_died(&self) {
        self.locks.borrow_mut().clear();
    }

    /// Invariant 3.
    pub(crate) fn lose_power(&self, core: &SimCore) {
        let mut names = self.names.borrow_mut();
        names.lose_power(&core.disk_random);
        for (path, inode) in names.files() {
            let fates = inode.borrow_mut().lose_power(&core.disk_random, &core.config.unsynced_weights);
            if fates.any() {
                tracing::debug!(path = %path.display(), ?fates, "simulated power cut");
            }
            core.trace.note(Step::PowerCut, &fates.numbers());
        }
    }

    /// Bytes that files take.
    fn used_bytes(&self) -> u64 {
        self.names.borrow().files().map(|(_, inode)| inode.borrow().allocated_bytes()).sum()
    }

    fn new_inode(&self) -> Inode {
        let number = self.inodes_made.get();
        self.inodes_made.set(number + 1);
        Inode::new(number)
    }

    fn add_name(&self, op: NameOp) {
        self.names.borrow_mut().apply(op);
    }

    fn contents(&self, path: &Path) -> Option<Bytes> {
        let names = self.names.borrow();
        let inode = names.file(path)?.borrow();
        Some(inode.read(0, usize::try_from(inode.len()).ok()?))
    }
}
