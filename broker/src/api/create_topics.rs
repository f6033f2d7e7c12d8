//! CreateTopics (19).

use super::call::{Api, Call};
use super::describe_configs::topic_entries;
use crate::metadata::decide::{self, Created, Decision, Refusal};
use crate::metadata::{self, Image};
use crate::server::new_uuid;
use crate::shard::Shard;
use protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use protocol::{ErrorCode, Str};

pub(crate) struct CreateTopics;

impl Api for CreateTopics {
    type Request = CreateTopicsRequest;

    async fn handle(call: Call<CreateTopicsRequest>) -> CreateTopicsResponse {
        let Call { shard, request, .. } = call;
        let names: Vec<Str> = request.topics.iter().map(|topic| topic.name.clone()).collect();
        let brokers = shard.brokers();
        let decide = move |image: &Image| {
            let decision = decide::create_topics(image, &brokers, &request.topics, new_uuid);
            let records = if request.validate_only { Vec::new() } else { decision.records };
            Decision { records, reply: decision.reply }
        };
        let results = match metadata::change(&shard, decide).await {
            Ok(results) => results,
            Err(error) => names.into_iter().map(|name| (name, Err(error.refusal()))).collect(),
        };
        let topics = results.into_iter().map(|(name, result)| respond(&shard, name, result)).collect();
        CreateTopicsResponse { topics, ..CreateTopicsResponse::default() }
    }
}

fn respond(shard: &Shard, name: Str, result: Result<Created, Refusal>) -> CreatableTopicResult {
    match result {
        Ok(created) => CreatableTopicResult {
            name,
            topic_id: created.id,
            num_partitions: created.partition_count,
            replication_factor: created.replication_factor,
            configs: Some(
                topic_entries(&shard.config, &created.configs)
                    .map(|entry| CreatableTopicConfigs {
                        name: Str::from(entry.name),
                        value: entry.value.map(Str::from),
                        read_only: false,
                        config_source: entry.source,
                        is_sensitive: false,
                    })
                    .collect(),
            ),
            ..CreatableTopicResult::default()
        },
        Err(refusal) => CreatableTopicResult {
            name,
            error_code: refusal.error.code(),
            error_message: Some(Str::from(refusal.message)),
            topic_config_error_code: ErrorCode::None.code(),
            num_partitions: -1,
            replication_factor: -1,
            configs: Some(Vec::new()),
            ..CreatableTopicResult::default()
        },
    }
}
