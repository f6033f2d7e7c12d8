//! SyncGroup (14): the leader hands in the assignment, every member fetches its own.

use super::call::{Api, Call, Reply};
use crate::coordinator::ask;
use crate::coordinator::group::{self, Request};
use futures::FutureExt;
use futures::future::ready;
use protocol::ErrorCode;
use protocol::messages::{SyncGroupRequest, SyncGroupResponse};
use std::future::Future;

/// From this version on a member names the protocol that it means (KIP-559).
const VERSION_NAMES_PROTOCOL: i16 = 5;

pub(crate) struct SyncGroup;

impl Api for SyncGroup {
    type Request = SyncGroupRequest;

    fn handle(call: Call<SyncGroupRequest>) -> impl Future<Output: Into<Reply<SyncGroupResponse>>> + 'static {
        let body = call.request;
        let is_named = body.protocol_type.is_some() && body.protocol_name.is_some();
        if call.header.api_version >= VERSION_NAMES_PROTOCOL && !is_named {
            return ready(failed(ErrorCode::InconsistentGroupProtocol)).left_future();
        }
        let group_id = body.group_id.clone();
        let answer = ask(&call.shard, &group_id, Request::Sync(body));
        let response = answer.map(|answer| match answer {
            group::Reply::Sync(response) => response,
            other => failed(other.error()),
        });
        response.right_future()
    }
}

fn failed(error: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse { error_code: error.code(), ..SyncGroupResponse::default() }
}
