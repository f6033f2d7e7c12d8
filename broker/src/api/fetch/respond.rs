//! The answer to a fetch: every partition in full, or in a session those with something new.

use super::local::Part;
use super::session::{Context, NO_SESSION, PartitionKey, Told, TopicKey, Wanted};
use crate::partition::FetchError;
use crate::shard::Shard;
use protocol::messages::FetchResponse;
use protocol::messages::fetch_response::{EpochEndOffset, FetchableTopicResponse, PartitionData};
use protocol::{ErrorCode, Records};
use runtime::{random, time};

/// `isolation_level` of a client that wants no open or aborted transactions.
const READ_COMMITTED: i8 = 1;
/// Clients before this version may not know KAFKA_STORAGE_ERROR.
const STORAGE_ERROR_FROM: i16 = 6;

/// A partition that was fetched.
pub(super) struct Answered {
    pub(super) key: PartitionKey,
    pub(super) wanted: Wanted,
    pub(super) part: Part,
}

impl Answered {
    fn told(&self) -> Told {
        match &self.part {
            Ok(fetched) => Told {
                error: false,
                records: fetched.bytes > 0,
                high_watermark: fetched.high_watermark,
                log_start_offset: fetched.log_start_offset,
            },
            Err(_) => Told { error: true, records: false, high_watermark: -1, log_start_offset: -1 },
        }
    }
}

pub(super) fn respond(
    shard: &Shard,
    context: Context,
    mut answered: Vec<Answered>,
    isolation_level: i8,
    version: i16,
) -> FetchResponse {
    let now_ms = time::wall_ms();
    let session_id = match context {
        Context::Sessionless => NO_SESSION,
        Context::Full => {
            let by_id = version >= super::BY_ID_FROM;
            let partitions = answered.iter().map(|a| (a.key.clone(), a.wanted, a.told())).collect();
            let random_id = || i32::try_from(random::below(1 << 31)).unwrap_or(NO_SESSION);
            shard.fetch_sessions.borrow_mut().create(by_id, partitions, now_ms, random_id)
        }
        Context::Incremental { id, epoch } => {
            let told: Vec<_> = answered.iter().map(|a| (a.key.clone(), a.told())).collect();
            match shard.fetch_sessions.borrow_mut().tell((id, epoch), &told) {
                Ok(must) => {
                    let mut must = must.into_iter();
                    answered.retain(|_| must.next().unwrap_or(true));
                }
                Err(error) => {
                    return FetchResponse {
                        error_code: error.code(),
                        session_id: id,
                        ..FetchResponse::default()
                    };
                }
            }
            id
        }
    };
    let mut response = FetchResponse { session_id, ..FetchResponse::default() };
    for Answered { key: (topic, partition), part, .. } in answered {
        let data = partition_data(shard, partition, part, isolation_level, version);
        match response.responses.last_mut().filter(|last| is_topic(last, &topic)) {
            Some(last) => last.partitions.push(data),
            None => response.responses.push(topic_response(topic, data)),
        }
    }
    response
}

fn is_topic(response: &FetchableTopicResponse, topic: &TopicKey) -> bool {
    match topic {
        TopicKey::Id(id) => response.topic_id == *id,
        TopicKey::Name(name) => response.topic == *name,
    }
}

fn topic_response(topic: TopicKey, first: PartitionData) -> FetchableTopicResponse {
    let mut response = FetchableTopicResponse { partitions: vec![first], ..Default::default() };
    match topic {
        TopicKey::Id(id) => response.topic_id = id,
        TopicKey::Name(name) => response.topic = name,
    }
    response
}

fn partition_data(
    shard: &Shard,
    partition_index: i32,
    part: Part,
    isolation_level: i8,
    version: i16,
) -> PartitionData {
    let mut data = PartitionData {
        partition_index,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        records: Some(Records::new()),
        ..PartitionData::default()
    };
    match part {
        Ok(fetched) => {
            shard.metrics.record_bytes_out.add(fetched.bytes);
            data.high_watermark = fetched.high_watermark;
            // No transaction is ever open.
            data.last_stable_offset = fetched.high_watermark;
            data.log_start_offset = fetched.log_start_offset;
            data.aborted_transactions = (isolation_level == READ_COMMITTED).then(Vec::new);
            data.records = Some(Records::from(fetched.chunks));
        }
        Err(FetchError::Code(ErrorCode::KafkaStorageError)) if version < STORAGE_ERROR_FROM => {
            data.error_code = ErrorCode::NotLeaderOrFollower.code();
        }
        Err(FetchError::Code(error)) => data.error_code = error.code(),
        Err(FetchError::Diverging { leader_epoch, end_offset }) => {
            data.diverging_epoch = EpochEndOffset { epoch: leader_epoch, end_offset };
        }
    }
    data
}
