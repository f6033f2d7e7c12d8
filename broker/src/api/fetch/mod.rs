//! Fetch (1): batches of many partitions from the shards that own them, waiting until there is enough.
//!
//! | module | owns |
//! |---|---|
//! | `session` | incremental fetch sessions (KIP-227), pure |
//! | `gather` | the fetch over all shards, its memory, its waiting |
//! | `local` | its part on one shard |
//! | `respond` | the answer |

mod gather;
mod local;
mod respond;
mod session;

pub(crate) use local::Waiters;
pub(crate) use session::Sessions;

use super::call::{Api, Call};
use crate::metadata::Image;
use crate::partition::FetchError;
use crate::shard::Shard;
use gather::Limits;
use local::Item;
use protocol::ErrorCode;
use protocol::messages::{FetchRequest, FetchResponse};
use respond::Answered;
use runtime::shard::ShardId;
use runtime::time::{self, Instant};
use session::{PartitionKey, TopicKey, Wanted};
use std::future::Future;
use std::time::Duration;
use storage::PartitionId;

/// Versions from here on name topics by their ids (KIP-516).
const BY_ID_FROM: i16 = 13;

pub(crate) struct Fetch;

impl Api for Fetch {
    type Request = FetchRequest;

    fn handle(call: Call<FetchRequest>) -> impl Future<Output = FetchResponse> + 'static {
        let turn = call.connection.fetch_turns.take();
        async move {
            turn.comes().await;
            call.held.add_turn(turn);
            fetch(call).await
        }
    }
}

async fn fetch(call: Call<FetchRequest>) -> FetchResponse {
    let started = time::now();
    let Call { shard, held, header, request, .. } = call;
    let by_id = header.api_version >= BY_ID_FROM;
    let (wanted, forgotten) = asked(&request, by_id);
    let session = (request.session_id, request.session_epoch);
    let begun = shard.fetch_sessions.borrow_mut().begin(session, by_id, wanted, &forgotten, time::wall_ms());
    let (context, wanted) = match begun {
        Ok(begun) => begun,
        Err(error) => return FetchResponse { error_code: error.code(), ..FetchResponse::default() },
    };
    let limits = limits(&shard, &request, &wanted, started);
    let image = shard.image();
    let located: Vec<_> = wanted.iter().map(|(key, wanted)| locate(&image, key, wanted)).collect();
    let items: Vec<_> = located.iter().flatten().copied().collect();
    let mut parts =
        if items.is_empty() { Vec::new() } else { gather::gather(&shard, items, limits, &held).await }
            .into_iter();
    let unavailable = || Err(FetchError::Code(ErrorCode::NotLeaderOrFollower));
    let answered = wanted.into_iter().zip(located).map(|((key, wanted), located)| {
        let part = match located {
            Ok(_) => parts.next().unwrap_or_else(unavailable),
            Err(error) => Err(FetchError::Code(error)),
        };
        Answered { key, wanted, part }
    });
    let answered = answered.collect();
    respond::respond(&shard, context, answered, request.isolation_level, header.api_version)
}

/// The partitions that the request names, and those that it takes back.
fn asked(request: &FetchRequest, by_id: bool) -> (Vec<(PartitionKey, Wanted)>, Vec<PartitionKey>) {
    let mut wanted = Vec::new();
    for topic in &request.topics {
        let key = if by_id { TopicKey::Id(topic.topic_id) } else { TopicKey::Name(topic.topic.clone()) };
        for partition in &topic.partitions {
            let ask = Wanted {
                offset: partition.fetch_offset,
                bytes_max: partition.partition_max_bytes,
                current_leader_epoch: partition.current_leader_epoch,
                last_fetched_epoch: partition.last_fetched_epoch,
            };
            wanted.push(((key.clone(), partition.partition), ask));
        }
    }
    let mut forgotten = Vec::new();
    for topic in &request.forgotten_topics_data {
        let key = if by_id { TopicKey::Id(topic.topic_id) } else { TopicKey::Name(topic.topic.clone()) };
        forgotten.extend(topic.partitions.iter().map(|partition| (key.clone(), *partition)));
    }
    (wanted, forgotten)
}

fn limits(
    shard: &Shard,
    request: &FetchRequest,
    wanted: &[(PartitionKey, Wanted)],
    started: Instant,
) -> Limits {
    let size = |bytes: i32| usize::try_from(bytes).unwrap_or(0);
    let all: usize = wanted.iter().map(|(_, wanted)| size(wanted.bytes_max)).fold(0, usize::saturating_add);
    let bytes_max = size(request.max_bytes.min(shard.config.fetch_max_bytes)).min(all);
    Limits {
        bytes_min: size(request.min_bytes).min(bytes_max),
        bytes_max,
        until: started + Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
    }
}

/// The shard that owns a partition, and what to ask of it.
fn locate(
    image: &Image,
    (topic, partition): &PartitionKey,
    wanted: &Wanted,
) -> Result<(ShardId, Item), ErrorCode> {
    let topic = match topic {
        TopicKey::Id(id) => image.topic_by_id(id).ok_or(ErrorCode::UnknownTopicId)?,
        TopicKey::Name(name) => image.topic(name).ok_or(ErrorCode::UnknownTopicOrPartition)?,
    };
    let index = usize::try_from(*partition).ok().filter(|index| *index < topic.partitions.len());
    index.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let item = Item {
        id: PartitionId { topic_id: topic.id, partition: *partition },
        offset: wanted.offset,
        bytes_max: usize::try_from(wanted.bytes_max).unwrap_or(0),
        current_leader_epoch: wanted.current_leader_epoch,
        last_fetched_epoch: wanted.last_fetched_epoch,
    };
    Ok((image.shard_of(&topic.id, *partition), item))
}
