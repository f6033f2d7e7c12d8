//! CreatePartitions (37).

use super::call::{Api, Call};
use crate::metadata::decide::{self, Decision};
use crate::metadata::{self, Image};
use protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse};
use protocol::{ErrorCode, Str};

pub(crate) struct CreatePartitions;

impl Api for CreatePartitions {
    type Request = CreatePartitionsRequest;

    async fn handle(call: Call<CreatePartitionsRequest>) -> CreatePartitionsResponse {
        let Call { shard, request, .. } = call;
        let names: Vec<Str> = request.topics.iter().map(|topic| topic.name.clone()).collect();
        let brokers = shard.brokers();
        let decide = move |image: &Image| {
            let decision = decide::create_partitions(image, &brokers, &request.topics);
            let records = if request.validate_only { Vec::new() } else { decision.records };
            Decision { records, reply: decision.reply }
        };
        let results = match metadata::change(&shard, decide).await {
            Ok(results) => results,
            Err(error) => names.into_iter().map(|name| (name, Err(error.refusal()))).collect(),
        };
        let results = results.into_iter().map(|(name, result)| {
            let refusal = result.err();
            CreatePartitionsTopicResult {
                name,
                error_code: refusal.as_ref().map_or(ErrorCode::None, |refusal| refusal.error).code(),
                error_message: refusal.map(|refusal| Str::from(refusal.message)),
            }
        });
        CreatePartitionsResponse { results: results.collect(), ..CreatePartitionsResponse::default() }
    }
}
