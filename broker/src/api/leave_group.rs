//! LeaveGroup (13): members go before their sessions end. Before version 3 one at a time, without an instance id.

use super::call::{Api, Call, Reply};
use crate::coordinator::ask;
use crate::coordinator::group::{self, Request};
use futures::FutureExt;
use protocol::messages::leave_group_request::MemberIdentity;
use protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};
use std::future::Future;

const VERSION_BATCHED: i16 = 3;

pub(crate) struct LeaveGroup;

impl Api for LeaveGroup {
    type Request = LeaveGroupRequest;

    fn handle(
        call: Call<LeaveGroupRequest>,
    ) -> impl Future<Output: Into<Reply<LeaveGroupResponse>>> + 'static {
        let is_batched = call.version() >= VERSION_BATCHED;
        let LeaveGroupRequest { group_id, member_id, mut members } = call.request;
        if !is_batched {
            members = vec![MemberIdentity { member_id, group_instance_id: None, reason: None }];
        }
        let answer = ask(&call.shard, &group_id.clone(), Request::Leave { group_id, members });
        answer.map(move |answer| {
            let mut response = LeaveGroupResponse::default();
            match answer {
                group::Reply::Leave(members) if is_batched => response.members = members,
                group::Reply::Leave(members) => {
                    response.error_code = members.first().map_or(0, |member| member.error_code);
                }
                other => response.error_code = other.error().code(),
            }
            response
        })
    }
}
