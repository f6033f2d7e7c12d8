//! Journal files: preallocated, zero-filled, recycled; one is kept ready so that a roll never waits.
//! Owns: which slots are in use, full or free. Does not own: what is written into them.
//!
//! Invariants:
//! 1. A full file becomes free only when no block in it is needed by a durable checkpoint.
//! 2. Slots are numbered from 0, are never renamed and never removed while the storage is open.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use runtime::disk::{self, AlignedBuf, File, OpenMode};
use runtime::sync::{Event, Listener};

use crate::config::StorageConfig;
use crate::error::StorageError;
use crate::journal::block::BLOCK_BYTES;

/// Directory of the journal inside the shard's.
pub(crate) const DIRECTORY: &str = "journal";

/// Bytes of the very first journal file: small, so that a new shard opens at once.
const FIRST_FILE_BYTES: u64 = 8 << 20;

/// One journal file.
#[derive(Clone)]
pub(crate) struct JournalFile {
    pub(crate) slot: u16,
    pub(crate) bytes: u64,
    pub(crate) file: File,
}

/// A file that holds blocks: `first_block..=last_block`, entries below `next_entry`.
pub(crate) struct UsedFile {
    pub(crate) file: JournalFile,
    pub(crate) first_block: u64,
    pub(crate) last_block: u64,
    pub(crate) next_entry: u64,
}

/// All files of the journal but the one being written.
pub(crate) struct Files {
    dir: PathBuf,
    file_bytes: u64,
    files_max: usize,
    reserve_bytes: u64,
    state: RefCell<State>,
    /// A file became free.
    freed: Event,
    /// A file was taken, so another is to be made ready.
    taken: Event,
    /// The journal may have stalled.
    scarce: Event,
}

struct State {
    free: Vec<JournalFile>,
    full: VecDeque<UsedFile>,
    slots: u16,
    no_space: bool,
    /// The journal waits for a file of so many bytes.
    wanted_bytes: Option<u64>,
}

/// Path of a journal file.
pub(crate) fn path_of(dir: &Path, slot: u16) -> PathBuf {
    dir.join(format!("{slot:04}.journal"))
}

/// Slot of a journal file's name.
pub(crate) fn slot_of(name: &str) -> Option<u16> {
    name.strip_suffix(".journal").filter(|digits| digits.len() == 4).and_then(|digits| digits.parse().ok())
}

/// Opens a journal file such that each write is durable when it returns: one request for what would be two, write and flush.
async fn open_durable(path: &Path) -> Result<File, StorageError> {
    File::open_dsync(path, OpenMode::Write).await.map_err(StorageError::during("open", path))
}

/// Makes a file longer, at most by the length of a first file.
async fn extend(file: &File, from: u64, to: u64) -> std::io::Result<()> {
    let bytes = usize::try_from(to - from).expect("smaller than memory");
    file.write_at(from, AlignedBuf::zeroed(bytes)).await?;
    file.sync_data().await
}

impl Files {
    /// All files of the directory, which is made when missing, with none of them in use yet.
    pub(crate) async fn open(config: &StorageConfig) -> Result<(Self, Vec<JournalFile>), StorageError> {
        let dir = config.dir.join(DIRECTORY);
        disk::create_dir_all(&dir).await.map_err(StorageError::during("create", &dir))?;
        // A file that an earlier process made may not have a durable name yet, however much was flushed into it.
        for dir in [&dir, &config.dir] {
            disk::sync_dir(dir).await.map_err(StorageError::during("flush", dir))?;
        }
        let listing = disk::read_dir(&dir).await.map_err(StorageError::during("list", &dir))?;
        let mut files = Vec::new();
        let mut slots = 0;
        for entry in listing {
            let Some(slot) = slot_of(&entry.name) else { continue };
            let path = path_of(&dir, slot);
            let file = open_durable(&path).await?;
            let bytes = entry.len / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
            files.push(JournalFile { slot, bytes, file });
            slots = slots.max(slot + 1);
        }
        let state =
            State { free: Vec::new(), full: VecDeque::new(), slots, no_space: false, wanted_bytes: None };
        let this = Self {
            dir,
            file_bytes: config.journal_file_bytes,
            files_max: config.journal_files_max,
            reserve_bytes: config.reserve_bytes,
            state: RefCell::new(state),
            freed: Event::new(),
            taken: Event::new(),
            scarce: Event::new(),
        };
        Ok((this, files))
    }

