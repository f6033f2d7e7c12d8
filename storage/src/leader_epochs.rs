//! Which leader epoch began at which offset (KIP-101, KIP-320). Pure.
//! Invariant: both leader epochs and start offsets rise strictly from entry to entry.

/// Leader epochs of one log, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LeaderEpochs(Vec<(i32, i64)>);

impl LeaderEpochs {
    /// From what a checkpoint holds; entries that do not rise are dropped, for later ones supersede them.
    pub(crate) fn from_entries(entries: Vec<(i32, i64)>) -> Self {
        let mut epochs = Self::default();
        entries.into_iter().for_each(|(leader_epoch, start)| epochs.assign(leader_epoch, start));
        epochs
    }

    /// All entries, oldest first.
    pub(crate) fn entries(&self) -> &[(i32, i64)] {
        &self.0
    }

    /// A batch of `leader_epoch` was appended at `offset`.
    pub(crate) fn assign(&mut self, leader_epoch: i32, offset: i64) {
        if self.0.last().is_some_and(|(latest, _)| *latest >= leader_epoch) {
            return;
        }
        self.0.retain(|(_, start)| *start < offset);
        self.0.push((leader_epoch, offset));
    }

    /// The latest leader epoch.
    pub(crate) fn latest(&self) -> Option<i32> {
        self.0.last().map(|(leader_epoch, _)| *leader_epoch)
    }

    /// The leader epoch of the batch at `offset`.
    pub(crate) fn at(&self, offset: i64) -> Option<i32> {
        self.0.iter().rev().find(|(_, start)| *start <= offset).map(|(leader_epoch, _)| *leader_epoch)
    }

    /// The log ends at `end_offset` now.
    pub(crate) fn truncate_end(&mut self, end_offset: i64) {
        self.0.retain(|(_, start)| *start < end_offset);
    }

    /// The log starts at `start_offset` now: the leader epoch that holds there begins there.
    pub(crate) fn truncate_start(&mut self, start_offset: i64) {
        let Some(holding) = self.at(start_offset) else { return };
        self.0.retain(|(_, start)| *start > start_offset);
        self.0.insert(0, (holding, start_offset));
    }

    /// The leader epoch asked for, or the one before it, and where it ended; (−1, −1) when unknown (KIP-320).
    pub(crate) fn end_offset(&self, leader_epoch: i32, log_end_offset: i64) -> (i32, i64) {
        if leader_epoch < 0 {
            return (-1, -1);
        }
        if self.latest() == Some(leader_epoch) {
            return (leader_epoch, log_end_offset);
        }
        let Some(higher) = self.0.iter().position(|(epoch, _)| *epoch > leader_epoch) else {
            return (-1, -1);
        };
        let end = self.0[higher].1;
        match higher.checked_sub(1) {
            Some(floor) => (self.0[floor].0, end),
            None => (leader_epoch, end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs() -> LeaderEpochs {
        LeaderEpochs::from_entries(vec![(1, 0), (3, 10), (6, 25)])
    }

    #[test]
    fn end_offsets_follow_kip_320() {
        let epochs = epochs();
        assert_eq!(epochs.end_offset(-1, 30), (-1, -1));
        assert_eq!(epochs.end_offset(0, 30), (0, 0));
        assert_eq!(epochs.end_offset(1, 30), (1, 10));
        assert_eq!(epochs.end_offset(2, 30), (1, 10));
        assert_eq!(epochs.end_offset(4, 30), (3, 25));
        assert_eq!(epochs.end_offset(6, 30), (6, 30));
        assert_eq!(epochs.end_offset(7, 30), (-1, -1));
        assert_eq!(LeaderEpochs::default().end_offset(0, 0), (-1, -1));
    }

    #[test]
    fn both_ends_are_cut() {
        let mut epochs = epochs();
        epochs.truncate_start(12);
        assert_eq!(epochs.entries(), [(3, 12), (6, 25)]);
        epochs.truncate_end(25);
        assert_eq!(epochs.entries(), [(3, 12)]);
        epochs.assign(3, 20);
        epochs.assign(7, 20);
        assert_eq!(epochs.entries(), [(3, 12), (7, 20)]);
        assert_eq!(epochs.at(19), Some(3));
    }
}
