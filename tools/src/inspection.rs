//! Checking a data directory, offline: of the segments every batch's CRC, that offsets rise without gaps, that names fit; of
//! each shard the checkpoint and the journal.
//!
//! Does not own: what a start makes of checkpoint and journal (`storage::inspect`), what a shard's part looks like (`shards`).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::output::{Report, table};
use crate::segment_file::Segment;
use crate::shards::Shard;

/// What a directory holds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Inspection {
    pub(crate) directory: String,
    /// Lines of `meta.properties`.
    pub(crate) identity: BTreeMap<String, String>,
    pub(crate) shards: Vec<Shard>,
    pub(crate) partitions: Vec<Partition>,
    /// What a power cut left and the next start mends without loss, one sentence each.
    pub(crate) harmless: Vec<String>,
    /// What is damaged, one sentence each.
    pub(crate) damage: Vec<String>,
}

/// One partition's segments.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Partition {
    /// Directory below the inspected one.
    pub(crate) directory: String,
    /// Topic id (KIP-516).
    pub(crate) topic_id: Option<String>,
    pub(crate) segments: u64,
    pub(crate) batches: u64,
    pub(crate) records: u64,
    pub(crate) size_bytes: u64,
    pub(crate) start_offset: Option<i64>,
    /// Behind the last record of the segments.
    pub(crate) end_offset: Option<i64>,
    /// Offsets that no batch holds: compaction makes them, and nothing else may.
    pub(crate) missing_offsets: i64,
}

impl Report for Inspection {
    fn text(&self) -> String {
        let mut parts = vec![self.directory.clone()];
        parts.extend(self.identity.iter().map(|(key, value)| format!("  {key} = {value}")));
        parts.extend(self.shards.iter().map(Shard::text));
        let offset = |offset: Option<i64>| offset.map_or_else(|| "-".to_owned(), |o| o.to_string());
        let row = |p: &Partition| {
            let counts = [p.segments, p.batches, p.records, p.size_bytes].map(|n| n.to_string());
            let name = std::iter::once(p.directory.clone());
            name.chain(counts).chain([offset(p.start_offset), offset(p.end_offset)]).collect()
        };
        let rows: Vec<Vec<String>> = self.partitions.iter().map(row).collect();
        parts.push(table(&["PARTITION", "SEGMENTS", "BATCHES", "RECORDS", "BYTES", "START", "END"], &rows));
        for p in self.partitions.iter().filter(|p| p.missing_offsets > 0) {
            parts.push(format!(
                "note: {} lacks {} offsets, as compaction leaves it",
                p.directory, p.missing_offsets
            ));
        }
        parts.extend(self.harmless.iter().map(|what| format!("note: {what}")));
        parts.push(match self.damage.len() {
            0 => "no damage: every batch is whole, and offsets rise".to_owned(),
            count => format!("{count} damaged places"),
        });
        if self.shards.iter().any(Shard::replays) {
            parts
                .push("What is in the journal alone is not counted; the next start puts it back.".to_owned());
        }
        parts.join("\n")
    }
}

/// Inspects a data directory, one shard's directory, or a partition's.
pub(crate) fn inspect(directory: &Path) -> io::Result<Inspection> {
    let mut inspection = Inspection { directory: directory.display().to_string(), ..Inspection::default() };
    inspection.identity = properties(&directory.join("meta.properties"))?;
    let mut shards = Vec::new();
    find_shards(directory, &mut shards)?;
    for path in shards {
        let name = name_below(directory, &path);
        let (shard, findings) = Shard::inspect(&path, name)?;
        inspection.shards.push(shard);
        for finding in findings {
            let what =
                format!("{}: at position {}: {}", finding.path.display(), finding.position, finding.what);
            if finding.damage { &mut inspection.damage } else { &mut inspection.harmless }.push(what);
        }
    }
    let mut partitions = Vec::new();
    find_partitions(directory, &mut partitions)?;
    for path in partitions {
        let name = name_below(directory, &path);
        let partition = inspect_partition(&path, name, &mut inspection.damage)?;
        inspection.partitions.push(partition);
    }
    Ok(inspection)
}

/// A directory as it is named below the inspected one.
fn name_below(directory: &Path, path: &Path) -> String {
    let name = path.strip_prefix(directory).unwrap_or(path).display().to_string();
    if name.is_empty() { ".".to_owned() } else { name }
}

