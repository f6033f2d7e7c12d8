//! The order in which a node goes down, directed by shard 0: listeners, connections, storage, shards.

use super::node::NodeEvent;
use crate::shard::Shard;
use std::rc::Rc;
use std::time::Duration;

/// How long requests in flight may take to be answered.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);

/// Stops a node that serves. After a failed storage the same steps are taken, without telling that all is on disk.
pub(super) async fn stop(shard: &Rc<Shard>) {
    let drained = shard.call_all(|shard| async move {
        shard.cancel_listeners();
        let failed = shard.storage().failed().is_some();
        let patience = if failed { Duration::ZERO } else { DRAIN_PATIENCE };
        shard.connections.drain(patience).await;
    });
    // A shard that is gone already has nothing left to drain.
    let _ = drained.await;
    let closed = close_all(shard).await;
    end_all(shard).await;
    if closed {
        (shard.events)(NodeEvent::Stopped);
    }
}

/// Takes down a node that did not start.
pub(super) async fn abandon(shard: &Rc<Shard>) {
    close_all(shard).await;
    end_all(shard).await;
}

/// Closes every storage; true if all that was appended is on disk.
async fn close_all(shard: &Rc<Shard>) -> bool {
    let closed = shard.call_all(|shard| async move {
        shard.cancel_tasks();
        let Some(storage) = shard.opened_storage().cloned() else { return true };
        if storage.failed().is_some() {
            return false;
        }
        match storage.close().await {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(shard = shard.id.0, %error, "closing the storage");
                false
            }
        }
    });
    closed.await.is_ok_and(|all| all.into_iter().all(|ok| ok))
}

/// Ends every shard. One that has ended does not answer, which is as good.
async fn end_all(shard: &Rc<Shard>) {
    let _ = shard
        .call_all(|shard| {
            shard.end();
            std::future::ready(())
        })
        .await;
}
