//! One partition's raft group: proposals, what is raft-committed, the high watermark.
//! Owns: the leader epoch of this replica. Does not own: the log's bytes (`storage`), waiters (`broker`).
//!
//! Invariants:
//! 1. The high watermark is the end of what is raft-committed and never moves back, across restarts too.
//! 2. With one replica it is the durable end of the log: a batch is raft-committed when its flush has returned.
//! 3. Batches are appended in the order of proposals, with the term as their leader epoch.

use std::rc::Rc;

use bytes::Bytes;
use protocol::record::BatchHeader;
use runtime::sync::Watch;
use storage::{Log, Ticket};

use crate::error::{CommitError, ProposeError};

/// The raft group of one partition. Cheap to clone.
#[derive(Clone)]
pub struct Group(Rc<State>);

struct State {
    log: Log,
    leader_epoch: i32,
}

/// A batch that has its place in the log, and is raft-committed once [`Group::committed`] says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proposal {
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Its raft index.
    pub index: u64,
    ticket: Ticket,
}

impl Group {
    /// The group of a log with this one replica, which leads it.
    ///
    /// The term is that of the last vote, or 0. A restart does not raise it: clients see only what is durable, so the log
    /// never differs between two starts in anything that a client has seen, and there is nobody to fence.
    pub fn new(log: Log) -> Self {
        let voted = log.vote().map_or(0, |vote| i32::try_from(vote.term).unwrap_or(i32::MAX));
        let leader_epoch = voted.max(log.latest_leader_epoch().unwrap_or(0));
        Self(Rc::new(State { log, leader_epoch }))
    }

    /// Appends a batch (one valid v2 batch with its header) as the leader. It is raft-committed later.
    ///
    /// # Errors
    /// [`ProposeError`]; nothing of the batch was kept then.
    pub fn propose(&self, batch: Bytes, header: &BatchHeader) -> Result<Proposal, ProposeError> {
        let appended = self.0.log.append(batch, header, self.0.leader_epoch)?;
        Ok(Proposal {
            base_offset: appended.base_offset,
            last_offset: appended.last_offset,
            index: appended.index,
            ticket: appended.ticket,
        })
    }

    /// Waits until the proposal is raft-committed.
    ///
    /// # Errors
    /// The storage failed before.
    pub async fn committed(&self, proposal: &Proposal) -> Result<(), CommitError> {
        Ok(self.0.log.durable(proposal.ticket).await?)
    }

    /// First offset that is not raft-committed.
    pub fn high_watermark(&self) -> i64 {
        self.0.log.durable_end_offset()
    }

    /// The high watermark, to be watched.
    pub fn watch_high_watermark(&self) -> Watch<i64> {
        self.0.log.durable_watch()
    }

    /// Leader epoch of this leadership: the raft term.
    pub fn leader_epoch(&self) -> i32 {
        self.0.leader_epoch
    }

    /// The log of this replica.
    pub fn log(&self) -> &Log {
        &self.0.log
    }
}
