//! ListGroups (16): the consumer groups of this broker, filtered by state (KIP-518) and type (KIP-848).

use super::call::{Api, Call};
use crate::coordinator::ask_all;
use crate::coordinator::group::{Reply, Request};
use protocol::messages::{ListGroupsRequest, ListGroupsResponse};

pub(crate) struct ListGroups;

impl Api for ListGroups {
    type Request = ListGroupsRequest;

    async fn handle(call: Call<ListGroupsRequest>) -> ListGroupsResponse {
        let request = Request::List { states: call.request.states_filter, types: call.request.types_filter };
        let mut response = ListGroupsResponse::default();
        for reply in ask_all(&call.shard, request).await {
            match reply {
                Reply::List(mut groups) => response.groups.append(&mut groups),
                // A part of the groups would look like all of them.
                other => {
                    let error_code = other.error().code();
                    return ListGroupsResponse { error_code, ..ListGroupsResponse::default() };
                }
            }
        }
        response.groups.sort_unstable_by(|a, b| a.group_id.cmp(&b.group_id));
        response
    }
}
