//! Direct files by glommio, names by blocking calls off the shard's thread.
//!
//! Works around glommio 0.9: an empty first file makes it believe that a device can be polled; it panics when a file vanishes
//! while it is opened; its unaligned reads return stale bytes at the end of a file.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use glommio::GlommioError;
use glommio::io::{DmaFile, OpenOptions};
use rustix::fs::{FlockOperation, flock, fstat, statvfs};
use rustix::io::Errno;

use super::{RealShard, io_buffer};
use crate::disk::{AlignedBuf, BLOCK_BYTES, DirEntry, LockError, OpenMode};

/// Opens of files that may run at once in a shard.
pub(crate) const NAME_PERMITS: u64 = 1 << 20;
/// The largest single request: more would only hold the device and memory.
const REQUEST_BYTES: usize = 1 << 20;
/// Zeros written at a time: others wait for what the device is at.
const ZEROS_BYTES: usize = 128 << 10;
const BLOCK: u64 = BLOCK_BYTES as u64;
const PROBE_NAME: &str = ".poll-probe";
const LOCK_NAME: &str = ".lock";
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// An open direct file.
pub(crate) struct RealFile {
    dma: DmaFile,
    path: PathBuf,
}

impl RealFile {
    /// Opens `path`.
    pub(crate) async fn open(
        shard: &RealShard,
        path: &Path,
        mode: OpenMode,
        dsync: bool,
    ) -> io::Result<Self> {
        let _names_stay = shard.names.acquire(1).await;
        probe_device(shard, path).await?;
        let mut options = OpenOptions::new();
        options.read(true).write(mode != OpenMode::Read);
        options.create(mode == OpenMode::Create).create_new(mode == OpenMode::CreateNew);
        if dsync {
            options.custom_flags(libc::O_DSYNC);
        }
        let dma = options.dma_open(path).await.map_err(plain)?;
        Ok(Self { dma, path: path.to_owned() })
    }

    /// Writes `buf` at `position`.
    pub(crate) async fn write_at(&self, position: u64, buf: AlignedBuf) -> io::Result<()> {
        let buffer = Rc::new(buf.into_dma());
        let outcome = self.write_shared(position, &buffer).await;
        if let Some(buffer) = Rc::into_inner(buffer) {
            AlignedBuf::recycle(buffer);
        }
        outcome
    }

    async fn write_shared(&self, position: u64, buffer: &Rc<glommio::io::DmaBuffer>) -> io::Result<()> {
        // A short write means that the device stopped midway; the same write again brings the reason out.
        for _ in 0..2 {
            let written = self.dma.write_rc_at(Rc::clone(buffer), position).await.map_err(plain)?;
            if written == buffer.len() {
                return Ok(());
            }
        }
        Err(io::ErrorKind::WriteZero.into())
    }

    /// Reads a range.
    pub(crate) async fn read_at(&self, position: u64, len: usize) -> io::Result<Bytes> {
        let mut gathered = BytesMut::new();
        let mut next = position;
        let mut missing = len;
        while missing > 0 {
            let start = next / BLOCK * BLOCK;
            let skip = (next - start) as usize;
            let wanted = skip.saturating_add(missing).next_multiple_of(BLOCK_BYTES).min(REQUEST_BYTES);
            let result = self.dma.read_at_aligned(start, wanted).await.map_err(plain)?;
            let fresh = result.get(skip..result.len().min(skip + missing)).unwrap_or_default();
            if fresh.len() == len {
                return Ok(Bytes::copy_from_slice(fresh));
            }
            // Exactly, and not by doubling: what is read may stay for long.
            gathered.reserve(missing);
            gathered.extend_from_slice(fresh);
            next += fresh.len() as u64;
            missing -= fresh.len();
            if result.len() < wanted && (fresh.is_empty() || !result.len().is_multiple_of(BLOCK_BYTES)) {
                break; // the end of the file
            }
        }
        Ok(gathered.freeze())
    }

    /// `fdatasync`.
    pub(crate) async fn sync_data(&self) -> io::Result<()> {
        self.dma.fdatasync().await.map_err(plain)
    }

    /// Written zeros from the start to `len`.
    pub(crate) async fn allocate_zeroed(&self, len: u64) -> io::Result<()> {
        match self.dma.pre_allocate(len, false).await.map_err(plain) {
            // tmpfs and network file systems may not know it; the zeros allocate as well.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            other => other?,
        }
        let mut zeros = Rc::new(AlignedBuf::zeroed(ZEROS_BYTES).into_dma());
        let mut position = 0;
        while position < len {
            if len - position < ZEROS_BYTES as u64 {
                zeros = Rc::new(AlignedBuf::zeroed((len - position) as usize).into_dma());
            }
            self.write_shared(position, &zeros).await?;
            position += zeros.len() as u64;
        }
        self.sync_data().await
    }

