//! Produce (0): batches of many partitions, each to the shard that owns it, one answer for all.
//!
//! Order: batches of one connection reach their logs in the order of their requests; the checks, the split by shard and the
//! sending happen before the next request of the connection is read.
//! Without transactions: a transactional batch is refused.

mod recompress;
mod validate;

use super::call::{Api, Call, Reply};
use super::common::by_shard;
use crate::metadata::{TopicImage, topic_name};
use crate::partition::Appended;
use crate::shard::Shard;
use bytes::Bytes;
use futures::future::join_all;
use protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use protocol::messages::{ProduceRequest, ProduceResponse};
use protocol::record::BatchHeader;
use protocol::{ErrorCode, Str};
use std::future::Future;
use std::rc::Rc;
use storage::PartitionId;
use validate::Rejected;

pub(crate) struct Produce;

/// A batch on its way to its shard.
struct Piece {
    /// Topic and partition by their places in the request.
    slot: (usize, usize),
    id: PartitionId,
    batch: Bytes,
    header: BatchHeader,
}

type Outcome = Result<Appended, Rejected>;

impl Api for Produce {
    type Request = ProduceRequest;

    fn handle(call: Call<ProduceRequest>) -> impl Future<Output = Reply<ProduceResponse>> + 'static {
        let Call { shard, header, request, .. } = call;
        let acks = request.acks;
        let (mut response, pieces) = split(&shard, header.api_version, request);
        let owners = {
            let image = shard.image();
            by_shard(
                pieces
                    .into_iter()
                    .map(|piece| (image.shard_of(&piece.id.topic_id, piece.id.partition), piece)),
            )
        };
        let appends: Vec<_> = owners
            .into_iter()
            .map(|(owner, pieces)| {
                let slots: Vec<_> = pieces.iter().map(|piece| piece.slot).collect();
                let appended = shard.call(owner, move |shard| append_all(&shard, pieces, acks));
                async move { (slots, appended.await) }
            })
            .collect();
        async move {
            for (slots, outcomes) in join_all(appends).await {
                match outcomes {
                    Ok(outcomes) => slots
                        .into_iter()
                        .zip(outcomes)
                        .for_each(|(slot, outcome)| fill(&mut response, slot, outcome)),
                    Err(_gone) => {
                        let gone = || Err(Rejected::bare(ErrorCode::NotLeaderOrFollower));
                        slots.into_iter().for_each(|slot| fill(&mut response, slot, gone()));
                    }
                }
            }
            match acks {
                // The client learns of an error by the end of its connection, as in Kafka.
                0 if has_error(&response) => Reply::Close,
                0 => Reply::Nothing,
                _ => Reply::Response(response),
            }
        }
    }
}

/// Validates every batch; gives the answer with what is known already, and the batches that go on.
fn split(shard: &Rc<Shard>, version: i16, request: ProduceRequest) -> (ProduceResponse, Vec<Piece>) {
    let image = shard.image();
    let mut response = ProduceResponse::default();
    let mut pieces = Vec::new();
    let now_ms = runtime::time::wall_ms();
    for (topic_slot, data) in request.topic_data.into_iter().enumerate() {
        let TopicProduceData { name, topic_id, partition_data } = data;
        let topic = if version >= 13 { image.topic_by_id(&topic_id) } else { image.topic(&name) };
        let mut answers = Vec::with_capacity(partition_data.len());
        for (partition_slot, data) in partition_data.into_iter().enumerate() {
            let mut answer = unanswered(data.index);
            let checked =
                check_topic(topic.map(|t| &**t), version, request.acks, data.index).and_then(|topic| {
                    let PartitionProduceData { index, records, .. } = data;
                    let transactional = request.transactional_id.as_ref();
                    let valid = validate::validate(
                        records,
                        version,
                        &topic.settings,
                        transactional.is_some(),
                        now_ms,
                    );
                    valid.map(|(batch, header)| Piece {
                        slot: (topic_slot, partition_slot),
                        id: PartitionId { topic_id: topic.id, partition: index },
                        batch,
                        header,
                    })
                });
            match checked {
                Ok(piece) => pieces.push(piece),
                Err(rejected) => {
                    shard.metrics.produce_errors.add(1);
                    reject(&mut answer, rejected);
                }
            }
            answers.push(answer);
        }
        response.responses.push(TopicProduceResponse { name, topic_id, partition_responses: answers });
    }
    (response, pieces)
}

fn check_topic(
    topic: Option<&TopicImage>,
    version: i16,
    acks: i16,
    partition: i32,
) -> Result<&TopicImage, Rejected> {
    let Some(topic) = topic else {
        let by_id = version >= 13;
        let error = if by_id { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition };
        return Err(Rejected::bare(error));
    };
    if usize::try_from(partition).ok().is_none_or(|index| index >= topic.partitions.len()) {
        return Err(Rejected::bare(ErrorCode::UnknownTopicOrPartition));
    }
    if !(-1..=1).contains(&acks) {
        return Err(Rejected::bare(ErrorCode::InvalidRequiredAcks));
    }
    // Coordinators alone write to it: they would not know of anybody else's records before the next start.
    if topic_name::is_internal(&topic.name) {
        return Err(Rejected::new(
            ErrorCode::InvalidTopicException,
            "Clients cannot produce to an internal topic",
        ));
    }
    Ok(topic)
}

/// On the owning shard: appends in order, then waits for all.
fn append_all(
    shard: &Rc<Shard>,
    pieces: Vec<Piece>,
    acks: i16,
) -> impl Future<Output = Vec<Outcome>> + use<> {
    let shard = Rc::clone(shard);
    let appends: Vec<_> = pieces
        .into_iter()
        .map(|Piece { id, batch, header, .. }| {
            let (records, bytes) = (header.record_count, batch.len());
            let started = shard
                .partition_or_error(&id)
                .map(|partition| partition.append(shard.storage(), batch, header, acks));
            (started, records, bytes)
        })
        .collect();
    async move {
        let metrics = &shard.metrics;
        let outcomes = appends.into_iter().map(|(started, records, bytes)| async move {
            let outcome = match started {
                Ok(append) => append.await,
                Err(error) => Err(error),
            };
            match &outcome {
                Ok(appended) if appended.duplicate => metrics.produce_duplicates.add(1),
                Ok(_) => {
                    metrics.batches_in.add(1);
                    metrics.records_in.add(usize::try_from(records).unwrap_or(0));
                    metrics.record_bytes_in.add(bytes);
                }
                Err(_) => metrics.produce_errors.add(1),
            }
            outcome.map_err(Rejected::bare)
        });
        join_all(outcomes).await
    }
}

fn unanswered(index: i32) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        base_offset: -1,
        log_append_time_ms: -1,
        log_start_offset: -1,
        ..Default::default()
    }
}

fn fill(response: &mut ProduceResponse, (topic, partition): (usize, usize), outcome: Outcome) {
    let topic = response.responses.get_mut(topic);
    let Some(answer) = topic.and_then(|topic| topic.partition_responses.get_mut(partition)) else { return };
    match outcome {
        Ok(appended) => {
            answer.base_offset = appended.base_offset;
            answer.log_append_time_ms = appended.log_append_time_ms;
            answer.log_start_offset = appended.log_start_offset;
        }
        Err(rejected) => reject(answer, rejected),
    }
}

fn reject(answer: &mut PartitionProduceResponse, rejected: Rejected) {
    answer.error_code = rejected.error.code();
    answer.error_message = rejected.message.map(Str::from);
}

fn has_error(response: &ProduceResponse) -> bool {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    partitions.into_iter().any(|partition| partition.error_code != ErrorCode::None.code())
}
