//! A fetch over several shards: read everywhere at once; if that gives too little, wait everywhere until one has more.
//!
//! Invariants:
//! I1 an answer holds at most the bytes that the client asked for, but one batch at least if there is one (KIP-74).
//! I2 memory for what is read is charged to the shard of the connection; a fetch that waits for records is charged nothing.
//!    Each takes at most a quarter of what is free, so that the next finds something, too. Where next to nothing is free, the
//!    answer is empty, the client asks again, and those who do not read their answers are cut (`net::connections`).
//! I3 when a fetch ends, however it ends, nothing waits for it on any shard.

use super::local::{self, Item, Part, Patience, WaiterId, Work};
use crate::api::Held;
use crate::partition::{FetchError, Fetched};
use crate::shard::{Message, Shard};
use futures::future::{FutureExt, LocalBoxFuture, join_all};
use futures::stream::{FuturesUnordered, StreamExt};
use protocol::ErrorCode;
use runtime::shard::ShardId;
use runtime::sync::Permit;
use runtime::time::{self, Instant};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What a fetch that has waited reads at a time, if the client has no larger minimum: it comes from the cache.
const WAITED_BYTES_MAX: usize = 1 << 20;
/// What a fetch reads at least.
const LEAST_BYTES: u64 = 64 * 1024;
/// How long a fetch waits for memory.
const MEMORY_WAIT_MAX: Duration = Duration::from_millis(200);
/// How long a fetch waits for the memory of a batch that is larger than was free, its turn included.
const LARGE_WAIT_MAX: Duration = Duration::from_secs(5);

/// What the client asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes_min: usize,
    pub(super) bytes_max: usize,
    pub(super) until: Instant,
}

/// The partitions of one shard.
struct Owned {
    owner: ShardId,
    /// Their places in the answer.
    slots: Vec<usize>,
    items: Arc<[Item]>,
}

struct Gather {
    shard: Rc<Shard>,
    owned: Vec<Owned>,
    parts: Vec<Part>,
}

/// Gives one part for each item, in order.
pub(super) async fn gather(
    shard: &Rc<Shard>,
    items: Vec<(ShardId, Item)>,
    limits: Limits,
    held: &Held,
) -> Vec<Part> {
    let mut gather = Gather::new(shard, items);
    let Some(mut charge) = charge(shard, limits.bytes_max).await else {
        gather.read(0).await;
        return gather.parts;
    };
    let budget = usize::try_from(charge.count()).unwrap_or(usize::MAX);
    // Several shards share the bytes evenly, so that together they do not read much more than is wanted.
    let share = (budget / gather.owned.len().max(1)).max(1);
    let bytes_min = limits.bytes_min.min(share);
    gather.read(share).await;
    if !gather.is_enough(bytes_min) && !limits.until.duration_since(time::now()).is_zero() {
        charge.resize(gather.bytes() as u64);
        gather.wait(share.min(WAITED_BYTES_MAX.max(bytes_min)), bytes_min, limits.until).await;
    }
    gather.cut(budget);
    let charge =
        if charge.resize(gather.bytes() as u64) { Some(charge) } else { gather.read_large(charge).await };
    shard.starved_of_fetch_memory(charge.is_none());
    charge.into_iter().for_each(|charge| held.add(charge));
    gather.parts
}

/// The permit for what a fetch may read; `None` if nothing is free for long.
async fn charge(shard: &Shard, bytes_max: usize) -> Option<Permit> {
    let memory = &shard.fetch_memory;
    let part = (memory.available() / 4).clamp(LEAST_BYTES, (memory.capacity() / 4).max(LEAST_BYTES));
    let budget = u64::try_from(bytes_max).unwrap_or(u64::MAX).min(part);
    if let Some(permit) = memory.try_acquire(budget) {
        return Some(permit);
    }
    let permit = time::timeout(MEMORY_WAIT_MAX, memory.acquire(budget.min(LEAST_BYTES))).await.ok();
    shard.starved_of_fetch_memory(permit.is_none());
    permit
}

impl Gather {
    fn new(shard: &Rc<Shard>, items: Vec<(ShardId, Item)>) -> Gather {
        // What stays if a shard ends: the client looks for the partitions elsewhere.
        let parts = items.iter().map(|_| Err(FetchError::Code(ErrorCode::NotLeaderOrFollower))).collect();
        let mut owned: BTreeMap<ShardId, (Vec<usize>, Vec<Item>)> = BTreeMap::new();
        for (slot, (owner, item)) in items.into_iter().enumerate() {
            let entry = owned.entry(owner).or_default();
            entry.0.push(slot);
            entry.1.push(item);
        }
        let owned =
            owned.into_iter().map(|(owner, (slots, items))| Owned { owner, slots, items: items.into() });
        Gather { shard: Rc::clone(shard), owned: owned.collect(), parts }
    }

