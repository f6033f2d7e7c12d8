//! A shard's block of producer ids: taken from the controller, handed out one by one.
//!
//! Invariant: an id is handed out once, ever; what is left of a block when the shard ends is lost.

use super::controller::{ChangeError, change};
use super::decide::{PRODUCER_ID_BLOCK_LEN, allocate_producer_ids};
use crate::shard::Shard;
use runtime::sync::Permits;
use std::cell::Cell;
use std::rc::Rc;

/// The block at hand.
pub struct ProducerIds {
    next: Cell<i64>,
    end: Cell<i64>,
    /// One permit: who holds it fetches a block.
    turn: Permits,
}

impl Default for ProducerIds {
    fn default() -> Self {
        ProducerIds { next: Cell::new(0), end: Cell::new(0), turn: Permits::new(1) }
    }
}

impl ProducerIds {
    /// A producer id that nobody has.
    pub async fn next(&self, shard: &Rc<Shard>) -> Result<i64, ChangeError> {
        let _turn = self.turn.acquire(1).await;
        if self.next.get() == self.end.get() {
            let node_id = shard.config.node_id;
            let first = change(shard, move |image| allocate_producer_ids(image, node_id)).await?;
            self.next.set(first);
            self.end.set(first + PRODUCER_ID_BLOCK_LEN);
        }
        let id = self.next.get();
        self.next.set(id + 1);
        Ok(id)
    }
}