    /// Mends files that are shorter than they were made. A crash may have struck while the newest was made, which is made anew
    /// then. Or the flush of its length failed, and the process that was started next wrote blocks into it all the same: those
    /// are durable, and the length comes back.
    pub(crate) async fn mend(
        &self,
        all: &mut Vec<JournalFile>,
        holding_blocks: &BTreeSet<u16>,
    ) -> Result<(), StorageError> {
        let least = FIRST_FILE_BYTES.min(self.file_bytes);
        if all.last().is_some_and(|file| file.bytes < least && !holding_blocks.contains(&file.slot)) {
            all.pop();
            self.state.borrow_mut().slots -= 1;
        }
        for file in all.iter_mut().filter(|file| file.bytes < least) {
            let path = file.file.path();
            match extend(&file.file, file.bytes, least).await.map_err(StorageError::during("extend", path)) {
                Ok(()) => file.bytes = least,
                Err(error) if error.is_no_space() => {
                    tracing::warn!(%error, "the disk is full: a journal file stays short");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Bytes of a standard file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Directory of the journal.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Files that hold needed blocks, the one being written included.
    pub(crate) fn used(&self) -> usize {
        self.state.borrow().full.len() + 1
    }

    /// Whether so many files are in use that a checkpoint should free some.
    pub(crate) fn pressed(&self) -> bool {
        self.used() * 2 >= self.files_max
    }

    /// Takes a measurement of free space: a file that could not be made is tried again once there is room for it.
    pub(crate) fn measured(&self, free_bytes: u64) {
        if self.has_room(free_bytes) && std::mem::take(&mut self.state.borrow_mut().no_space) {
            self.taken.notify_all();
        }
    }

    /// Whether a file may be made: the reserve belongs to the segments of what the journal holds already. What was accepted
    /// and waits may have half of it, for deletions may be among it.
    fn has_room(&self, free_bytes: u64) -> bool {
        let reserve_bytes = self.reserve_bytes >> u32::from(self.state.borrow().wanted_bytes.is_some());
        free_bytes >= reserve_bytes.saturating_add(self.file_bytes)
    }

    /// Ready once another file is taken into use.
    pub(crate) fn rolled(&self) -> Listener {
        self.taken.listen()
    }

    /// Whether the disk has no room for another file.
    pub(crate) fn no_space(&self) -> bool {
        self.state.borrow().no_space
    }

    /// Bytes of all free files.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.state.borrow().free.iter().map(|file| file.bytes).sum()
    }

    /// Whether nothing is written until a checkpoint frees a file.
    pub(crate) fn stalled(&self) -> bool {
        let state = self.state.borrow();
        let waits = |bytes| !state.free.iter().any(|file| file.bytes >= bytes);
        state.wanted_bytes.is_some_and(waits)
            && (state.no_space || usize::from(state.slots) >= self.files_max)
    }

    /// Waits until the journal has [stalled](Files::stalled).
    pub(crate) async fn wait_stalled(&self) {
        loop {
            let listener = self.scarce.listen();
            if self.stalled() {
                return;
            }
            listener.await;
        }
    }

    /// Puts a file that holds needed blocks behind all others.
    pub(crate) fn push_full(&self, file: UsedFile) {
        self.state.borrow_mut().full.push_back(file);
    }

    /// Gives a file back that holds nothing needed.
    pub(crate) fn push_free(&self, file: JournalFile) {
        self.state.borrow_mut().free.push(file);
        self.freed.notify_all();
    }

    /// First block of the oldest file with an entry ≥ `entry`, if there is one beside the file being written.
    pub(crate) fn first_block_with(&self, entry: u64) -> Option<u64> {
        self.state.borrow().full.iter().find(|file| file.next_entry > entry).map(|file| file.first_block)
    }

    /// Frees the files all of whose blocks lie before `block`.
    pub(crate) fn release_before(&self, block: u64) {
        let mut state = self.state.borrow_mut();
        while state.full.front().is_some_and(|file| file.last_block < block) {
            let freed = state.full.pop_front().map(|used| used.file);
            state.free.extend(freed);
        }
        drop(state);
        self.freed.notify_all();
    }

    /// Takes a free file of at least `bytes`, waiting for one to be freed or made.
    pub(crate) async fn take(&self, bytes: u64) -> JournalFile {
        loop {
            let listener = self.freed.listen();
            let taken = self.try_take(bytes);
            self.state.borrow_mut().wanted_bytes = taken.is_none().then_some(bytes);
            if let Some(file) = taken {
                return file;
            }
            self.scarce.notify_all();
            self.taken.notify_all();
            listener.await;
        }
    }

    /// Takes a free file of at least `bytes`.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<JournalFile> {
        let mut state = self.state.borrow_mut();
        let at = state.free.iter().position(|file| file.bytes >= bytes)?;
        let file = state.free.swap_remove(at);
        drop(state);
        self.taken.notify_all();
        Some(file)
    }

    /// Makes the first file of a new journal.
    pub(crate) async fn make_first(&self) -> Result<JournalFile, StorageError> {
        self.make(FIRST_FILE_BYTES.min(self.file_bytes)).await
    }

    /// Makes one more standard file, whatever the limit says.
    pub(crate) async fn make_standard(&self) -> Result<JournalFile, StorageError> {
        self.make(self.file_bytes).await
    }

    /// Makes one file and flushes it and the directory.
    async fn make(&self, bytes: u64) -> Result<JournalFile, StorageError> {
        let slot = self.state.borrow().slots;
        let path = path_of(&self.dir, slot);
        // A file left half made by a full disk keeps its slot and is made anew.
        let file =
            File::open(&path, OpenMode::Create).await.map_err(StorageError::during("create", &path))?;
        file.allocate_zeroed(bytes).await.map_err(StorageError::during("allocate", &path))?;
        file.close().await.map_err(StorageError::during("close", &path))?;
        let file = open_durable(&path).await?;
        disk::sync_dir(&self.dir).await.map_err(StorageError::during("flush", &self.dir))?;
        self.state.borrow_mut().slots = slot + 1;
        Ok(JournalFile { slot, bytes, file })
    }

    /// Keeps one standard file free as long as the limit allows. Ends with an error that is not a full disk.
    pub(crate) async fn run_allocator(&self, retry: std::time::Duration) -> StorageError {
        loop {
            let taken = self.taken.listen();
            if self.wants_file() {
                match self.make_above_reserve().await {
                    Ok(file) => self.push_free(file),
                    Err(error) if error.is_no_space() => {
                        self.state.borrow_mut().no_space = true;
                        self.scarce.notify_all();
                        self.give_back_half_made().await;
                        let _ = runtime::time::timeout(retry, taken).await;
                        continue;
                    }
                    Err(error) => return error,
                }
            }
            taken.await;
        }
    }

    /// Makes a standard file if there is room.
    async fn make_above_reserve(&self) -> Result<JournalFile, StorageError> {
        let free = disk::free_space(&self.dir).await.map_err(StorageError::during("inspect", &self.dir))?;
        if !self.has_room(free) {
            let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(StorageError::io("allocate", &self.dir, error));
        }
        // Nobody need be refused while it is being made.
        self.state.borrow_mut().no_space = false;
        self.make(self.file_bytes).await
    }

    fn wants_file(&self) -> bool {
        let state = self.state.borrow();
        usize::from(state.slots) < self.files_max
            && !state.free.iter().any(|file| file.bytes >= self.file_bytes)
    }

    /// Space taken by a file that could not be made whole is needed elsewhere. Failing to give it back changes nothing.
    async fn give_back_half_made(&self) {
        let path = path_of(&self.dir, self.state.borrow().slots);
        if disk::exists(&path).await
            && let Err(error) = disk::remove_file(&path).await
        {
            tracing::warn!(%error, path = %path.display(), "cannot remove a half made journal file");
        }
    }
}
