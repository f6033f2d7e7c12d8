//! Which blocks are replayed, and whether what is missing was torn or is corrupt (docs/storage-format.md, section 2.3). Pure.
//!
//! Invariants:
//! 1. One block is in flight at a time, so a valid block proves all lower sequence numbers durable.
//! 2. Nothing that was durable is left out without being named in [`Order::damage`].
//! 3. A block that a later one repeats may be missing: it was read at a start before, but may never have been durable.

use std::path::{Path, PathBuf};

use crate::journal::block::BlockHeader;
use crate::journal::files;

/// What the checkpoint knows of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// No earlier block is needed.
    pub(crate) replay_from_block: u64,
    /// Highest sequence known durable.
    pub(crate) durable_block: u64,
}

/// The journal in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// Blocks to replay, by sequence.
    pub(crate) replay: Vec<BlockHeader>,
    /// The block after which writing goes on, if it is still there.
    pub(crate) last: Option<BlockHeader>,
    /// Highest sequence that was ever durable.
    pub(crate) last_sequence: u64,
    /// Durable blocks that are not there.
    pub(crate) damage: Vec<Damage>,
}

/// A run of durable blocks that are missing or there twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    /// First sequence concerned.
    pub(crate) first: u64,
    /// Last sequence concerned.
    pub(crate) last: u64,
    /// The block before it, behind which the damaged one is expected.
    pub(crate) after: Option<BlockHeader>,
}

impl Damage {
    /// File and position where the damaged block is expected, in the journal's directory; the directory if none comes before.
    pub(crate) fn place(&self, dir: &Path) -> (PathBuf, u64) {
        match self.after {
            Some(block) => (files::path_of(dir, block.slot), block.position + block.block_bytes()),
            None => (dir.to_owned(), 0),
        }
    }
}

/// Orders the valid blocks of all files. `misplaced` are sequences of valid blocks in a wrong place.
pub(crate) fn order(mut found: Vec<BlockHeader>, misplaced: &[u64], known: Known) -> Order {
    found.sort_by_key(|block| block.sequence);
    let highest = found.last().map_or(0, |block| block.sequence);
    // A block in a wrong place is not replayed from there, but proves its forerunners, and itself is missing.
    let last_sequence = misplaced.iter().copied().fold(highest.max(known.durable_block), u64::max);
    let mut order = Order { last_sequence, ..Order::default() };
    order.last = found.last().copied().filter(|block| block.sequence == last_sequence);
    let mut expected = known.replay_from_block;
    let mut before = found.iter().rev().find(|block| block.sequence < expected).copied();
    for block in found.into_iter().filter(|block| block.sequence >= known.replay_from_block) {
        if block.sequence < expected {
            order.damage.push(Damage { first: block.sequence, last: block.sequence, after: before });
            continue;
        }
        let repeated_from = block.sequence.saturating_sub(u64::from(block.repeats));
        if repeated_from > expected {
            order.damage.push(Damage { first: expected, last: repeated_from - 1, after: before });
        }
        expected = block.sequence.saturating_add(1);
        before = Some(block);
        order.replay.push(block);
    }
    if expected <= last_sequence {
        order.damage.push(Damage { first: expected, last: last_sequence, after: before });
    }
    order
}

/// The damage in words.
pub(crate) fn describe(damage: &Damage, last: u64) -> String {
    let Damage { first, last: until, .. } = damage;
    if damage.first == damage.last {
        format!("journal block {first} of {last} was durable and is not there whole")
    } else {
        format!("journal blocks {first} to {until} of {last} were durable and are not there whole")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(sequence: u64) -> BlockHeader {
        BlockHeader {
            sequence,
            first_entry: sequence,
            entry_count: 1,
            payload_bytes: 10,
            position: 0,
            slot: 0,
            repeats: 0,
        }
    }

    fn sequences(order: &Order) -> Vec<u64> {
        order.replay.iter().map(|block| block.sequence).collect()
    }

    fn damage(order: &Order) -> Vec<(u64, u64)> {
        order.damage.iter().map(|damage| (damage.first, damage.last)).collect()
    }

    #[test]
    fn stale_blocks_are_left_out() {
        let known = Known { replay_from_block: 4, durable_block: 5 };
        let order = order(vec![block(6), block(2), block(4), block(3), block(5)], &[], known);
        assert_eq!(sequences(&order), [4, 5, 6]);
        assert_eq!(damage(&order), []);
        assert_eq!((order.last, order.last_sequence), (Some(block(6)), 6));
    }

    #[test]
    fn a_hole_is_damage() {
        let known = Known { replay_from_block: 1, durable_block: 0 };
        let order = order(vec![block(1), block(2), block(5)], &[], known);
        assert_eq!(damage(&order), [(3, 4)]);
        assert_eq!(order.damage[0].after, Some(block(2)));
        assert_eq!(sequences(&order), [1, 2, 5]);
    }

    #[test]
    fn what_is_repeated_may_be_missing() {
        let known = Known { replay_from_block: 1, durable_block: 0 };
        let repeat = |sequence, repeats| BlockHeader { repeats, ..block(sequence) };
        assert_eq!(damage(&order(vec![block(1), repeat(3, 1)], &[], known)), []);
        assert_eq!(damage(&order(vec![block(1), repeat(4, 2)], &[], known)), []);
        assert_eq!(damage(&order(vec![block(1), repeat(4, 1)], &[], known)), [(2, 2)]);
        assert_eq!(damage(&order(vec![block(1), block(2), repeat(3, 1)], &[], known)), []);
    }

    #[test]
    fn the_end_known_durable_is_damage_when_missing() {
        let known = Known { replay_from_block: 1, durable_block: 3 };
        let order = order(vec![block(1), block(2)], &[], known);
        assert_eq!(damage(&order), [(3, 3)]);
        assert_eq!(order.last, None);
    }

    #[test]
    fn an_unneeded_journal_may_be_gone() {
        let known = Known { replay_from_block: 8, durable_block: 7 };
        let order = order(vec![block(3)], &[], known);
        assert_eq!(damage(&order), []);
        assert_eq!((order.last, order.last_sequence), (None, 7));
    }

    #[test]
    fn misplaced_and_double_blocks_are_damage() {
        let known = Known { replay_from_block: 1, durable_block: 0 };
        assert_eq!(damage(&order(vec![block(1)], &[3], known)), [(2, 3)]);
        assert_eq!(damage(&order(vec![block(1), block(1)], &[], known)), [(1, 1)]);
    }
}