    fn bytes(&self) -> usize {
        self.parts.iter().flatten().map(|fetched| fetched.bytes).sum()
    }

    fn bytes_of(&self, owned: &Owned) -> usize {
        let parts = owned.slots.iter().filter_map(|slot| self.parts.get(*slot));
        parts.flatten().map(|fetched| fetched.bytes).sum()
    }

    fn is_enough(&self, bytes_min: usize) -> bool {
        self.bytes() >= bytes_min || self.parts.iter().any(Result::is_err)
    }

    fn store(&mut self, at: usize, parts: Option<Vec<Part>>) {
        let Some(owned) = self.owned.get(at) else { return };
        for (slot, part) in owned.slots.iter().zip(parts.into_iter().flatten()) {
            if let Some(place) = self.parts.get_mut(*slot) {
                *place = part;
            }
        }
    }

    /// Reads on every shard, without waiting.
    async fn read(&mut self, share: usize) {
        let patience = Patience { bytes_wanted: 0, until: time::now() };
        let reads: Vec<_> = self.owned.iter().map(|owned| self.start(owned, share, patience).0).collect();
        for (at, parts) in join_all(reads).await.into_iter().enumerate() {
            self.store(at, parts);
        }
    }

    /// Waits on every shard until there is enough in all.
    async fn wait(&mut self, share: usize, bytes_min: usize, until: Instant) {
        let mut waiting = Waiting { shard: Rc::clone(&self.shard), on: BTreeMap::new() };
        let mut waits = FuturesUnordered::new();
        let mut next: Vec<usize> = (0..self.owned.len()).collect();
        loop {
            for at in next.drain(..) {
                let Some(owned) = self.owned.get(at) else { continue };
                // One shard alone knows what is enough; of several, each tells of any growth.
                let bytes_wanted = if self.owned.len() == 1 { bytes_min } else { self.bytes_of(owned) + 1 };
                let (wait, id) = self.start(owned, share, Patience { bytes_wanted, until });
                waiting.on.insert(at, (owned.owner, id));
                waits.push(wait.map(move |parts| (at, parts)));
            }
            let Some((at, parts)) = waits.next().await else { return };
            waiting.on.remove(&at);
            self.store(at, parts);
            if self.is_enough(bytes_min) || until.duration_since(time::now()).is_zero() {
                return;
            }
            next.push(at);
        }
    }

    /// Reads anew what was larger than reckoned with, a batch above all: nothing is held while it waits for memory, in turn with
    /// others. Empty if its turn does not come.
    async fn read_large(&mut self, charge: Permit) -> Option<Permit> {
        let bytes = self.bytes();
        self.cut_all();
        drop(charge);
        let memory = self.shard.fetch_memory.clone();
        let mut charge = time::timeout(LARGE_WAIT_MAX, memory.acquire(bytes as u64)).await.ok()?;
        self.read((bytes / self.owned.len().max(1)).max(1)).await;
        self.cut(bytes);
        if charge.resize(self.bytes() as u64) {
            return Some(charge);
        }
        self.cut_all();
        None
    }

    fn start(
        &self,
        owned: &Owned,
        bytes_max: usize,
        patience: Patience,
    ) -> (LocalBoxFuture<'static, Option<Vec<Part>>>, WaiterId) {
        let number = self.shard.next_fetch.get();
        self.shard.next_fetch.set(number + 1);
        let id = (self.shard.id, number);
        let work = Work { items: Arc::clone(&owned.items), bytes_max };
        let fetch = self.shard.call(owned.owner, move |shard| local::fetch(&shard, work, patience, id));
        (fetch.map(Result::ok).boxed_local(), id)
    }

    /// Takes back what the shards together read too much: from the end, and never all of it.
    fn cut(&mut self, budget: usize) {
        let mut total = 0;
        for fetched in self.parts.iter_mut().flatten() {
            if total > 0 && total + fetched.bytes > budget {
                fetched.take_back();
            }
            total += fetched.bytes;
        }
    }

    fn cut_all(&mut self) {
        self.parts.iter_mut().flatten().for_each(Fetched::take_back);
    }
}

/// The waits that are still out; taken back when dropped (I3).
struct Waiting {
    shard: Rc<Shard>,
    on: BTreeMap<usize, (ShardId, WaiterId)>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        for (owner, id) in self.on.values().copied() {
            // A wait on this shard ends with its future.
            if owner != self.shard.id
                && let Some(peer) = self.shard.peers().get(usize::from(owner.0))
            {
                let _ = peer.send(Message::new(move |shard| shard.fetch_waiters.cancel(id)));
            }
        }
    }
}
