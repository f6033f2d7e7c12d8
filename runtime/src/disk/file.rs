//! A file of the current world: aligned writes, reads of any range, explicit syncs.

use std::io;
use std::path::Path;
use std::rc::Rc;

use bytes::Bytes;

use super::{AlignedBuf, BLOCK_BYTES};
use crate::real::disk::RealFile;
use crate::sim::disk::SimFile;
use crate::world::{self, World};

/// How a file is opened. All modes read; all but `Read` write as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// Read only; the file must exist.
    Read,
    /// Read and write; the file must exist.
    Write,
    /// Read and write; the file is made when it does not exist.
    Create,
    /// Read and write; the file must not exist.
    CreateNew,
}

/// An open file; clones share it.
#[derive(Clone)]
pub struct File(Inner);

#[derive(Clone)]
enum Inner {
    Real(Rc<RealFile>),
    Sim(Rc<SimFile>),
}

impl File {
    /// Opens `path`. Its directory entry, if new, is durable only after [`super::sync_dir`] of the parent.
    ///
    /// # Errors
    /// What the file system says, `EINVAL` where it has no direct I/O.
    pub async fn open(path: &Path, mode: OpenMode) -> io::Result<File> {
        Self::open_with(path, mode, false).await
    }

    /// Opens `path` so that each write is durable when it returns (`O_DSYNC`), without [`File::sync_data`].
    ///
    /// # Errors
    /// As [`File::open`].
    pub async fn open_dsync(path: &Path, mode: OpenMode) -> io::Result<File> {
        Self::open_with(path, mode, true).await
    }

    async fn open_with(path: &Path, mode: OpenMode, dsync: bool) -> io::Result<File> {
        match world::current() {
            World::Real(shard) => {
                Ok(File(Inner::Real(Rc::new(RealFile::open(&shard, path, mode, dsync).await?))))
            }
            World::Sim(shard) => {
                Ok(File(Inner::Sim(Rc::new(SimFile::open(&shard, path, mode, dsync).await?))))
            }
        }
    }

    /// Writes all of `buf` at `position`, in one request.
    ///
    /// # Errors
    /// What the device says; how much was written is unknown then. `StorageFull` when there is no space.
    ///
    /// # Panics
    /// When `position` is not a multiple of [`BLOCK_BYTES`].
    pub async fn write_at(&self, position: u64, buf: AlignedBuf) -> io::Result<()> {
        assert!(position.is_multiple_of(BLOCK_BYTES as u64), "writes are aligned, not at {position}");
        match &self.0 {
            Inner::Real(file) => file.write_at(position, buf).await,
            Inner::Sim(file) => file.write_at(position, buf).await,
        }
    }

    /// Reads `len` bytes at `position`, both of any value; fewer only at the end of the file.
    ///
    /// # Errors
    /// What the device says.
    pub async fn read_at(&self, position: u64, len: usize) -> io::Result<Bytes> {
        match &self.0 {
            Inner::Real(file) => file.read_at(position, len).await,
            Inner::Sim(file) => file.read_at(position, len).await,
        }
    }

    /// Makes every write that has returned durable, with the length (`fdatasync`).
    ///
    /// # Errors
    /// An error is final: the kernel may have dropped the data, and a second call that succeeds proves nothing.
    pub async fn sync_data(&self) -> io::Result<()> {
        match &self.0 {
            Inner::Real(file) => file.sync_data().await,
            Inner::Sim(file) => file.sync_data().await,
        }
    }

    /// Fills the first `len` bytes (a multiple of [`BLOCK_BYTES`]) with written zeros and syncs, so that later writes there
    /// change no block mapping and their flush has no journal of the file system to wait for.
    ///
    /// # Errors
    /// `StorageFull` when there is no space.
    pub async fn allocate_zeroed(&self, len: u64) -> io::Result<()> {
        assert!(
            len.is_multiple_of(BLOCK_BYTES as u64),
            "files are allocated in whole blocks, not {len} bytes"
        );
        match &self.0 {
            Inner::Real(file) => file.allocate_zeroed(len).await,
            Inner::Sim(file) => file.allocate_zeroed(len).await,
        }
    }

    /// Cuts or extends the file to `len` bytes; durable after [`File::sync_data`].
    ///
    /// # Errors
    /// What the file system says.
    pub async fn set_len(&self, len: u64) -> io::Result<()> {
        match &self.0 {
            Inner::Real(file) => file.set_len(len).await,
            Inner::Sim(file) => file.set_len(len).await,
        }
    }

    /// The length in bytes.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn len(&self) -> io::Result<u64> {
        match &self.0 {
            Inner::Real(file) => file.len(),
            Inner::Sim(file) => Ok(file.len()),
        }
    }

    /// Whether the length is zero.
    ///
    /// # Errors
    /// As [`File::len`].
    pub async fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len().await? == 0)
    }

    /// Closes the file if this is its last handle; else only drops this one. Nothing is synced.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn close(self) -> io::Result<()> {
        match self.0 {
            Inner::Real(file) => match Rc::try_unwrap(file) {
                Ok(file) => file.close().await,
                Err(_) => Ok(()),
            },
            Inner::Sim(_) => Ok(()),
        }
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        match &self.0 {
            Inner::Real(file) => file.path(),
            Inner::Sim(file) => file.path(),
        }
    }
}
