//! An open file of a simulated process.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;

use super::blocks::{BLOCK, blocks_of};
use super::faults::{Fault, device_error};
use super::inode::Inode;
use super::names::{Entry, NameOp};
use super::ops::{latency, trim};
use crate::disk::{AlignedBuf, OpenMode};
use crate::sim::SimShard;
use crate::sim::trace::{Step, digest};

/// The farthest that a misdirected write lands from its place, in blocks.
const MISDIRECTION_BLOCKS_MAX: u64 = 8;

/// An open file.
pub(crate) struct SimFile {
    shard: Rc<SimShard>,
    inode: Rc<RefCell<Inode>>,
    path: PathBuf,
    writable: bool,
    dsync: bool,
}

/// A request that the device has. It ends with the request, or runs on when the task that made it goes away.
struct InFlight {
    inode: Rc<RefCell<Inode>>,
    id: u64,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.inode.borrow_mut().finish(self.id);
    }
}

impl SimFile {
    pub(crate) async fn open(
        shard: &Rc<SimShard>,
        path: &Path,
        mode: OpenMode,
        dsync: bool,
    ) -> io::Result<Self> {
        latency(shard).await;
        let path = trim(path);
        let existing = {
            let names = shard.disk.names.borrow();
            names.check_parent(&path)?;
            match names.entry(&path) {
                Some(Entry::Dir) => return Err(io::ErrorKind::IsADirectory.into()),
                Some(Entry::File(inode)) => Some(Rc::clone(inode)),
                None => None,
            }
        };
        let inode = match (existing, mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(inode), _) => inode,
            (None, OpenMode::Read | OpenMode::Write) => return Err(io::ErrorKind::NotFound.into()),
            (None, OpenMode::Create | OpenMode::CreateNew) => {
                let inode = Rc::new(RefCell::new(shard.disk.new_inode()));
                shard.disk.add_name(NameOp::Add(path.clone(), Entry::File(Rc::clone(&inode))));
                inode
            }
        };
        shard.core.trace.note(Step::DiskOpen, &[inode.borrow().number()]);
        Ok(Self { shard: Rc::clone(shard), inode, path, writable: mode != OpenMode::Read, dsync })
    }

    pub(crate) async fn write_at(&self, position: u64, mut buf: AlignedBuf) -> io::Result<()> {
        self.check_writable()?;
        if self.strikes(Fault::WriteError) {
            latency(&self.shard).await;
            return Err(device_error());
        }
        self.reserve(position + buf.len() as u64).inspect_err(|_| {
            // A device that fills up midway keeps what fitted.
            let fitting = self.fitting(position, buf.len());
            if fitting > 0 {
                let mut inode = self.inode.borrow_mut();
                let id = inode.begin_write(position / BLOCK, blocks_of(&buf[..fitting]));
                inode.finish(id);
            }
        })?;
        if self.strikes(Fault::CorruptedWrite) {
            let victim = self.shard.core.disk_random.index(buf.len());
            buf[victim] ^= 1 << self.shard.core.disk_random.below(8);
        }
        let target = if self.strikes(Fault::MisdirectedWrite) { self.beside(position) } else { position };
        let id = self.inode.borrow_mut().begin_write(target / BLOCK, blocks_of(&buf));
        self.note(Step::DiskWrite, &[position, digest(&buf)]);
        let in_flight = InFlight { inode: Rc::clone(&self.inode), id };
        latency(&self.shard).await;
        drop(in_flight);
        if self.dsync {
            let failed = self.strikes(Fault::SyncError);
            self.inode.borrow_mut().settle_dsync(id, !failed);
            return if failed { Err(device_error()) } else { Ok(()) };
        }
        Ok(())
    }

    pub(crate) async fn read_at(&self, position: u64, len: usize) -> io::Result<Bytes> {
        latency(&self.shard).await;
        if self.strikes(Fault::ReadError) || self.shard.disk.faults.borrow().is_bad(&self.path, position, len)
        {
            return Err(device_error());
        }
        let bytes = self.inode.borrow().read(position, len);
        self.note(Step::DiskRead, &[position, digest(&bytes)]);
        Ok(bytes)
    }

    pub(crate) async fn sync_data(&self) -> io::Result<()> {
        let covered = self.inode.borrow().covered();
        latency(&self.shard).await;
        let failed = self.strikes(Fault::SyncError);
        self.inode.borrow_mut().settle(&covered, !failed);
        self.note(Step::DiskSync, &[u64::from(failed)]);
        if failed { Err(device_error()) } else { Ok(()) }
    }

    pub(crate) async fn allocate_zeroed(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        self.reserve(len)?;
        let zeros = vec![None; (len / BLOCK) as usize];
        let id = self.inode.borrow_mut().begin_write(0, zeros);
        let in_flight = InFlight { inode: Rc::clone(&self.inode), id };
        latency(&self.shard).await;
        drop(in_flight);
        self.sync_data().await
    }

    pub(crate) async fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        self.reserve(len)?;
        let id = self.inode.borrow_mut().begin_set_len(len);
        self.note(Step::DiskWrite, &[len]);
        let in_flight = InFlight { inode: Rc::clone(&self.inode), id };
        latency(&self.shard).await;
        drop(in_flight);
        Ok(())
    }

    pub(crate) fn len(&self) -> u64 {
        self.inode.borrow().len()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EBADF)) }
    }

    fn strikes(&self, fault: Fault) -> bool {
        self.shard.disk.faults.borrow_mut().strikes(&self.shard.core, fault, &self.path)
    }

    fn note(&self, step: Step, numbers: &[u64]) {
        self.shard.core.trace.note(step, &[self.inode.borrow().number()]);
        self.shard.core.trace.note(step, numbers);
    }

    /// ENOSPC unless the file may grow to `len`.
    fn reserve(&self, len: u64) -> io::Result<()> {
        let more = len.next_multiple_of(BLOCK).saturating_sub(self.inode.borrow().allocated_bytes());
        if more == 0 || more <= self.free() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    /// How much of a write that does not fit fits.
    fn fitting(&self, position: u64, len: usize) -> usize {
        let allocated = self.inode.borrow().allocated_bytes();
        let end = (allocated + self.free()) / BLOCK * BLOCK;
        end.saturating_sub(position).min(len as u64) as usize
    }

    fn free(&self) -> u64 {
        let capacity = self.shard.disk.faults.borrow().capacity_bytes;
        capacity.saturating_sub(self.shard.disk.used_bytes())
    }

    fn beside(&self, position: u64) -> u64 {
        let distance = (1 + self.shard.core.disk_random.below(MISDIRECTION_BLOCKS_MAX)) * BLOCK;
        if self.shard.core.disk_random.chance(500) && position >= distance {
            position - distance
        } else {
            position + distance
        }
    }
}
