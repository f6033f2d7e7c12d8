//! Reading the journal back at start: finds the valid blocks of all files, orders them, and says where writing goes on.
//! Does not own: replaying entries into logs (`recovery`).
//!
//! Invariant: nothing durable is left out silently; damage refuses the start unless the operator asked for `repair`.

use std::collections::BTreeSet;
use std::rc::Rc;

use bytes::Bytes;

use crate::config::StorageConfig;
use crate::error::StorageError;
use crate::failure::Failure;
use crate::journal::block::{self, BLOCK_BYTES, BlockHeader, Found, HEADER_BYTES, JournalIdentity};
use crate::journal::entry::Entry;
use crate::journal::files::{Files, JournalFile, UsedFile};
use crate::journal::order::{self, Known, Order};
use crate::journal::writer::{Journal, Position};
use crate::sabotage::{self, Sabotage};

/// Bytes read at once while looking for blocks.
const READ_BYTES: usize = 4 << 20;

/// An opened journal and what is to be replayed from it.
pub(crate) struct Opened {
    pub(crate) journal: Rc<Journal>,
    /// Blocks to replay, in order.
    pub(crate) replay: Vec<BlockHeader>,
    /// Files by slot, to read these blocks from.
    pub(crate) files: Vec<JournalFile>,
    /// Damage that `repair` gave up, in words.
    pub(crate) given_up: Vec<String>,
}

/// Everything that was found in the files.
#[derive(Default)]
struct Scan {
    found: Vec<BlockHeader>,
    misplaced: Vec<u64>,
}

/// Opens the journal of a shard. `next_entry` is the first entry number when no block tells a higher one.
pub(crate) async fn open(
    config: &StorageConfig,
    identity: JournalIdentity,
    known: Known,
    closed_at: Option<(u16, u64)>,
    next_entry: u64,
    failure: Rc<Failure>,
) -> Result<Opened, StorageError> {
    let (files, mut all) = Files::open(config).await?;
    let (mut order, holding_blocks) = match closed_at {
        Some(end) => (closed_order(&all, known, end, next_entry), BTreeSet::from([end.0])),
        None => search(&identity, &all, known).await?,
    };
    let given_up = judge(config, &files, &mut order)?;
    files.mend(&mut all, &holding_blocks).await?;
    let next_entry =
        order.replay.last().or(order.last.as_ref()).map_or(next_entry, |b| b.next_entry().max(next_entry));
    let (file, position, first_block) = place(&files, &all, &order).await?;
    let position = Position { file, first_block, position, next_block: order.last_sequence + 1, next_entry };
    let journal = Journal::new(identity, files, failure, config.gather_bytes_max, position);
    Ok(Opened { journal: Rc::new(journal), replay: order.replay, files: all, given_up })
}

impl Opened {
    /// Makes sure that the last block is durable, if it is needed.
    pub(crate) async fn repeat_last(&self) -> Result<(), StorageError> {
        let Some(last) = self.replay.last() else { return Ok(()) };
        match self.journal.repeat(last, self.read_block(last).await?).await {
            Err(error) if error.is_no_space() => {
                tracing::warn!(%error, "the disk is full: the last journal block is not written again");
                Ok(())
            }
            other => other,
        }
    }

