//! JoinGroup (11): a member enters its consumer group. The answer takes as long as the others need to join.

use super::call::{Api, Call, Reply};
use crate::coordinator::ask;
use crate::coordinator::group::{self, Client, Request};
use protocol::Str;
use protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use std::future::Future;

/// Before this version the name of the protocol cannot be null.
const VERSION_NULLABLE_PROTOCOL: i16 = 7;

pub(crate) struct JoinGroup;

impl Api for JoinGroup {
    type Request = JoinGroupRequest;

    fn handle(call: Call<JoinGroupRequest>) -> impl Future<Output: Into<Reply<JoinGroupResponse>>> + 'static {
        let version = call.version();
        let mut body = call.request;
        if version == 0 {
            body.rebalance_timeout_ms = body.session_timeout_ms;
        }
        let client = Client {
            id: call.header.client_id.unwrap_or_default(),
            host: Str::from(format!("/{}", call.connection.peer.ip())),
        };
        let (group_id, member_id) = (body.group_id.clone(), body.member_id.clone());
        let answer = ask(&call.shard, &group_id, Request::Join { version, client, body });
        async move {
            let mut response = match answer.await {
                group::Reply::Join(response) => response,
                other => {
                    let error_code = other.error().code();
                    JoinGroupResponse { error_code, member_id, ..JoinGroupResponse::default() }
                }
            };
            if version < VERSION_NULLABLE_PROTOCOL {
                response.protocol_name.get_or_insert_default();
            }
            response
        }
    }
}
