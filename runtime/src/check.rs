//! Start-up checks of the real world: whether this machine serves, and if not, everything that is wrong at once, with the
//! cure of each. Run them before the shards start: glommio ends the process without a word when an operation of io_uring is
//! missing.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use io_uring::{IoUring, Probe, opcode};
use rustix::fs::statfs;
use rustix::io::{pread, pwrite};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::uname;

use crate::disk::{AlignedBuf, BLOCK_BYTES};

/// The first kernel with every operation that glommio submits.
const KERNEL_MIN: (u32, u32) = (5, 8);
/// glommio refuses to make an executor below this.
const MEMLOCK_MIN_BYTES: u64 = 512 << 10;
/// Descriptors of a shard itself: three rings, an event, its journal, room to spare.
const FILES_PER_SHARD: u64 = 64;
/// Descriptors of a partition with its open segment and indexes.
const FILES_PER_PARTITION: u64 = 4;
/// Descriptors for clients and everything else.
const FILES_BASE: u64 = 512;
const PROBE_NAME: &str = ".direct-io-probe";
const DISABLED_PATH: &str = "/proc/sys/kernel/io_uring_disabled";

/// One thing about the machine that does not serve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub cure: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.cure)
    }
}

fn problem(what: impl Into<String>, cure: impl Into<String>) -> Problem {
    Problem { what: what.into(), cure: cure.into() }
}

