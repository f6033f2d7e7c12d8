//! The part of a fetch that happens on the shard that owns the partitions: read, and wait for more.
//!
//! Invariant: a fetch that waits holds no memory but its list of partitions.

use crate::partition::{FetchError, Fetched};
use crate::shard::Shard;
use futures::future::{self, Either, FutureExt};
use runtime::shard::ShardId;
use runtime::sync::Event;
use runtime::time::{self, Instant};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use storage::PartitionId;

/// What a fetch wants of one partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) id: PartitionId,
    pub(super) offset: i64,
    pub(super) bytes_max: usize,
    pub(super) current_leader_epoch: i32,
    pub(super) last_fetched_epoch: i32,
}

/// What a fetch wants of one shard.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) items: Arc<[Item]>,
    /// With 0 only the offsets are wanted; else there is one batch at least (KIP-74).
    pub(super) bytes_max: usize,
}

/// When a fetch on a shard comes back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// With this many bytes, or with an error.
    pub(super) bytes_wanted: usize,
    /// Or at this time.
    pub(super) until: Instant,
}

/// One partition's part of the answer.
pub(super) type Part = Result<Fetched, FetchError>;

/// Names a fetch that waits, across shards.
pub(super) type WaiterId = (ShardId, u64);

/// The fetches of other shards that wait here.
#[derive(Default)]
pub(crate) struct Waiters(RefCell<BTreeMap<WaiterId, Event>>);

impl Waiters {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// The client that waits has gone, or has got what it wanted from another shard.
    pub(super) fn cancel(&self, id: WaiterId) {
        if let Some(event) = self.0.borrow_mut().remove(&id) {
            event.notify_all();
        }
    }
}

/// Registers a waiter at once, so that a cancellation that follows finds it; removes it in the end.
struct Registration {
    shard: Rc<Shard>,
    id: WaiterId,
    cancelled: Event,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shard.fetch_waiters.0.borrow_mut().remove(&self.id);
    }
}

/// Reads every partition; if that gives too little, waits and reads again.
pub(super) fn fetch(
    shard: &Rc<Shard>,
    work: Work,
    patience: Patience,
    waiter: WaiterId,
) -> impl Future<Output = Vec<Part>> + use<> {
    let shard = Rc::clone(shard);
    let cancelled = Event::new();
    shard.fetch_waiters.0.borrow_mut().insert(waiter, cancelled.clone());
    let registration = Registration { shard: Rc::clone(&shard), id: waiter, cancelled };
    async move {
        loop {
            let cancelled = registration.cancelled.listen();
            let parts = read_all(&shard, &work).await;
            let bytes: usize = parts.iter().flatten().map(|fetched| fetched.bytes).sum();
            let enough = bytes >= patience.bytes_wanted || parts.iter().any(Result::is_err);
            let left = patience.until.duration_since(time::now());
            if enough || left.is_zero() {
                return parts;
            }
            shard.metrics.fetches_parked.add(1);
            let moved = any_moved(&shard, &work.items, &parts);
            let woken = time::timeout(left, future::select(moved, cancelled)).await;
            if let Ok(Either::Right(_)) = woken {
                return parts;
            }
        }
    }
}

/// Waits until one of the partitions has more than was read.
fn any_moved(shard: &Rc<Shard>, items: &[Item], parts: &[Part]) -> future::LocalBoxFuture<'static, ()> {
    let waits: Vec<_> = items
        .iter()
        .zip(parts)
        .filter_map(|(item, part)| {
            let (partition, seen) = (shard.partition(&item.id)?, part.as_ref().ok()?.high_watermark);
            Some(async move { partition.moved_beyond(seen).await }.boxed_local())
        })
        .collect();
    if waits.is_empty() {
        return future::pending().boxed_local();
    }
    future::select_all(waits).map(|_| ()).boxed_local()
}

async fn read_all(shard: &Rc<Shard>, work: &Work) -> Vec<Part> {
    let mut left = work.bytes_max;
    let mut progressed = left == 0;
    let mut parts = Vec::with_capacity(work.items.len());
    for item in work.items.iter() {
        let part = read_one(shard, item, left, !progressed).await;
        if let Ok(fetched) = &part {
            left = left.saturating_sub(fetched.bytes);
            progressed |= fetched.bytes > 0;
        }
        parts.push(part);
        runtime::task::yield_if_needed().await;
    }
    parts
}

async fn read_one(shard: &Rc<Shard>, item: &Item, left: usize, progress: bool) -> Part {
    let partition = shard.partition_or_error(&item.id)?;
    partition.check_leader_epoch(item.current_leader_epoch)?;
    partition.check_diverging(item.last_fetched_epoch, item.offset)?;
    partition.read(item.offset, item.bytes_max.min(left), progress).await
}
