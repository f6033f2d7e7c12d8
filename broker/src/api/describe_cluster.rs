//! DescribeCluster (60): the brokers and the controller (KIP-700).

use super::call::{Api, Call};
use super::common::{CLUSTER_OPERATIONS, advertised_node};
use protocol::messages::describe_cluster_response::DescribeClusterBroker;
use protocol::messages::{DescribeClusterRequest, DescribeClusterResponse};
use protocol::{ErrorCode, Str};

/// `endpoint_type` of brokers; 2 are controllers, which have no listeners of their own here.
const BROKERS: i8 = 1;

pub(crate) struct DescribeCluster;

impl Api for DescribeCluster {
    type Request = DescribeClusterRequest;

    async fn handle(call: Call<DescribeClusterRequest>) -> DescribeClusterResponse {
        let request = &call.request;
        if request.endpoint_type != BROKERS {
            return DescribeClusterResponse {
                error_code: ErrorCode::MismatchedEndpointType.code(),
                error_message: Some(Str::from("This node answers for brokers, endpoint type 1")),
                ..DescribeClusterResponse::default()
            };
        }
        let node = advertised_node(&call.shard, &call.connection);
        let operations = request.include_cluster_authorized_operations;
        DescribeClusterResponse {
            endpoint_type: BROKERS,
            cluster_id: Str::from(call.shard.identity().cluster_id.as_str()),
            controller_id: node.id,
            brokers: vec![DescribeClusterBroker {
                broker_id: node.id,
                host: node.host,
                port: node.port,
                ..DescribeClusterBroker::default()
            }],
            cluster_authorized_operations: if operations { CLUSTER_OPERATIONS } else { i32::MIN },
            ..DescribeClusterResponse::default()
        }
    }
}
