//! FindCoordinator (10): which broker coordinates a consumer group. Makes `__consumer_offsets` when it is first needed.
//!
//! There are no transactions and no share groups yet; their coordinators are refused for good, so that a client fails
//! with a reason and does not ask for ever.

use super::call::{Api, Call};
use super::common::advertised_node;
use crate::metadata::{ensure_topic, topic_name::CONSUMER_OFFSETS};
use protocol::messages::find_coordinator_response::Coordinator;
use protocol::messages::{FindCoordinatorRequest, FindCoordinatorResponse};
use protocol::{ErrorCode, Str};

const KEY_TYPE_GROUP: i8 = 0;
const KEY_TYPE_TRANSACTION: i8 = 1;
const KEY_TYPE_SHARE: i8 = 2;
/// From this version on several coordinators are asked for at once (KIP-699).
const VERSION_BATCHED: i16 = 4;

pub(crate) struct FindCoordinator;

impl Api for FindCoordinator {
    type Request = FindCoordinatorRequest;

    async fn handle(call: Call<FindCoordinatorRequest>) -> FindCoordinatorResponse {
        let found = find(&call).await;
        if call.version() >= VERSION_BATCHED {
            let keys = call.request.coordinator_keys;
            let coordinators = keys.into_iter().map(|key| Coordinator { key, ..found.clone() }).collect();
            return FindCoordinatorResponse { coordinators, ..FindCoordinatorResponse::default() };
        }
        FindCoordinatorResponse {
            error_code: found.error_code,
            error_message: found.error_message,
            node_id: found.node_id,
            host: found.host,
            port: found.port,
            ..FindCoordinatorResponse::default()
        }
    }
}

/// The coordinator of every key: one node coordinates all.
async fn find(call: &Call<FindCoordinatorRequest>) -> Coordinator {
    match call.request.key_type {
        KEY_TYPE_GROUP => {}
        KEY_TYPE_TRANSACTION => {
            return refused(ErrorCode::UnsupportedVersion, "This broker does not serve transactions yet.");
        }
        KEY_TYPE_SHARE => {
            return refused(ErrorCode::UnsupportedVersion, "This broker does not serve share groups yet.");
        }
        _ => return refused(ErrorCode::InvalidRequest, "Unknown type of coordinator."),
    }
    if let Err(refusal) = ensure_topic(&call.shard, CONSUMER_OFFSETS).await {
        tracing::warn!(
            topic = CONSUMER_OFFSETS,
            reason = refusal.message,
            "creating the topic of consumer groups"
        );
        return refused(ErrorCode::CoordinatorNotAvailable, "The topic of consumer groups is not available.");
    }
    let node = advertised_node(&call.shard, &call.connection);
    Coordinator {
        key: Str::new(),
        node_id: node.id,
        host: node.host,
        port: node.port,
        error_code: ErrorCode::None.code(),
        error_message: None,
    }
}

fn refused(error: ErrorCode, message: &'static str) -> Coordinator {
    Coordinator {
        key: Str::new(),
        node_id: -1,
        host: Str::new(),
        port: -1,
        error_code: error.code(),
        error_message: Some(Str::from_static(message)),
    }
}