    /// `ftruncate`.
    pub(crate) async fn set_len(&self, len: u64) -> io::Result<()> {
        self.dma.truncate(len).await.map_err(plain)
    }

    /// The length; `fstat` of an open file does not wait.
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(fstat(io_buffer::borrow_fd(&self.dma))?.st_size.unsigned_abs())
    }

    /// Closes.
    pub(crate) async fn close(self) -> io::Result<()> {
        self.dma.close().await.map_err(plain)
    }

    /// The path that it was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The operating system's error itself, so that its number and kind survive.
fn plain(error: GlommioError<()>) -> io::Error {
    match error {
        GlommioError::IoError(source) | GlommioError::EnhancedIoError { source, .. } => source,
        other => other.into(),
    }
}

/// Shows glommio a file with bytes in it before any other on a device: it learns from its first read whether the device can
/// be polled, and reading an empty file looks like success.
async fn probe_device(shard: &RealShard, path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let device = std::fs::metadata(parent)?.dev();
    if !shard.probed_devices.borrow_mut().insert(device) {
        return Ok(());
    }
    let probe = parent.join(format!("{PROBE_NAME}-{}-{}", std::process::id(), shard.id));
    let target = probe.clone();
    let made = blocking(move || std::fs::File::create(target)?.write_all(&[0; BLOCK_BYTES])).await;
    if made.is_err() {
        return Ok(()); // a directory that only reads serves files with bytes in them
    }
    let opened = OpenOptions::new().read(true).dma_open(&probe).await.map_err(plain);
    let removed = blocking(move || std::fs::remove_file(probe)).await;
    opened?.close().await.map_err(plain)?;
    removed
}

/// Runs `call` on the executor's blocking thread.
async fn blocking<T: Send + 'static>(call: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    glommio::executor().spawn_blocking(call).await
}

/// Makes a directory and its parents.
pub(crate) async fn create_dir_all(_shard: &RealShard, path: &Path) -> io::Result<()> {
    let path = path.to_owned();
    blocking(move || std::fs::create_dir_all(path)).await
}

/// Unlinks a file.
pub(crate) async fn remove_file(shard: &RealShard, path: &Path) -> io::Result<()> {
    let _names_change = shard.names.acquire(NAME_PERMITS).await;
    let path = path.to_owned();
    blocking(move || std::fs::remove_file(path)).await
}

/// Removes a tree.
pub(crate) async fn remove_dir_all(shard: &RealShard, path: &Path) -> io::Result<()> {
    let _names_change = shard.names.acquire(NAME_PERMITS).await;
    let path = path.to_owned();
    blocking(move || std::fs::remove_dir_all(path)).await
}

/// Renames.
pub(crate) async fn rename(shard: &RealShard, from: &Path, to: &Path) -> io::Result<()> {
    let _names_change = shard.names.acquire(NAME_PERMITS).await;
    let (from, to) = (from.to_owned(), to.to_owned());
    blocking(move || std::fs::rename(from, to)).await
}

/// Whether a name exists.
pub(crate) async fn exists(_shard: &RealShard, path: &Path) -> bool {
    let path = path.to_owned();
    blocking(move || path.try_exists()).await.unwrap_or(false)
}

/// Syncs a directory.
pub(crate) async fn sync_dir(_shard: &RealShard, path: &Path) -> io::Result<()> {
    let path = path.to_owned();
    blocking(move || std::fs::File::open(path)?.sync_all()).await
}

/// Lists a directory.
pub(crate) async fn read_dir(_shard: &RealShard, path: &Path) -> io::Result<Vec<DirEntry>> {
    let path = path.to_owned();
    blocking(move || {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let metadata = entry.metadata()?;
            let is_dir = metadata.is_dir();
            entries.push(DirEntry { name, is_dir, len: if is_dir { 0 } else { metadata.len() } });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    })
    .await
}

/// Free bytes for this process.
pub(crate) async fn free_space(_shard: &RealShard, path: &Path) -> io::Result<u64> {
    let path = path.to_owned();
    blocking(move || {
        let stat = statvfs(&path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    })
    .await
}

/// Locks the directory's lock file; the lock lasts as long as the file is open.
pub(crate) fn lock_dir(path: &Path) -> Result<std::fs::File, LockError> {
    let fault = |source| LockError::Io { path: path.to_owned(), source };
    let mut options = std::fs::File::options();
    let file = options.create(true).truncate(false).write(true).open(path.join(LOCK_NAME)).map_err(fault)?;
    for attempt in 1..=LOCK_TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if attempt < LOCK_TRIES => std::thread::sleep(LOCK_PAUSE),
            Err(Errno::WOULDBLOCK) => {}
            Err(errno) => return Err(fault(errno.into())),
        }
    }
    Err(LockError::InUse(path.to_owned()))
}
