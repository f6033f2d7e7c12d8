//! Small file systems of a test's own: they can be filled or made read-only without harm. Needs root.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

use crate::suite::missing;
use crate::{foreign, paths, process, suite};

const LIMIT: Duration = Duration::from_secs(60);

/// A mounted file system, unmounted when it is dropped.
pub struct Mount {
    directory: TempDir,
    image: Option<TempDir>,
}

impl Mount {
    /// An ext4 file system of about `bytes`, in a file by way of a loop device.
    pub fn ext4(bytes: u64) -> Result<Mount> {
        need(&["mkfs.ext4", "mount", "umount"])?;
        let image = paths::scratch("image")?;
        let file = image.path().join("ext4");
        std::fs::File::create(&file)?.set_len(bytes)?;
        let mut mkfs = Command::new("mkfs.ext4");
        // No blocks kept for root: the node runs as root here and would be given them.
        process::run(mkfs.args(["-q", "-F", "-m", "0"]).arg(&file), "mkfs.ext4", LIMIT)?;
        let directory = paths::scratch("mount")?;
        let mut mount = Command::new("mount");
        process::run(mount.args(["-o", "loop"]).arg(&file).arg(directory.path()), "mount", LIMIT)?;
        Ok(Mount { directory, image: Some(image) })
    }

    /// The contents of `directory`, read-only.
    pub fn read_only(of: &Path) -> Result<Mount> {
        need(&["mount", "umount"])?;
        let directory = paths::scratch("mount")?;
        let mut mount = Command::new("mount");
        process::run(mount.arg("--bind").arg(of).arg(directory.path()), "mount --bind", LIMIT)?;
        let mounted = Mount { directory, image: None };
        let mut again = Command::new("mount");
        again.args(["-o", "remount,bind,ro"]).arg(mounted.path());
        process::run(&mut again, "mount -o remount,bind,ro", LIMIT)?;
        Ok(mounted)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    /// Bytes that may still be written.
    pub fn free_bytes(&self) -> Result<u64> {
        let state = rustix::fs::statvfs(self.directory.path())?;
        Ok(state.f_bavail * state.f_frsize)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let mut umount = Command::new("umount");
        // Lazily: a node that was just killed may hold files for some milliseconds more.
        let done = process::run(umount.arg("--lazy").arg(self.directory.path()), "umount", LIMIT);
        if let Err(error) = done {
            suite::problem(format!("unmounting {}: {error:#}", self.directory.path().display()));
        }
        self.image.take();
    }
}

fn need(programs: &[&str]) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(missing("root (to mount a file system)"));
    }
    foreign::need(programs)
}
