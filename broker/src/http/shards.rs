//! Asking every shard how it is, from outside: one message each, and a bound on the wait.

use std::rc::Rc;
use std::time::Duration;

use futures::future::join_all;
use runtime::mailbox::{self, Sender};

use crate::metrics::ShardStats;
use crate::shard::{Message, Shard};

/// How long a shard may take to answer before it counts as stuck. Its longest task between two yields takes milliseconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The way to every shard of a node.
#[derive(Clone)]
pub struct Shards(Vec<Sender<Message>>);

/// How one shard is.
#[derive(Debug, Clone)]
pub(super) struct ShardReport {
    pub(super) stats: ShardStats,
    /// Why it cannot serve everything that clients ask for; empty when it can.
    pub(super) not_ready: Vec<String>,
}

impl Shards {
    /// From senders to each shard, by number.
    #[must_use]
    pub fn new(peers: Vec<Sender<Message>>) -> Shards {
        Shards(peers)
    }

    /// One answer per shard, by number; none where it did not answer in time. To be awaited on a tokio runtime.
    pub(super) async fn ask(&self) -> Vec<Option<ShardReport>> {
        join_all(self.0.iter().map(ask_one)).await
    }
}

async fn ask_one(shard: &Sender<Message>) -> Option<ShardReport> {
    let (answer, answered) = mailbox::reply();
    let message = Message::new(move |shard: &Rc<Shard>| answer.send(report(shard)));
    shard.send(message).ok()?;
    tokio::time::timeout(ANSWER_WITHIN, answered).await.ok().flatten()
}

fn report(shard: &Rc<Shard>) -> ShardReport {
    let mut not_ready = Vec::new();
    match shard.opened_storage() {
        None => not_ready.push("its storage is not open yet".to_owned()),
        Some(storage) => {
            if let Some(error) = storage.failed() {
                not_ready.push(format!("its storage failed: {error}"));
            } else if !storage.writable() {
                not_ready.push("the disk is full: produce is refused, fetch goes on".to_owned());
            }
        }
    }
    ShardReport { stats: shard.stats(), not_ready }
}
