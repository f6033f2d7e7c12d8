//! Producer snapshot files (docs/storage-format.md, section 5). Derived: made again from the log when damaged.
//! Does not own: flushing them, which the checkpoint's flush of the log does.

use std::path::Path;

use runtime::disk::{self, AlignedBuf, BLOCK_BYTES, File, OpenMode};

use crate::envelope;
use crate::error::StorageError;
use crate::producer::{KnownBatch, Producers};

/// In front of every snapshot.
pub(crate) const MAGIC: [u8; 4] = *b"MPRD";

/// What a snapshot holds.
pub(crate) type Snapshot = Vec<(i64, Vec<KnownBatch>)>;

/// Writes a snapshot in one direct write.
pub(crate) async fn write(path: &Path, producers: Snapshot) -> Result<(), StorageError> {
    let io = |action| StorageError::during(action, path);
    let bytes = envelope::seal(MAGIC, &producers);
    let mut buf = AlignedBuf::zeroed(bytes.len().next_multiple_of(BLOCK_BYTES));
    buf[..bytes.len()].copy_from_slice(&bytes);
    let file = File::open(path, OpenMode::Create).await.map_err(io("create"))?;
    let written = file.write_at(0, buf).await;
    file.close().await.map_err(io("close"))?;
    written.map_err(io("write"))
}

/// Reads a snapshot; `None` when it is missing or damaged.
pub(crate) async fn read(path: &Path) -> Option<Producers> {
    let bytes = disk::read_file(path).await.ok()?;
    match envelope::open::<Snapshot>(MAGIC, &bytes) {
        Ok(producers) => Some(Producers::from_snapshot(producers)),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "producer snapshot is made again from the log");
            None
        }
    }
}
