//! Files and directories.

use std::io::ErrorKind;
use std::path::PathBuf;

use runtime::disk::{self, AlignedBuf, BLOCK_BYTES, File, OpenMode};

crate::in_both_worlds!(
    what_is_written_is_read,
    reads_end_at_the_end,
    large_files_are_read_whole,
    open_modes_are_kept,
    lengths_change,
    allocation_reads_zero,
    handles_share_a_file,
    directories_list_and_vanish,
    renames_replace,
    small_files_are_replaced_whole,
    dsync_files_write,
    a_locked_directory_refuses_a_second_lock,
    opening_and_removing_at_once_does_no_harm,
);

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Whole blocks, each byte telling its own position.
fn pattern(position: u64, len: usize) -> AlignedBuf {
    let mut buf = AlignedBuf::zeroed(len);
    for (index, byte) in buf.iter_mut().enumerate() {
        *byte = pattern_at(position + index as u64);
    }
    buf
}

fn pattern_at(position: u64) -> u8 {
    ((position.wrapping_mul(0x9E37_79B9_7F4A_7C15)) >> 56) as u8
}

fn assert_pattern(bytes: &[u8], position: u64) {
    for (index, byte) in bytes.iter().enumerate() {
        assert_eq!(*byte, pattern_at(position + index as u64), "byte {index} from {position}");
    }
}

async fn what_is_written_is_read(dir: PathBuf) {
    let path = dir.join("file");
    let file = File::open(&path, OpenMode::CreateNew).await.unwrap();
    file.write_at(BLOCK, pattern(BLOCK, 3 * BLOCK_BYTES)).await.unwrap();
    file.write_at(0, pattern(0, BLOCK_BYTES)).await.unwrap();
    file.sync_data().await.unwrap();
    assert_eq!(file.len().await.unwrap(), 4 * BLOCK);
    for (position, len) in [(0, 4 * BLOCK_BYTES), (1, 1), (4095, 2), (5000, 7000), (8192, 4096)] {
        let bytes = file.read_at(position, len).await.unwrap();
        assert_eq!(bytes.len(), len);
        assert_pattern(&bytes, position);
    }
    assert_eq!(file.path(), path);
    file.close().await.unwrap();
    disk::sync_dir(&dir).await.unwrap();
}

async fn reads_end_at_the_end(dir: PathBuf) {
    let file = File::open(&dir.join("file"), OpenMode::Create).await.unwrap();
    assert!(file.read_at(0, 100).await.unwrap().is_empty());
    file.write_at(0, pattern(0, 2 * BLOCK_BYTES)).await.unwrap();
    file.set_len(5000).await.unwrap();
    for (position, len, expected) in
        [(4500, 1000, 500), (4999, 10, 1), (5000, 10, 0), (90_000, 10, 0), (10, 0, 0)]
    {
        let bytes = file.read_at(position, len).await.unwrap();
        assert_eq!(bytes.len(), expected, "{len} bytes at {position}");
        assert_pattern(&bytes, position);
    }
    file.set_len(2 * BLOCK).await.unwrap();
    let bytes = file.read_at(0, 1 << 20).await.unwrap();
    assert_eq!(bytes.len(), 2 * BLOCK_BYTES);
    assert!(bytes[5000..].iter().all(|byte| *byte == 0), "bytes cut off do not come back");
}

async fn large_files_are_read_whole(dir: PathBuf) {
    let file = File::open(&dir.join("file"), OpenMode::Create).await.unwrap();
    let chunk = 256 * BLOCK_BYTES;
    for index in 0..3 {
        let position = index * chunk as u64;
        file.write_at(position, pattern(position, chunk)).await.unwrap();
    }
    let bytes = file.read_at(777, 3 * chunk).await.unwrap();
    assert_eq!(bytes.len(), 3 * chunk - 777);
    assert_pattern(&bytes, 777);
    let bytes = file.read_at(777, 2 * chunk).await.unwrap();
    assert_eq!(bytes.len(), 2 * chunk);
    assert_pattern(&bytes, 777);
}

async fn open_modes_are_kept(dir: PathBuf) {
    let path = dir.join("file");
    for mode in [OpenMode::Read, OpenMode::Write] {
        assert_eq!(File::open(&path, mode).await.err().unwrap().kind(), ErrorKind::NotFound);
    }
    let file = File::open(&path, OpenMode::CreateNew).await.unwrap();
    file.write_at(0, pattern(0, BLOCK_BYTES)).await.unwrap();
    file.close().await.unwrap();
    let again = File::open(&path, OpenMode::CreateNew).await;
    assert_eq!(again.err().unwrap().kind(), ErrorKind::AlreadyExists);
    for mode in [OpenMode::Create, OpenMode::Write, OpenMode::Read] {
        let file = File::open(&path, mode).await.unwrap();
        assert_pattern(&file.read_at(0, BLOCK_BYTES).await.unwrap(), 0);
        let written = file.write_at(0, pattern(0, BLOCK_BYTES)).await;
        assert_eq!(written.is_err(), mode == OpenMode::Read);
        file.close().await.unwrap();
    }
    let missing = File::open(&dir.join("no/such/file"), OpenMode::Create).await;
    assert_eq!(missing.err().unwrap().kind(), ErrorKind::NotFound);
}

async fn lengths_change(dir: PathBuf) {
    let file = File::open(&dir.join("file"), OpenMode::Create).await.unwrap();
    file.set_len(10_000).await.unwrap();
    assert_eq!(file.len().await.unwrap(), 10_000);
    assert_eq!(file.read_at(0, 20_000).await.unwrap(), vec![0; 10_000]);
    file.set_len(0).await.unwrap();
    assert!(file.is_empty().await.unwrap());
}

