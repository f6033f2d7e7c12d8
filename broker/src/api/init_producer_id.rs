//! InitProducerId (22): a producer id for an idempotent producer.
//!
//! Without transactions: a request with a transactional id is answered UNSUPPORTED_VERSION, which the Java client and librdkafka
//! treat as fatal instead of trying again for ever.

use super::call::{Api, Call};
use protocol::ErrorCode;
use protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};

pub(crate) struct InitProducerId;

impl Api for InitProducerId {
    type Request = InitProducerIdRequest;

    async fn handle(call: Call<InitProducerIdRequest>) -> InitProducerIdResponse {
        let request = &call.request;
        let failed = |error: ErrorCode| InitProducerIdResponse {
            error_code: error.code(),
            producer_id: -1,
            producer_epoch: -1,
            ..InitProducerIdResponse::default()
        };
        // An id and an epoch come together or not at all.
        if (request.producer_id == -1) != (request.producer_epoch == -1) {
            return failed(ErrorCode::InvalidRequest);
        }
        match &request.transactional_id {
            Some(id) if id.is_empty() => return failed(ErrorCode::InvalidRequest),
            Some(_) => return failed(ErrorCode::UnsupportedVersion),
            None => {}
        }
        // As in Kafka, who comes with an id gets a new one all the same.
        match call.shard.producer_ids().next(&call.shard).await {
            Ok(producer_id) => {
                InitProducerIdResponse { producer_id, producer_epoch: 0, ..InitProducerIdResponse::default() }
            }
            Err(error) => {
                tracing::warn!(%error, "no producer id");
                failed(ErrorCode::CoordinatorNotAvailable)
            }
        }
    }
}