    /// The entries of a block that the scan found valid.
    pub(crate) async fn read_block(&self, header: &BlockHeader) -> Result<Vec<Entry>, StorageError> {
        let file = self
            .files
            .iter()
            .find(|file| file.slot == header.slot)
            .expect("the block was found in this file");
        let path = file.file.path();
        let position = header.position;
        let len = usize::try_from(header.block_bytes()).expect("journal files are smaller than memory");
        let bytes = file.file.read_at(position, len).await.map_err(StorageError::during("read", path))?;
        let still_valid =
            matches!(block::find(&self.journal.identity(), file.slot, position, &bytes), Found::Block(_));
        if !still_valid {
            return Err(StorageError::corrupt(
                path,
                position,
                "a journal block changed while it was being replayed",
            ));
        }
        let payload = HEADER_BYTES..HEADER_BYTES + header.payload_bytes as usize;
        let mut payload: Bytes = bytes.slice(payload);
        let mut entries = Vec::new();
        for _ in 0..header.entry_count {
            let entry = Entry::decode(&mut payload)
                .map_err(|error| StorageError::corrupt(path, position, format!("journal entry: {error}")))?;
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// Finds the blocks of all files and orders them; the slots of the files that hold any.
async fn search(
    identity: &JournalIdentity,
    all: &[JournalFile],
    known: Known,
) -> Result<(Order, BTreeSet<u16>), StorageError> {
    let mut scan = Scan::default();
    for file in all {
        scan_file(identity, file, &mut scan).await?;
    }
    let mut order = order::order(scan.found.clone(), &scan.misplaced, known);
    if sabotage::is(Sabotage::AcceptStaleBlock) {
        accept_stale(&mut order, &scan.found);
    }
    let holding_blocks = scan.found.iter().map(|block| block.slot).collect();
    Ok((order, holding_blocks))
}

/// The journal as it was closed: nothing in it is needed, and writing goes on where it ended.
fn closed_order(all: &[JournalFile], known: Known, (slot, end): (u16, u64), next_entry: u64) -> Order {
    let there = all.iter().any(|file| file.slot == slot && file.bytes >= end);
    let last = end.checked_sub(BLOCK_BYTES as u64).filter(|_| there).map(|position| BlockHeader {
        sequence: known.durable_block,
        first_entry: next_entry,
        entry_count: 0,
        payload_bytes: 0,
        position,
        slot,
        repeats: 0,
    });
    Order { last, last_sequence: known.durable_block, ..Order::default() }
}

/// Looks at every block boundary of a file.
async fn scan_file(
    identity: &JournalIdentity,
    file: &JournalFile,
    scan: &mut Scan,
) -> Result<(), StorageError> {
    let path = file.file.path();
    let read = async |position: u64, wanted: usize| {
        let len = usize::try_from(file.bytes - position).unwrap_or(usize::MAX).min(wanted);
        file.file.read_at(position, len).await.map_err(StorageError::during("read", path))
    };
    let (mut chunk, mut chunk_at, mut position) = (Bytes::new(), 0, 0);
    while position < file.bytes {
        let mut rest =
            chunk.slice(usize::try_from(position - chunk_at).unwrap_or(usize::MAX).min(chunk.len())..);
        if rest.len() < BLOCK_BYTES {
            (chunk, chunk_at) = (read(position, READ_BYTES).await?, position);
            rest = chunk.clone();
            runtime::task::yield_if_needed().await;
        }
        let mut found = block::find(identity, file.slot, position, &rest);
        if let Found::Longer(bytes) = found
            && position + bytes <= file.bytes
        {
            let whole = read(position, usize::try_from(bytes).unwrap_or(usize::MAX)).await?;
            found = block::find(identity, file.slot, position, &whole);
        }
        position += match found {
            Found::Block(header) => {
                scan.found.push(header);
                header.block_bytes()
            }
            Found::Misplaced(header) => {
                scan.misplaced.push(header.sequence);
                BLOCK_BYTES as u64
            }
            Found::Newer(found) => {
                return Err(StorageError::UnsupportedVersion {
                    path: path.to_owned(),
                    found,
                    known: block::VERSION,
                });
            }
            Found::Longer(_) | Found::Nothing => BLOCK_BYTES as u64,
        };
    }
    Ok(())
}

/// Refuses the start when something durable is missing, or gives it up where the operator asked for that.
fn judge(config: &StorageConfig, files: &Files, order: &mut Order) -> Result<Vec<String>, StorageError> {
    let Some(first) = order.damage.first().copied() else { return Ok(Vec::new()) };
    if sabotage::is(Sabotage::CutOffCorruptMiddle) {
        order.replay.retain(|block| block.sequence < first.first);
        order.last = order.replay.last().copied();
        return Ok(Vec::new());
    }
    if config.repair {
        return Ok(order.damage.iter().map(|damage| order::describe(damage, order.last_sequence)).collect());
    }
    let (path, position) = first.place(files.dir());
    Err(StorageError::corrupt(&path, position, order::describe(&first, order.last_sequence)))
}

/// Sorts the files into used and free, and says in which file, where and since which block writing goes on.
async fn place(
    files: &Files,
    all: &[JournalFile],
    order: &Order,
) -> Result<(JournalFile, u64, u64), StorageError> {
    let current = order.last.map(|last| last.slot);
    let mut used = Vec::new();
    let mut first_block = order.last.map_or(order.last_sequence + 1, |last| last.sequence);
    for file in all {
        let blocks = || order.replay.iter().filter(|block| block.slot == file.slot);
        let first = blocks().map(|block| block.sequence).min();
        if Some(file.slot) == current {
            first_block = first.map_or(first_block, |first| first.min(first_block));
            continue;
        }
        match (first, blocks().next_back()) {
            (Some(first_block), Some(last)) => used.push(UsedFile {
                file: file.clone(),
                first_block,
                last_block: last.sequence,
                next_entry: last.next_entry(),
            }),
            _ => files.push_free(file.clone()),
        }
    }
    used.sort_by_key(|file| file.first_block);
    used.into_iter().for_each(|file| files.push_full(file));
    if let Some(last) = order.last {
        let file = all.iter().find(|file| file.slot == last.slot).expect("the block was found in this file");
        return Ok((file.clone(), last.position + last.block_bytes(), first_block));
    }
    let file = match files.try_take(0) {
        Some(file) => file,
        None => files.make_first().await?,
    };
    Ok((file, 0, first_block))
}

/// The planted bug of [`Sabotage::AcceptStaleBlock`]: whatever valid block follows in the file is taken for the next one.
fn accept_stale(order: &mut Order, found: &[BlockHeader]) {
    while let Some(last) = order.last
        && let Some(stale) =
            found.iter().find(|b| b.slot == last.slot && b.position == last.position + last.block_bytes())
    {
        let next = BlockHeader { sequence: last.sequence + 1, first_entry: last.next_entry(), ..*stale };
        order.replay.push(next);
        order.last = Some(next);
        order.last_sequence = next.sequence;
    }
}
