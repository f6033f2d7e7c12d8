//! Heartbeat (12): a member shows that it is alive, and learns of a rebalance.

use super::call::{Api, Call, Reply};
use crate::coordinator::ask;
use crate::coordinator::group::{self, Request};
use futures::FutureExt;
use protocol::ErrorCode;
use protocol::messages::{HeartbeatRequest, HeartbeatResponse};
use std::future::Future;

pub(crate) struct Heartbeat;

impl Api for Heartbeat {
    type Request = HeartbeatRequest;

    fn handle(call: Call<HeartbeatRequest>) -> impl Future<Output: Into<Reply<HeartbeatResponse>>> + 'static {
        let group_id = call.request.group_id.clone();
        let answer = ask(&call.shard, &group_id, Request::Heartbeat(call.request));
        answer.map(|answer| {
            let error = match answer {
                group::Reply::Heartbeat => ErrorCode::None,
                other => other.error(),
            };
            // Sessions start anew when loading is done, so nothing is lost by waiting.
            let error = if error == ErrorCode::CoordinatorLoadInProgress { ErrorCode::None } else { error };
            HeartbeatResponse { error_code: error.code(), ..HeartbeatResponse::default() }
        })
    }
}
