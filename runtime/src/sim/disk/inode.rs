//! One file: the bytes that programs see, the bytes that are durable, and the changes between.

use super::blocks::{BLOCK, Block, Blocks, block_of, bytes_of};
use crate::disk::BLOCK_BYTES;
use crate::sim::random::Stream;
use bytes::Bytes;

/// The smallest unit that a device may write by itself.
const SECTOR_BYTES: usize = 512;

/// A file without a name.
pub(crate) struct Inode {
    number: u64,
    seen: Blocks,
    durable: Blocks,
    pending: Vec<Pending>,
    changes_made: u64,
}

struct Pending {
    id: u64,
    change: Change,
    /// The request has returned; only then does a sync that starts later cover it.
    returned: bool,
}

enum Change {
    Write { first: u64, blocks: Vec<Block> },
    SetLen(u64),
}

/// Which changes a sync covers.
pub(crate) struct Covered(Vec<u64>);

/// What a power cut did to a file's pending changes.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    kept: u64,
    lost: u64,
    torn: u64,
    garbled: u64,
}

impl Fates {
    pub(crate) fn any(&self) -> bool {
        self.numbers() != [0; 4]
    }

    pub(crate) fn numbers(&self) -> [u64; 4] {
        [self.kept, self.lost, self.torn, self.garbled]
    }
}

impl Inode {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            seen: Blocks::default(),
            durable: Blocks::default(),
            pending: Vec::new(),
            changes_made: 0,
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn len(&self) -> u64 {
        self.seen.len()
    }

    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.seen.len().next_multiple_of(BLOCK)
    }

    pub(crate) fn read(&self, position: u64, len: usize) -> Bytes {
        self.seen.read(position, len)
    }

    /// Begins a write of whole blocks from block `first` and returns its number for [`Inode::finish`].
    ///
    /// # Panics
    /// When another write to one of the blocks has not returned: the order of the two would be the device's choice.
    pub(crate) fn begin_write(&mut self, first: u64, blocks: Vec<Block>) -> u64 {
        let end = first + blocks.len() as u64;
        for pending in self.pending.iter().filter(|pending| !pending.returned) {
            if let Change::Write { first: other, blocks } = &pending.change {
                let apart = end <= *other || other + blocks.len() as u64 <= first;
                assert!(apart, "two writes of the same block are in flight at once");
            }
        }
        for (index, block) in (first..).zip(&blocks) {
            self.seen.put(index, block.clone());
        }
        self.begin(Change::Write { first, blocks })
    }

    /// Begins a change of the length.
    pub(crate) fn begin_set_len(&mut self, len: u64) -> u64 {
        self.seen.set_len(len);
        self.begin(Change::SetLen(len))
    }

    fn begin(&mut self, change: Change) -> u64 {
        let id = self.changes_made;
        self.changes_made += 1;
        self.pending.push(Pending { id, change, returned: false });
        id
    }

    /// The request of change `id` has returned.
    pub(crate) fn finish(&mut self, id: u64) {
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.id == id) {
            pending.returned = true;
        }
    }

    /// What a sync that starts now covers.
    pub(crate) fn covered(&self) -> Covered {
        Covered(self.pending.iter().filter(|pending| pending.returned).map(|pending| pending.id).collect())
    }

    /// A sync has ended: what it covered is durable, or, if it failed, clean and lost.
    pub(crate) fn settle(&mut self, covered: &Covered, durable: bool) {
        let pending = std::mem::take(&mut self.pending);
        for pending in pending {
            if covered.0.binary_search(&pending.id).is_err() {
                self.pending.push(pending);
            } else if durable {
                match pending.change {
                    Change::Write { first, blocks } => {
                        for (index, block) in (first..).zip(blocks) {
                            self.durable.put(index, block);
                        }
                    }
                    Change::SetLen(len) => self.durable.set_len(len),
                }
            }
        }
    }

    /// Ends write `id` to an `O_DSYNC` file, which takes what came before it along, above all the length.
    pub(crate) fn settle_dsync(&mut self, id: u64, durable: bool) {
        let covered = if durable { self.covered() } else { Covered(vec![id]) };
        self.settle(&covered, durable);
    }

    /// Decides every pending change, then shows what is left.
    pub(crate) fn lose_power(&mut self, random: &Stream, weights: &[u32; 4]) -> Fates {
        let mut fates = Fates::default();
        // The file system may not have recorded that the file grew, whatever the device wrote there.
        let growth_recorded = random.chance(500);
        for pending in std::mem::take(&mut self.pending) {
            match pending.change {
                Change::SetLen(len) if random.chance(500) => {
                    fates.kept += 1;
                    self.durable.set_len(len);
                }
                Change::SetLen(_) => fates.lost += 1,
                Change::Write { first, blocks } => {
                    let fate = random.weighted(weights);
                    *[&mut fates.kept, &mut fates.lost, &mut fates.torn, &mut fates.garbled][fate] += 1;
                    let limit = if growth_recorded { u64::MAX } else { self.durable.len().div_ceil(BLOCK) };
                    match fate {
                        0 => self.persist((first..).zip(blocks), limit),
                        2 => self.tear(first, blocks, limit, random),
                        3 => self.garble(first, blocks, limit, random),
                        _ => {}
                    }
                }
            }
        }
        self.seen = self.durable.clone();
        fates
    }

    fn persist(&mut self, blocks: impl Iterator<Item = (u64, Block)>, limit: u64) {
        for (index, block) in blocks.take_while(|(index, _)| *index < limit) {
            self.durable.put(index, block);
        }
    }

    /// Keeps each sector, or each block, by the toss of a coin.
    fn tear(&mut self, first: u64, blocks: Vec<Block>, limit: u64, random: &Stream) {
        let unit = if random.chance(500) { SECTOR_BYTES } else { BLOCK_BYTES };
        let torn: Vec<(u64, Block)> = (first..)
            .zip(blocks)
            .filter_map(|(index, new)| {
                let (new, mut mixed) = (bytes_of(&new), bytes_of(&self.durable.get(index)));
                let mut any = false;
                for start in (0..BLOCK_BYTES).step_by(unit) {
                    if random.chance(500) {
                        mixed[start..start + unit].copy_from_slice(&new[start..start + unit]);
                        any = true;
                    }
                }
                any.then(|| (index, block_of(&mixed)))
            })
            .collect();
        self.persist(torn.into_iter(), limit);
    }

    /// Keeps the write, but for one sector that becomes noise.
    fn garble(&mut self, first: u64, mut blocks: Vec<Block>, limit: u64, random: &Stream) {
        let victim = random.index(blocks.len());
        let mut bytes = bytes_of(&blocks[victim]);
        let start = random.index(BLOCK_BYTES / SECTOR_BYTES) * SECTOR_BYTES;
        random.fill(&mut bytes[start..start + SECTOR_BYTES]);
        blocks[victim] = block_of(&bytes);
        self.persist((first..).zip(blocks), limit);
    }

    /// Flips one bit at `position`, where programs and the next power cut both find it.
    pub(crate) fn flip_bit(&mut self, position: u64) {
        let index = position / BLOCK;
        for blocks in [&mut self.seen, &mut self.durable] {
            if position < blocks.len() {
                let mut bytes = bytes_of(&blocks.get(index));
                bytes[(position % BLOCK) as usize] ^= 1;
                let len = blocks.len();
                blocks.put(index, block_of(&bytes));
                blocks.set_len(len);
            }
        }
    }
}
