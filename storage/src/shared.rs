//! What all logs of a shard share: journal, cache accounting, disk space, open files, and the one maintenance permit.
//! Does not own: the logs (so that no cycle of references keeps a crashed storage in memory).

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use runtime::sync::{Event, Permits};

use crate::cache::Cache;
use crate::config::StorageConfig;
use crate::failure::Failure;
use crate::journal::Journal;
use crate::open_files::OpenFiles;
use crate::segment::index_files::LoadedIndexes;
use crate::space::Space;

/// Shared by the storage, its logs and its background tasks.
pub(crate) struct Shared {
    pub(crate) config: StorageConfig,
    pub(crate) journal: Rc<Journal>,
    pub(crate) failure: Rc<Failure>,
    pub(crate) cache: Cache,
    pub(crate) space: Space,
    pub(crate) files: OpenFiles,
    pub(crate) indexes: LoadedIndexes,
    /// Held by whoever changes segment files: one at a time.
    pub(crate) maintenance: Permits,
    /// The background has something to do.
    pub(crate) urge: Event,
    /// Room came back: dirty batches were written, or disk space returned.
    pub(crate) relief: Event,
    /// Files to remove once a checkpoint that does not name them is durable.
    pub(crate) doomed: RefCell<Vec<PathBuf>>,
    /// Directories of logs were made since the directory of all logs was flushed.
    pub(crate) partitions_made: Cell<bool>,
    /// The journal is being replayed, and takes no entries yet.
    pub(crate) recovering: Cell<bool>,
    /// Appends are refused: the storage is being closed.
    pub(crate) refusing: Cell<bool>,
    /// Background work ends.
    pub(crate) closing: Cell<bool>,
}

impl Shared {
    pub(crate) fn new(config: StorageConfig, journal: Rc<Journal>, failure: Rc<Failure>) -> Self {
        Self {
            journal,
            failure,
            cache: Cache::new(config.cache_bytes),
            space: Space::new(config.reserve_bytes),
            files: OpenFiles::new(config.open_files_max),
            indexes: LoadedIndexes::default(),
            maintenance: Permits::new(1),
            urge: Event::new(),
            relief: Event::new(),
            doomed: RefCell::default(),
            partitions_made: Cell::new(false),
            recovering: Cell::new(true),
            refusing: Cell::new(false),
            closing: Cell::new(false),
            config,
        }
    }

    /// A file that was to go is made anew.
    pub(crate) fn spare(&self, path: &Path) {
        self.doomed.borrow_mut().retain(|doomed| doomed != path);
    }

    /// Directory of all logs.
    pub(crate) fn partitions_dir(&self) -> PathBuf {
        self.config.dir.join(PARTITIONS)
    }
}

/// Directory of the logs inside the shard's.
pub(crate) const PARTITIONS: &str = "partitions";
