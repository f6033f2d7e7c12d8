//! Files and directories of the current world. Every file is `O_DIRECT` in the real world; alignment is handled here.
//!
//! Durability is explicit: bytes by [`File::sync_data`] (or a file opened with [`File::open_dsync`]), names by [`sync_dir`].

mod buf;
mod dir;
mod file;
mod lock;

pub use buf::{AlignedBuf, BLOCK_BYTES};
pub use dir::{
    DirEntry, create_dir_all, exists, free_space, read_dir, read_file, remove_dir_all, remove_file, rename,
    sync_dir, write_file_atomic,
};
pub use file::{File, OpenMode};
pub use lock::{DirLock, LockError, lock_dir};
