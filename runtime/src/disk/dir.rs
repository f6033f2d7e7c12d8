//! Directory operations and whole small files of the current world. In the real world they run off the shard's thread.

use std::io;
use std::path::Path;

use bytes::Bytes;

use super::{AlignedBuf, BLOCK_BYTES, File, OpenMode};
use crate::real;
use crate::sim;
use crate::world::{self, World};

/// One name in a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    /// The name, without the directory.
    pub name: String,
    /// Whether it is a directory itself.
    pub is_dir: bool,
    /// Length in bytes, zero for a directory.
    pub len: u64,
}

/// Makes `path` and its missing parents; durable after [`sync_dir`] of each parent.
///
/// # Errors
/// What the file system says.
pub async fn create_dir_all(path: &Path) -> io::Result<()> {
    match world::current() {
        World::Real(shard) => real::disk::create_dir_all(&shard, path).await,
        World::Sim(shard) => sim::disk::create_dir_all(&shard, path).await,
    }
}

/// Removes a file's name.
///
/// # Errors
/// `NotFound` when there is none.
pub async fn remove_file(path: &Path) -> io::Result<()> {
    match world::current() {
        World::Real(shard) => real::disk::remove_file(&shard, path).await,
        World::Sim(shard) => sim::disk::remove_file(&shard, path).await,
    }
}

/// Removes a directory with all that is in it.
///
/// # Errors
/// `NotFound` when there is none.
pub async fn remove_dir_all(path: &Path) -> io::Result<()> {
    match world::current() {
        World::Real(shard) => real::disk::remove_dir_all(&shard, path).await,
        World::Sim(shard) => sim::disk::remove_dir_all(&shard, path).await,
    }
}

/// Renames atomically, replacing a file at `to`; durable after [`sync_dir`] of both parents.
///
/// # Errors
/// `NotFound` when `from` does not exist.
pub async fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match world::current() {
        World::Real(shard) => real::disk::rename(&shard, from, to).await,
        World::Sim(shard) => sim::disk::rename(&shard, from, to).await,
    }
}

/// Whether `path` exists, as a file or a directory. An error of the file system reads as no.
pub async fn exists(path: &Path) -> bool {
    match world::current() {
        World::Real(shard) => real::disk::exists(&shard, path).await,
        World::Sim(shard) => sim::disk::exists(&shard, path).await,
    }
}

/// Makes the names in directory `path` durable.
///
/// # Errors
/// As final as an error of [`File::sync_data`].
pub async fn sync_dir(path: &Path) -> io::Result<()> {
    match world::current() {
        World::Real(shard) => real::disk::sync_dir(&shard, path).await,
        World::Sim(shard) => sim::disk::sync_dir(&shard, path).await,
    }
}

/// The entries of a directory, sorted by name. Names that are not UTF-8 are not ours and are left out.
///
/// # Errors
/// `NotFound` when there is none.
pub async fn read_dir(path: &Path) -> io::Result<Vec<DirEntry>> {
    match world::current() {
        World::Real(shard) => real::disk::read_dir(&shard, path).await,
        World::Sim(shard) => sim::disk::read_dir(&shard, path).await,
    }
}

/// Bytes that may still be written to the file system of `path`.
///
/// # Errors
/// What the file system says.
pub async fn free_space(path: &Path) -> io::Result<u64> {
    match world::current() {
        World::Real(shard) => real::disk::free_space(&shard, path).await,
        World::Sim(shard) => sim::disk::free_space(&shard, path).await,
    }
}

/// All bytes of a small file.
///
/// # Errors
/// `NotFound` when there is none.
pub async fn read_file(path: &Path) -> io::Result<Bytes> {
    let file = File::open(path, OpenMode::Read).await?;
    let len = usize::try_from(file.len().await?).map_err(io::Error::other)?;
    let bytes = file.read_at(0, len).await;
    file.close().await?;
    bytes
}

/// Replaces a small file so that a crash leaves either the old bytes or the new: temporary file, sync, rename, sync of the
/// directory. Two writers of one path must not run at once.
///
/// # Errors
/// What the file system says; the old file stands then, unless only the last sync failed.
pub async fn write_file_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut temporary_name = name.to_owned();
    temporary_name.push(".tmp");
    let temporary = parent.join(temporary_name);
    let file = File::open(&temporary, OpenMode::Create).await?;
    let written = write_whole(&file, bytes).await;
    file.close().await?;
    written?;
    rename(&temporary, path).await?;
    sync_dir(parent).await
}

async fn write_whole(file: &File, bytes: &[u8]) -> io::Result<()> {
    if !bytes.is_empty() {
        let mut buf = AlignedBuf::zeroed(bytes.len().next_multiple_of(BLOCK_BYTES));
        buf[..bytes.len()].copy_from_slice(bytes);
        file.write_at(0, buf).await?;
    }
    file.set_len(bytes.len() as u64).await?;
    file.sync_data().await
}
