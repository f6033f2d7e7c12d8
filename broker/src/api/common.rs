//! What several APIs need: this node as clients see it, authorized operations, partitions grouped by shard.

use crate::metadata::Image;
use crate::net::ConnectionInfo;
use crate::partition::Partition;
use crate::shard::Shard;
use futures::future::join_all;
use protocol::{ErrorCode, Str};
use runtime::shard::ShardId;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use storage::PartitionId;

/// Every operation on a topic that Kafka names, as bits: without ACLs everyone may do all. READ, WRITE, CREATE, DELETE, ALTER,
/// DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS (codes 3 to 8, 10, 11).
pub(super) const TOPIC_OPERATIONS: i32 = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);
/// The same for the cluster: CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS and IDEMPOTENT_WRITE.
pub(super) const CLUSTER_OPERATIONS: i32 = bits(&[5, 7, 8, 9, 10, 11, 12]);

const fn bits(codes: &[u32]) -> i32 {
    let (mut bits, mut at) = (0, 0);
    while at < codes.len() {
        bits |= 1 << codes[at];
        at += 1;
    }
    bits
}

/// A node as clients are told to reach it.
pub(super) struct Node {
    pub(super) id: i32,
    pub(super) host: Str,
    pub(super) port: i32,
}

/// This node, by the listener that the client came through.
pub(super) fn advertised_node(shard: &Shard, connection: &ConnectionInfo) -> Node {
    let addresses = shard.addresses();
    let bound = addresses.get(connection.listener);
    let advertised = shard.config.advertised(connection.listener);
    let host = match advertised {
        Some(listener) if !listener.is_wildcard() => listener.host.clone(),
        // The address by which this client got here is one that works for it.
        _ => connection.local.ip().to_canonical().to_string(),
    };
    let port = match advertised.map(|listener| listener.port) {
        Some(port) if port != 0 => port,
        _ => bound.map_or(0, std::net::SocketAddr::port),
    };
    Node { id: shard.config.node_id, host: Str::from(host), port: i32::from(port) }
}

/// Items by the shard that they belong to, in their order within each.
pub(super) fn by_shard<T>(items: impl IntoIterator<Item = (ShardId, T)>) -> BTreeMap<ShardId, Vec<T>> {
    let mut shards: BTreeMap<ShardId, Vec<T>> = BTreeMap::new();
    for (shard, item) in items {
        shards.entry(shard).or_default().push(item);
    }
    shards
}

/// A partition that a client names.
pub(super) fn locate(image: &Image, topic: &str, partition: i32) -> Result<PartitionId, ErrorCode> {
    let topic = image.topic(topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let exists = usize::try_from(partition).is_ok_and(|index| index < topic.partitions.len());
    if exists {
        Ok(PartitionId { topic_id: topic.id, partition })
    } else {
        Err(ErrorCode::UnknownTopicOrPartition)
    }
}

/// Asks the owner of each partition, all at once; gives the answers in the order of the questions.
pub(super) async fn ask_owners<Q, A, F, Fut>(
    shard: &Rc<Shard>,
    questions: Vec<Result<(PartitionId, Q), ErrorCode>>,
    ask: F,
) -> Vec<Result<A, ErrorCode>>
where
    Q: Send + 'static,
    A: Send + 'static,
    F: Fn(Rc<Partition>, Q) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<A, ErrorCode>> + 'static,
{
    let image = shard.image();
    // What stays if a shard ends.
    let mut answers: Vec<_> = questions.iter().map(|_| Err(ErrorCode::NotLeaderOrFollower)).collect();
    let mut owned = Vec::new();
    for (slot, question) in questions.into_iter().enumerate() {
        match question {
            Ok((id, question)) => {
                owned.push((image.shard_of(&id.topic_id, id.partition), (slot, id, question)))
            }
            Err(error) => answers[slot] = Err(error),
        }
    }
    let asked = by_shard(owned).into_iter().map(|(owner, questions)| {
        let ask = ask.clone();
        shard.call(owner, move |shard| async move {
            join_all(questions.into_iter().map(|(slot, id, question)| {
                let (partition, ask) = (shard.partition_or_error(&id), ask.clone());
                async move {
                    match partition {
                        Ok(partition) => (slot, ask(partition, question).await),
                        Err(error) => (slot, Err(error)),
                    }
                }
            }))
            .await
        })
    });
    for (slot, answer) in join_all(asked).await.into_iter().flatten().flatten() {
        answers[slot] = answer;
    }
    answers
}
