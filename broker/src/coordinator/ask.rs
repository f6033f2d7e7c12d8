//! The way from any shard to the coordinator of a consumer group.

use std::future::Future;
use std::rc::Rc;

use futures::FutureExt;
use futures::future::{join_all, ready};
use protocol::ErrorCode;
use storage::PartitionId;

use super::group::{Reply, Request};
use crate::metadata::topic_name::CONSUMER_OFFSETS;
use crate::shard::Shard;

/// Asks the coordinator of a consumer group. Requests of one shard to one coordinator are decided in the order of these
/// calls, however late their answers are awaited.
pub(crate) fn ask(
    shard: &Rc<Shard>,
    group_id: &str,
    request: Request,
) -> impl Future<Output = Reply> + use<> {
    let image = shard.image();
    let Some(topic) = image.topic(CONSUMER_OFFSETS) else {
        // FindCoordinator makes the topic.
        return ready(Reply::Failed(ErrorCode::NotCoordinator)).left_future();
    };
    let id = PartitionId { topic_id: topic.id, partition: partition_of(group_id, topic.partitions.len()) };
    let owner = image.shard_of(&id.topic_id, id.partition);
    let answer = shard.call(owner, move |shard| shard.coordinators.submit(&id, request));
    async move {
        match answer.await {
            Ok(Some(reply)) => reply,
            Ok(None) | Err(_) => Reply::Failed(ErrorCode::NotCoordinator),
        }
    }
    .right_future()
}

/// Asks every coordinator of the node.
pub(crate) async fn ask_all(shard: &Rc<Shard>, request: Request) -> Vec<Reply> {
    let replies = shard.call_all(move |shard| {
        let answers = shard.coordinators.submit_to_all(&request);
        async move { join_all(answers).await }
    });
    match replies.await {
        Ok(replies) => replies.into_iter().flatten().flatten().collect(),
        Err(_) => vec![Reply::Failed(ErrorCode::CoordinatorNotAvailable)],
    }
}

/// The partition of `__consumer_offsets` that a consumer group belongs to: Java's hash of the id without its sign, as in
/// Kafka (whose clients need not know, but whose tools that read the topic do).
fn partition_of(group_id: &str, partitions: usize) -> i32 {
    let hash =
        group_id.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    let positive = hash.checked_abs().unwrap_or(0);
    let partitions = i32::try_from(partitions).unwrap_or(i32::MAX).max(1);
    positive % partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_placed_by_javas_hash() {
        // As computed by `Utils.abs("...".hashCode()) % 50` in Java.
        for (group_id, partition) in
            [("", 0), ("a", 47), ("test", 48), ("console-consumer-1", 24), ("größe", 7)]
        {
            assert_eq!(partition_of(group_id, 50), partition, "{group_id}");
        }
        // The hash of this text is the least int, which has no absolute value.
        assert_eq!(partition_of("polygenelubricants", 50), 0);
        assert_eq!(partition_of("a", 0), 0);
    }
}
