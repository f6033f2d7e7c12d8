//! Open segment files, least recently used closed first: an idle partition holds no file open.
//! Does not own: what is read or written.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use runtime::disk::{File, OpenMode};

use crate::error::StorageError;

/// Open files by path.
pub(crate) struct OpenFiles {
    max: usize,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    by_path: BTreeMap<Rc<Path>, (File, u64)>,
    by_use: BTreeMap<u64, Rc<Path>>,
    uses: u64,
}

impl OpenFiles {
    /// At most `max` files stay open here; those in use by a running read or write stay open beyond that.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, state: RefCell::default() }
    }

    /// The file, which must exist.
    pub(crate) async fn get(&self, path: &Path) -> Result<File, StorageError> {
        self.open(path, OpenMode::Write).await
    }

    /// The file, made when missing.
    pub(crate) async fn create(&self, path: &Path) -> Result<File, StorageError> {
        self.open(path, OpenMode::Create).await
    }

    async fn open(&self, path: &Path, mode: OpenMode) -> Result<File, StorageError> {
        if let Some(file) = self.touch(path) {
            return Ok(file);
        }
        let file = File::open(path, mode).await.map_err(StorageError::during("open", path))?;
        let closed = self.insert(path, file.clone());
        for file in closed {
            file.close().await.map_err(StorageError::during("close", path))?;
        }
        Ok(file)
    }

    fn touch(&self, path: &Path) -> Option<File> {
        let state = &mut *self.state.borrow_mut();
        let (file, used) = state.by_path.get_mut(path)?;
        let key = state.by_use.remove(used)?;
        state.uses += 1;
        *used = state.uses;
        state.by_use.insert(state.uses, key);
        Some(file.clone())
    }

    fn insert(&self, path: &Path, file: File) -> Vec<File> {
        let state = &mut *self.state.borrow_mut();
        state.uses += 1;
        let key: Rc<Path> = path.into();
        let mut closed = Vec::new();
        if let Some((other, used)) = state.by_path.insert(Rc::clone(&key), (file, state.uses)) {
            state.by_use.remove(&used);
            closed.push(other);
        }
        state.by_use.insert(state.uses, key);
        while state.by_path.len() > self.max
            && let Some((_, oldest)) = state.by_use.pop_first()
        {
            closed.extend(state.by_path.remove(&oldest).map(|(file, _)| file));
        }
        closed
    }

    /// Forgets all files below `dir`, which is being renamed or removed, or one file.
    pub(crate) fn forget(&self, path: &Path) {
        let state = &mut *self.state.borrow_mut();
        // Paths are ordered by component, so what lies below `path` stands right behind it.
        let from = (Bound::Included(path), Bound::Unbounded);
        let below = state.by_path.range::<Path, _>(from).map(|(known, _)| known);
        let gone: Vec<_> = below.take_while(|known| known.starts_with(path)).cloned().collect();
        for path in gone {
            if let Some((_, used)) = state.by_path.remove(&path) {
                state.by_use.remove(&used);
            }
        }
    }

    /// Closes all files.
    pub(crate) async fn close(&self) -> Result<(), StorageError> {
        let state = self.state.take();
        for (path, (file, _)) in state.by_path {
            file.close().await.map_err(StorageError::during("close", &path))?;
        }
        Ok(())
    }
}

/// Names of a log's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Record batches.
    Log,
    /// Offset index.
    Index,
    /// Time index.
    TimeIndex,
    /// Raft index.
    RaftIndex,
    /// Producer snapshot.
    Producers,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Self; 5] =
        [Self::Log, Self::Index, Self::TimeIndex, Self::RaftIndex, Self::Producers];

    fn extension(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Index => "index",
            Self::TimeIndex => "timeindex",
            Self::RaftIndex => "rix",
            Self::Producers => "producers",
        }
    }

    /// Path of the file that starts at `offset`.
    pub(crate) fn path(self, dir: &Path, offset: i64) -> PathBuf {
        dir.join(format!("{offset:020}.{}", self.extension()))
    }

    /// Kind and offset of a file's name.
    pub(crate) fn of_name(name: &str) -> Option<(Self, i64)> {
        let (digits, extension) = name.split_once('.')?;
        let kind = Self::ALL.into_iter().find(|kind| kind.extension() == extension)?;
        (digits.len() == 20).then_some(())?;
        Some((kind, digits.parse().ok().filter(|offset| *offset >= 0)?))
    }
}