/// Checks kernel, io_uring, lockable memory, open files (raising the soft limit as far as the hard one allows), and that
/// `data_dir`, which must exist, takes direct I/O in blocks of 4 KiB.
///
/// `partitions_hint` is how many partitions are to be expected.
///
/// # Errors
/// All problems found.
pub fn environment(data_dir: &Path, shards: u16, partitions_hint: usize) -> Result<(), Vec<Problem>> {
    let found =
        [kernel(), io_uring(), locked_memory(), open_files(shards, partitions_hint), directory(data_dir)];
    let problems: Vec<Problem> = found.into_iter().filter_map(Result::err).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn kernel() -> Result<(), Problem> {
    let release = uname().release().to_string_lossy().into_owned();
    match parse_release(&release) {
        // A release that nobody can read is judged by what io_uring offers.
        Some(version) if version < KERNEL_MIN => {
            let (major, minor) = KERNEL_MIN;
            Err(problem(format!("the kernel is {release}"), format!("run Linux {major}.{minor} or newer")))
        }
        _ => Ok(()),
    }
}

fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn io_uring() -> Result<(), Problem> {
    let disabled = std::fs::read_to_string(DISABLED_PATH).unwrap_or_default();
    let ring = IoUring::new(8).map_err(|error| match (error.kind(), disabled.trim()) {
        (ErrorKind::PermissionDenied, level @ ("1" | "2")) => problem(
            format!("io_uring is switched off: {DISABLED_PATH} is {level}"),
            "run `sysctl kernel.io_uring_disabled=0`",
        ),
        (ErrorKind::PermissionDenied, _) => problem(
            "io_uring is forbidden to this process",
            "allow io_uring_setup, io_uring_enter and io_uring_register in the container's seccomp profile",
        ),
        (ErrorKind::Unsupported, _) => {
            problem("the kernel has no io_uring", "run a kernel built with CONFIG_IO_URING=y")
        }
        (ErrorKind::OutOfMemory, _) => {
            problem("io_uring cannot lock memory", "raise the limit of locked memory (LimitMEMLOCK=infinity)")
        }
        _ => problem(format!("io_uring cannot be set up: {error}"), "see what the kernel's log says"),
    })?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(|error| {
        problem(
            format!("io_uring cannot be probed: {error}"),
            "allow io_uring_register in the seccomp profile",
        )
    })?;
    let missing: Vec<&str> = needed_operations()
        .into_iter()
        .filter(|(_, code)| !probe.is_supported(*code))
        .map(|(name, _)| name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(problem(format!("io_uring lacks {}", missing.join(", ")), "run a newer kernel"))
}

/// What glommio submits.
fn needed_operations() -> [(&'static str, u8); 23] {
    [
        ("nop", opcode::Nop::CODE),
        ("readv", opcode::Readv::CODE),
        ("writev", opcode::Writev::CODE),
        ("fsync", opcode::Fsync::CODE),
        ("read_fixed", opcode::ReadFixed::CODE),
        ("write_fixed", opcode::WriteFixed::CODE),
        ("poll_add", opcode::PollAdd::CODE),
        ("poll_remove", opcode::PollRemove::CODE),
        ("sendmsg", opcode::SendMsg::CODE),
        ("recvmsg", opcode::RecvMsg::CODE),
        ("timeout", opcode::Timeout::CODE),
        ("timeout_remove", opcode::TimeoutRemove::CODE),
        ("accept", opcode::Accept::CODE),
        ("link_timeout", opcode::LinkTimeout::CODE),
        ("connect", opcode::Connect::CODE),
        ("fallocate", opcode::Fallocate::CODE),
        ("openat", opcode::OpenAt::CODE),
        ("close", opcode::Close::CODE),
        ("statx", opcode::Statx::CODE),
        ("read", opcode::Read::CODE),
        ("write", opcode::Write::CODE),
        ("send", opcode::Send::CODE),
        ("recv", opcode::Recv::CODE),
    ]
}

fn locked_memory() -> Result<(), Problem> {
    let limit = getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX);
    if limit >= MEMLOCK_MIN_BYTES {
        return Ok(());
    }
    Err(problem(
        format!("only {} KiB of memory may be locked", limit >> 10),
        format!(
            "set LimitMEMLOCK=infinity in the systemd unit, or `ulimit -l` to at least {} KiB",
            MEMLOCK_MIN_BYTES >> 10
        ),
    ))
}

fn open_files(shards: u16, partitions_hint: usize) -> Result<(), Problem> {
    let needed =
        FILES_BASE + FILES_PER_SHARD * u64::from(shards) + FILES_PER_PARTITION * partitions_hint as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    if raised && maximum.is_none_or(|maximum| maximum >= needed) {
        return Ok(());
    }
    Err(problem(
        format!(
            "only {} files may be open, and {shards} shards with {partitions_hint} partitions need {needed}",
            maximum.unwrap_or(u64::MAX)
        ),
        format!("set LimitNOFILE={needed} or more in the systemd unit, or raise `ulimit -Hn`"),
    ))
}

fn directory(dir: &Path) -> Result<(), Problem> {
    let shown = dir.display();
    let path = dir.join(format!("{PROBE_NAME}-{}", std::process::id()));
    // Made without O_DIRECT first, to tell a directory that cannot be written from one without direct I/O.
    if let Err(error) = File::create(&path) {
        let cure = match error.kind() {
            ErrorKind::NotFound => "create it",
            ErrorKind::PermissionDenied => "give it to the user that runs this process",
            ErrorKind::ReadOnlyFilesystem => "mount its file system for writing",
            ErrorKind::StorageFull => "make room on its file system",
            _ => "choose another directory",
        };
        return Err(problem(format!("{shown} cannot be written: {error}"), cure));
    }
    let outcome = direct_io(&path);
    // A probe file that stays is only litter.
    let _ = std::fs::remove_file(&path);
    outcome.map_err(|error| {
        let kind = statfs(dir).map_or_else(|_| "?".to_owned(), |stat| format!("{:#x}", stat.f_type));
        problem(
            format!("{shown} (file system type {kind}) does not take direct I/O in blocks of {BLOCK_BYTES} bytes: {error}"),
            "put the data on ext4 or XFS on a device with blocks of at most 4 KiB (tmpfs serves for tests)",
        )
    })
}

fn direct_io(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let is_memory = statfs(path)?.f_type as u64 == libc::TMPFS_MAGIC as u64;
    if !is_memory {
        options.custom_flags(libc::O_DIRECT);
    }
    let file = options.open(path)?;
    let mut written = AlignedBuf::zeroed(BLOCK_BYTES);
    written.fill(0xA5);
    let mut read = AlignedBuf::zeroed(BLOCK_BYTES);
    for position in [0, BLOCK_BYTES as u64] {
        let put = pwrite(&file, &written, position)?;
        file.sync_data()?;
        let got = pread(&file, &mut *read, position)?;
        if put != BLOCK_BYTES || got != BLOCK_BYTES || *read != *written {
            return Err(io::Error::other("a block does not read as it was written"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn this_machine_serves() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert_eq!(environment(dir.path(), 2, 16), Ok(()));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the probe leaves nothing behind");
    }

    #[test]
    fn memory_file_systems_serve() {
        if let Ok(dir) = tempfile::tempdir_in("/dev/shm") {
            assert_eq!(directory(dir.path()), Ok(()));
        }
    }

    #[test]
    fn all_problems_are_told_at_once_with_their_cures() {
        let problems = environment(Path::new("/no/such/directory"), 1, usize::MAX >> 8).unwrap_err();
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("files may be open") && told[0].contains("LimitNOFILE="), "{told:?}");
        assert!(told[1].contains("/no/such/directory cannot be written"), "{told:?}");
        assert!(told[1].ends_with("create it"), "{told:?}");
    }

    #[test]
    fn a_file_system_without_direct_io_is_named() {
        let problem = directory(Path::new("/proc")).unwrap_err();
        assert!(problem.what.starts_with("/proc"), "{problem}");
    }

    #[test]
    fn a_directory_of_someone_else_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
        // Root writes there all the same.
        if let Err(problem) = directory(dir.path()) {
            assert!(problem.cure.contains("user"), "{problem}");
        }
    }

    #[test]
    fn releases_are_read() {
        assert_eq!(parse_release("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(parse_release("5.8"), Some((5, 8)));
        assert_eq!(parse_release("5.15-generic"), Some((5, 15)));
        assert_eq!(parse_release("custom"), None);
    }
}
