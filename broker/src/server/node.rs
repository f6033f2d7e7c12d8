//! The main function of every shard, and the way in and out of a running node.
//!
//! Owns: the events that the process sees, the handle by which it stops the node and asks for numbers.
//! Does not own: what the process does about a failure (`tools`), or a simulation (`tests`).

use super::{StartError, start, stop};
use crate::config::NodeConfig;
use crate::metrics::ShardStats;
use crate::shard::{Message, Shard};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use runtime::mailbox;
use runtime::shard::{Seed, ShardId};
use runtime::task;
use std::net::SocketAddr;
use std::sync::Arc;

/// What happens to a node.
#[derive(Clone)]
pub enum NodeEvent {
    /// It serves clients.
    Ready(NodeHandle),
    /// It could not start. It ends.
    StartFailed(Arc<StartError>),
    /// A shard's storage failed and acknowledges nothing any more. The node ends; the process should exit with an error.
    StorageFailed {
        /// The shard.
        shard: ShardId,
        /// What failed.
        reason: String,
    },
    /// It was stopped, and everything is on disk.
    Stopped,
}

/// Called from the node's shards for each event; must not block.
pub type NodeEvents = Arc<dyn Fn(NodeEvent) + Send + Sync>;

/// A running node, from any thread.
#[derive(Clone)]
pub struct NodeHandle {
    peers: Vec<mailbox::Sender<Message>>,
    addresses: Vec<SocketAddr>,
}

impl NodeHandle {
    pub(super) fn new(peers: Vec<mailbox::Sender<Message>>, addresses: Vec<SocketAddr>) -> NodeHandle {
        NodeHandle { peers, addresses }
    }

    /// Where it listens, in the order of `listeners`.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Asks it to stop; `NodeEvent::Stopped` follows.
    pub fn stop(&self) {
        if let Some(first) = self.peers.first() {
            // Fails when the node has ended already.
            let _ = first.send(Message::new(|shard| shard.request_stop()));
        }
    }

    /// What every shard counted; shards that have ended are left out.
    pub async fn stats(&self) -> Vec<ShardStats> {
        let asked: Vec<_> = self
            .peers
            .iter()
            .map(|peer| {
                let (answer, answered) = mailbox::reply();
                let _ = peer.send(Message::new(move |shard| answer.send(shard.stats())));
                answered
            })
            .collect();
        futures::future::join_all(asked).await.into_iter().flatten().collect()
    }
}

/// The main function of each shard of a node.
pub fn node(
    config: Arc<NodeConfig>,
    events: NodeEvents,
) -> impl Fn(Seed<Message>) -> LocalBoxFuture<'static, ()> + Clone + Send + 'static {
    move |seed| shard_main(seed, Arc::clone(&config), Arc::clone(&events)).boxed_local()
}

async fn shard_main(seed: Seed<Message>, config: Arc<NodeConfig>, events: NodeEvents) {
    let shard = Shard::new(seed.id, seed.peers, config, events);
    let inbox = task::spawn(std::rc::Rc::clone(&shard).serve_inbox(seed.inbox));
    if shard.id == ShardId(0) {
        match start::start(&shard).await {
            Ok(started) => {
                (shard.events)(NodeEvent::Ready(started.handle(&shard)));
                shard.stop_asked().await;
                stop::stop(&shard).await;
                drop(started);
            }
            Err(error) => {
                (shard.events)(NodeEvent::StartFailed(Arc::new(error)));
                stop::abandon(&shard).await;
            }
        }
    }
    inbox.await;
}