/// The directory itself, or those in it, as far as they are shards'; sorted.
fn find_shards(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if storage::inspect::is_shard(directory) {
        found.push(directory.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(directory)?.map(|entry| entry.map(|e| e.path()));
    let entries = entries.collect::<io::Result<Vec<_>>>()?;
    found.extend(entries.into_iter().filter(|path| storage::inspect::is_shard(path)));
    found.sort();
    Ok(())
}

/// `key=value` or `key: value` lines of a file that may not be there.
fn properties(path: &Path) -> io::Result<BTreeMap<String, String>> {
    match fs::read_to_string(path) {
        Ok(text) => {
            let pairs = text.lines().filter_map(|line| line.split_once(['=', ':']));
            Ok(pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

/// Directories that hold a log, sorted.
fn find_partitions(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| entry.map(|e| e.path())).collect::<io::Result<_>>()?;
    entries.sort();
    if entries.iter().any(|path| path.ends_with("partition.metadata")) {
        found.push(directory.to_owned());
        return Ok(());
    }
    for path in entries.iter().filter(|path| path.is_dir()) {
        find_partitions(path, found)?;
    }
    Ok(())
}

fn inspect_partition(path: &Path, directory: String, damage: &mut Vec<String>) -> io::Result<Partition> {
    let topic_id = properties(&path.join("partition.metadata"))?.remove("topic_id");
    let mut partition = Partition { directory, topic_id, ..Partition::default() };
    let mut segments: Vec<PathBuf> =
        fs::read_dir(path)?.map(|entry| entry.map(|e| e.path())).collect::<io::Result<_>>()?;
    segments.retain(|file| file.extension().is_some_and(|e| e == "log"));
    segments.sort();
    for file in segments {
        inspect_segment(&file, &mut partition, damage)?;
    }
    Ok(partition)
}

fn inspect_segment(file: &Path, partition: &mut Partition, damage: &mut Vec<String>) -> io::Result<()> {
    partition.segments += 1;
    let mut named = file.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<i64>().ok());
    if named.is_none() {
        damage.push(format!("{}: the name is no offset", file.display()));
    }
    for found in Segment::open(file)? {
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                damage.push(format!("{}: {error}", file.display()));
                break;
            }
        };
        let mut wrong =
            |what: String| damage.push(format!("{}: at position {}: {what}", file.display(), found.position));
        if !found.crc_is_right {
            wrong("the CRC is wrong".to_owned());
        }
        let base = found.header.base_offset;
        if let Some(named) = named.take().filter(|named| *named > base) {
            wrong(format!("offset {base} stands in a segment that is named {named}"));
        }
        match partition.end_offset {
            Some(end) if base < end => wrong(format!("offset {base} stands behind offset {}", end - 1)),
            Some(end) => partition.missing_offsets += base - end,
            None => partition.start_offset = Some(base),
        }
        partition.end_offset = partition.end_offset.max(Some(found.header.next_offset()));
        partition.batches += 1;
        partition.records += u64::try_from(found.header.record_count).unwrap_or(0);
        partition.size_bytes += found.bytes.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment_file::tests::batch;

    fn partition(segments: &[(&str, Vec<u8>)]) -> Inspection {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shard-0/partitions/t-0");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("partition.metadata"), "version: 0\ntopic_id: abc\n").unwrap();
        for (name, bytes) in segments {
            fs::write(path.join(format!("{name:0>20}.log")), bytes).unwrap();
        }
        inspect(dir.path()).unwrap()
    }

    #[test]
    fn whole_segments_are_counted() {
        let found = partition(&[("0", [batch(0), batch(1)].concat()), ("2", batch(2))]);
        assert_eq!(found.damage, Vec::<String>::new());
        let p = &found.partitions[0];
        assert_eq!((p.segments, p.batches, p.records), (2, 3, 3));
        assert_eq!((p.start_offset, p.end_offset, p.missing_offsets), (Some(0), Some(3), 0));
        assert_eq!(p.topic_id.as_deref(), Some("abc"));
        assert_eq!(p.directory, "shard-0/partitions/t-0");
    }

    #[test]
    fn every_kind_of_damage_is_told() {
        let mut broken = batch(0);
        *broken.last_mut().unwrap() ^= 1;
        for (segments, wanted) in [
            (vec![("0", broken)], "the CRC is wrong"),
            (vec![("0", [batch(1), batch(0)].concat())], "offset 0 stands behind offset 1"),
            (vec![("5", batch(0))], "in a segment that is named 5"),
            (vec![("x", batch(0))], "the name is no offset"),
            (vec![("0", batch(0)[..70].to_vec())], "are left"),
        ] {
            let found = partition(&segments);
            assert!(found.damage.iter().any(|d| d.contains(wanted)), "{wanted}: {:?}", found.damage);
        }
        let gap = partition(&[("0", [batch(0), batch(7)].concat())]);
        assert_eq!((gap.damage.len(), gap.partitions[0].missing_offsets), (0, 6));
    }
}
