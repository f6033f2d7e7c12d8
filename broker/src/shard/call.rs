//! Messages between shards: a closure runs on the target shard, and its answer comes back.
//!
//! Owns: the message type, the loop that serves a shard's inbox.
//! Invariants:
//! I1 the closures that one shard sends to another run in the order in which `call` was called; what their futures do later
//!    is unordered.
//! I2 a call to oneself takes no mailbox, and keeps I1 as well: its closure runs inside `call`.

use super::Shard;
use futures::FutureExt;
use runtime::mailbox;
use runtime::shard::ShardId;
use std::future::Future;
use std::rc::Rc;

type Work = dyn FnOnce(&Rc<Shard>) + Send;

/// What travels between shards.
pub struct Message(Box<Work>);

/// The target shard ended before it answered: the node is stopping or has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the shard is gone")]
pub struct ShardGone;

impl Message {
    /// A message that runs `work` on the shard that receives it.
    pub fn new(work: impl FnOnce(&Rc<Shard>) + Send + 'static) -> Message {
        Message(Box::new(work))
    }
}

impl Shard {
    /// Runs `work` on `target` and gives its answer. `work` itself runs in order (I1) and must not block; the future that it
    /// returns runs as a task there, whether or not the answer is still awaited. Where the target is this shard, the caller
    /// runs that future by awaiting it, and drops it with the call.
    pub fn call<T, F, Fut>(
        self: &Rc<Self>,
        target: ShardId,
        work: F,
    ) -> impl Future<Output = Result<T, ShardGone>> + use<T, F, Fut>
    where
        T: Send + 'static,
        F: FnOnce(Rc<Shard>) -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
    {
        if target == self.id {
            return work(Rc::clone(self)).map(Ok).left_future();
        }
        let (answer, answered) = mailbox::reply();
        let message = Message::new(move |shard| {
            let future = work(Rc::clone(shard));
            runtime::task::spawn(async move { answer.send(future.await) });
        });
        // A closed mailbox drops the message and with it `answer`, which the receiver notices.
        if let Some(peer) = self.peers().get(usize::from(target.0)) {
            let _ = peer.send(message);
        }
        answered.map(|answer| answer.ok_or(ShardGone)).right_future()
    }

    /// Runs `work` on every shard, this one included, and gives the answers by shard.
    pub async fn call_all<T, F, Fut>(self: &Rc<Self>, work: F) -> Result<Vec<T>, ShardGone>
    where
        T: Send + 'static,
        F: FnOnce(Rc<Shard>) -> Fut + Clone + Send + 'static,
        Fut: Future<Output = T> + 'static,
    {
        let calls = (0..self.count).map(|shard| self.call(ShardId(shard), work.clone()));
        futures::future::try_join_all(calls).await
    }

    /// Serves the inbox until every sender is gone or the shard has ended.
    pub async fn serve_inbox(self: Rc<Self>, mut inbox: mailbox::Receiver<Message>) {
        while let Some(Message(work)) = inbox.recv().await {
            work(&self);
            if self.has_ended() {
                return;
            }
            runtime::task::yield_if_needed().await;
        }
    }
}