async fn allocation_reads_zero(dir: PathBuf) {
    let file = File::open(&dir.join("file"), OpenMode::Create).await.unwrap();
    let len = 300 * BLOCK;
    file.allocate_zeroed(len).await.unwrap();
    assert_eq!(file.len().await.unwrap(), len);
    let bytes = file.read_at(0, len as usize).await.unwrap();
    assert!(bytes.len() as u64 == len && bytes.iter().all(|byte| *byte == 0));
}

async fn handles_share_a_file(dir: PathBuf) {
    let path = dir.join("file");
    let file = File::open(&path, OpenMode::Create).await.unwrap();
    let clone = file.clone();
    let other = File::open(&path, OpenMode::Read).await.unwrap();
    file.write_at(0, pattern(0, BLOCK_BYTES)).await.unwrap();
    file.close().await.unwrap();
    assert_pattern(&clone.read_at(0, BLOCK_BYTES).await.unwrap(), 0);
    assert_pattern(&other.read_at(0, BLOCK_BYTES).await.unwrap(), 0);
    disk::remove_file(&path).await.unwrap();
    assert_pattern(&other.read_at(0, BLOCK_BYTES).await.unwrap(), 0);
    assert!(!disk::exists(&path).await);
}

async fn directories_list_and_vanish(dir: PathBuf) {
    let deep = dir.join("a/b/c");
    disk::create_dir_all(&deep).await.unwrap();
    disk::create_dir_all(&deep).await.unwrap();
    for name in ["zeta", "alpha"] {
        let file = File::open(&dir.join("a").join(name), OpenMode::Create).await.unwrap();
        file.write_at(0, AlignedBuf::zeroed(BLOCK_BYTES)).await.unwrap();
        file.close().await.unwrap();
    }
    let entries = disk::read_dir(&dir.join("a")).await.unwrap();
    let entries: Vec<_> = entries.iter().map(|entry| (&*entry.name, entry.is_dir, entry.len)).collect();
    assert_eq!(entries, [("alpha", false, BLOCK), ("b", true, 0), ("zeta", false, BLOCK)]);
    assert!(disk::exists(&deep).await && disk::exists(&dir.join("a/zeta")).await);
    disk::remove_file(&dir.join("a/alpha")).await.unwrap();
    let missing = disk::remove_file(&dir.join("a/alpha")).await;
    assert_eq!(missing.err().unwrap().kind(), ErrorKind::NotFound);
    disk::remove_dir_all(&dir.join("a")).await.unwrap();
    assert!(!disk::exists(&deep).await);
    assert_eq!(disk::read_dir(&dir.join("a")).await.err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(disk::remove_dir_all(&dir.join("a")).await.err().unwrap().kind(), ErrorKind::NotFound);
    assert!(disk::free_space(&dir).await.unwrap() > 0);
}

async fn renames_replace(dir: PathBuf) {
    let (old, new) = (dir.join("old"), dir.join("new"));
    for (path, position) in [(&old, 0), (&new, BLOCK)] {
        let file = File::open(path, OpenMode::Create).await.unwrap();
        file.write_at(0, pattern(position, BLOCK_BYTES)).await.unwrap();
        file.close().await.unwrap();
    }
    disk::rename(&old, &new).await.unwrap();
    assert!(!disk::exists(&old).await);
    assert_pattern(&disk::read_file(&new).await.unwrap(), 0);
    assert_eq!(disk::rename(&old, &new).await.err().unwrap().kind(), ErrorKind::NotFound);
    disk::create_dir_all(&dir.join("d")).await.unwrap();
    disk::rename(&new, &dir.join("d/moved")).await.unwrap();
    disk::rename(&dir.join("d"), &dir.join("e")).await.unwrap();
    assert_pattern(&disk::read_file(&dir.join("e/moved")).await.unwrap(), 0);
}

async fn small_files_are_replaced_whole(dir: PathBuf) {
    let path = dir.join("meta");
    assert_eq!(disk::read_file(&path).await.err().unwrap().kind(), ErrorKind::NotFound);
    for bytes in [&b"first"[..], &[9; 5000], b"", b"last"] {
        disk::write_file_atomic(&path, bytes).await.unwrap();
        assert_eq!(disk::read_file(&path).await.unwrap(), bytes);
    }
    assert_eq!(disk::read_dir(&dir).await.unwrap().len(), 1, "no temporary file stays");
}

async fn dsync_files_write(dir: PathBuf) {
    let file = File::open_dsync(&dir.join("file"), OpenMode::Create).await.unwrap();
    file.write_at(0, pattern(0, BLOCK_BYTES)).await.unwrap();
    assert_pattern(&file.read_at(0, BLOCK_BYTES).await.unwrap(), 0);
}

async fn a_locked_directory_refuses_a_second_lock(dir: PathBuf) {
    let lock = disk::lock_dir(&dir).unwrap();
    assert!(matches!(disk::lock_dir(&dir), Err(disk::LockError::InUse(path)) if path == dir));
    drop(lock);
    disk::lock_dir(&dir).unwrap();
}

async fn opening_and_removing_at_once_does_no_harm(dir: PathBuf) {
    for _ in 0..20 {
        let path = dir.join("file");
        File::open(&path, OpenMode::Create).await.unwrap().close().await.unwrap();
        let target = path.clone();
        let opening = runtime::task::spawn(async move { File::open(&target, OpenMode::Read).await.is_ok() });
        disk::remove_file(&path).await.unwrap();
        opening.await.unwrap();
    }
}
