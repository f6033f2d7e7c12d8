//! Names, space and locks of a simulated disk.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::NodeDisk;
use super::faults::{Fault, device_error};
use super::names::{Entry, NameOp};
use crate::disk::{DirEntry, LockError};
use crate::sim::SimShard;
use crate::sim::core::SimSleep;
use crate::sim::trace::{Step, digest};

/// The time of one request.
pub(super) async fn latency(shard: &Rc<SimShard>) {
    let core = &shard.core;
    let ordinary = core.now() + core.disk_random.between(&core.config.disk_latency);
    let stalled = shard.disk.faults.borrow().stalled_until;
    SimSleep::until(core, ordinary.max(stalled)).await;
}

/// A path as this disk keeps it: absolute, whatever it is relative to.
pub(super) fn trim(path: &Path) -> PathBuf {
    Path::new("/").join(path)
}

fn change(shard: &SimShard, op: NameOp) {
    let (kind, path) = match &op {
        NameOp::Add(path, _) => (0, path),
        NameOp::Remove(path) => (1, path),
        NameOp::Rename(_, to) => (2, to),
    };
    shard.core.trace.note(Step::DiskName, &[kind, digest(path.as_os_str().as_encoded_bytes())]);
    shard.disk.add_name(op);
}

pub(crate) async fn create_dir_all(shard: &Rc<SimShard>, path: &Path) -> io::Result<()> {
    latency(shard).await;
    let path = trim(path);
    let mut missing = Vec::new();
    {
        let names = shard.disk.names.borrow();
        for ancestor in path.ancestors() {
            match names.entry(ancestor) {
                Some(Entry::Dir) => break,
                Some(Entry::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
                None => missing.push(ancestor.to_owned()),
            }
        }
    }
    for dir in missing.into_iter().rev() {
        change(shard, NameOp::Add(dir, Entry::Dir));
    }
    Ok(())
}

pub(crate) async fn remove_file(shard: &Rc<SimShard>, path: &Path) -> io::Result<()> {
    latency(shard).await;
    let path = trim(path);
    if shard.disk.names.borrow().file(&path).is_none() {
        return Err(io::ErrorKind::NotFound.into());
    }
    change(shard, NameOp::Remove(path));
    Ok(())
}

pub(crate) async fn remove_dir_all(shard: &Rc<SimShard>, path: &Path) -> io::Result<()> {
    latency(shard).await;
    let path = trim(path);
    let mut doomed: Vec<PathBuf> = {
        let names = shard.disk.names.borrow();
        if !names.is_dir(&path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        names.below(&path).map(|(path, _)| path.to_owned()).collect()
    };
    doomed.insert(0, path);
    for path in doomed.into_iter().rev() {
        change(shard, NameOp::Remove(path));
    }
    Ok(())
}

pub(crate) async fn rename(shard: &Rc<SimShard>, from: &Path, to: &Path) -> io::Result<()> {
    latency(shard).await;
    let (from, to) = (trim(from), trim(to));
    {
        let names = shard.disk.names.borrow();
        names.check_parent(&to)?;
        match (names.entry(&from), names.entry(&to)) {
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
            (Some(Entry::File(_)), Some(Entry::Dir)) => return Err(io::ErrorKind::IsADirectory.into()),
            (Some(Entry::Dir), Some(Entry::File(_))) => return Err(io::ErrorKind::NotADirectory.into()),
            (Some(Entry::Dir), Some(Entry::Dir)) if names.children(&to).next().is_some() => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            _ => {}
        }
    }
    if from != to {
        change(shard, NameOp::Rename(from, to));
    }
    Ok(())
}

pub(crate) async fn exists(shard: &Rc<SimShard>, path: &Path) -> bool {
    latency(shard).await;
    shard.disk.names.borrow().entry(&trim(path)).is_some()
}

pub(crate) async fn sync_dir(shard: &Rc<SimShard>, path: &Path) -> io::Result<()> {
    let path = trim(path);
    latency(shard).await;
    if !shard.disk.names.borrow().is_dir(&path) {
        return Err(io::ErrorKind::NotFound.into());
    }
    if shard.disk.faults.borrow_mut().strikes(&shard.core, Fault::SyncError, &path) {
        return Err(device_error());
    }
    shard.disk.names.borrow_mut().sync_dir(&path);
    Ok(())
}

pub(crate) async fn read_dir(shard: &Rc<SimShard>, path: &Path) -> io::Result<Vec<DirEntry>> {
    latency(shard).await;
    let path = trim(path);
    let names = shard.disk.names.borrow();
    if !names.is_dir(&path) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut entries: Vec<DirEntry> = names
        .children(&path)
        .filter_map(|(path, entry)| {
            let name = path.file_name()?.to_str()?.to_owned();
            Some(match entry {
                Entry::Dir => DirEntry { name, is_dir: true, len: 0 },
                Entry::File(inode) => DirEntry { name, is_dir: false, len: inode.borrow().len() },
            })
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

pub(crate) async fn free_space(shard: &Rc<SimShard>, path: &Path) -> io::Result<u64> {
    latency(shard).await;
    if shard.disk.names.borrow().entry(&trim(path)).is_none() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let capacity = shard.disk.faults.borrow().capacity_bytes;
    Ok(capacity.saturating_sub(shard.disk.used_bytes()))
}

/// A directory's lock, held by a process.
pub(crate) struct SimDirLock {
    disk: Rc<NodeDisk>,
    path: PathBuf,
    number: u64,
}

pub(crate) fn lock_dir(shard: &SimShard, path: &Path) -> Result<SimDirLock, LockError> {
    let fault = |kind: io::ErrorKind| LockError::Io { path: path.to_owned(), source: kind.into() };
    let trimmed = trim(path);
    if !shard.disk.names.borrow().is_dir(&trimmed) {
        return Err(fault(io::ErrorKind::NotFound));
    }
    let mut locks = shard.disk.locks.borrow_mut();
    if locks.contains_key(&trimmed) {
        return Err(LockError::InUse(path.to_owned()));
    }
    let number = shard.disk.locks_made.get();
    shard.disk.locks_made.set(number + 1);
    locks.insert(trimmed.clone(), number);
    Ok(SimDirLock { disk: Rc::clone(&shard.disk), path: trimmed, number })
}

impl Drop for SimDirLock {
    fn drop(&mut self) {
        let mut locks = self.disk.locks.borrow_mut();
        // The lock of a process that died may have a new owner.
        if locks.get(&self.path) == Some(&self.number) {
            locks.remove(&self.path);
        }
    }
}
