//! DescribeGroups (15): state and members of consumer groups.

use super::call::{Api, Call};
use crate::coordinator::ask;
use crate::coordinator::group::{Reply, Request};
use futures::future::join_all;
use protocol::messages::describe_groups_response::DescribedGroup;
use protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse};

/// Every operation on a consumer group that Kafka names, as bits: without ACLs everyone may do all. READ, DELETE, DESCRIBE,
/// DESCRIBE_CONFIGS and ALTER_CONFIGS (codes 3, 6, 8, 10, 11).
const GROUP_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

pub(crate) struct DescribeGroups;

impl Api for DescribeGroups {
    type Request = DescribeGroupsRequest;

    async fn handle(call: Call<DescribeGroupsRequest>) -> DescribeGroupsResponse {
        let version = call.version();
        let wants_operations = call.request.include_authorized_operations;
        let describe = call.request.groups.into_iter().map(|group_id| {
            let answer =
                ask(&call.shard, &group_id, Request::Describe { version, groups: vec![group_id.clone()] });
            async move {
                let mut described = match answer.await {
                    Reply::Describe(groups) => groups.into_iter().next().unwrap_or_default(),
                    other => {
                        let error_code = other.error().code();
                        DescribedGroup { error_code, group_id, ..DescribedGroup::default() }
                    }
                };
                if wants_operations && described.error_code == 0 {
                    described.authorized_operations = GROUP_OPERATIONS;
                }
                described
            }
        });
        DescribeGroupsResponse { groups: join_all(describe).await, ..DescribeGroupsResponse::default() }
    }
}
