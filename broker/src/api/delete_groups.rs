//! DeleteGroups (42): removes empty consumer groups with their offsets.

use super::call::{Api, Call};
use crate::coordinator::ask;
use crate::coordinator::group::{Reply, Request};
use futures::future::join_all;
use protocol::messages::delete_groups_response::DeletableGroupResult;
use protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};
use std::collections::BTreeSet;

pub(crate) struct DeleteGroups;

impl Api for DeleteGroups {
    type Request = DeleteGroupsRequest;

    async fn handle(call: Call<DeleteGroupsRequest>) -> DeleteGroupsResponse {
        let groups: BTreeSet<_> = call.request.groups_names.into_iter().collect();
        let delete = groups.into_iter().map(|group_id| {
            let answer = ask(&call.shard, &group_id, Request::Delete { groups: vec![group_id.clone()] });
            async move {
                match answer.await {
                    Reply::Delete(results) => results.into_iter().next().unwrap_or_default(),
                    other => {
                        let error_code = other.error().code();
                        DeletableGroupResult { group_id, error_code, error_message: None }
                    }
                }
            }
        });
        DeleteGroupsResponse { results: join_all(delete).await, ..DeleteGroupsResponse::default() }
    }
}
