//! OffsetDelete (47): an administrator makes a consumer group forget offsets of topics that no member reads.

use super::call::{Api, Call, Reply};
use super::common::locate;
use crate::coordinator::ask;
use crate::coordinator::group::{self, Request};
use futures::FutureExt;
use protocol::ErrorCode;
use protocol::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use std::future::Future;

pub(crate) struct OffsetDelete;

impl Api for OffsetDelete {
    type Request = OffsetDeleteRequest;

    fn handle(
        call: Call<OffsetDeleteRequest>,
    ) -> impl Future<Output: Into<Reply<OffsetDeleteResponse>>> + 'static {
        let image = call.shard.image();
        let mut body = call.request;
        let mut missing = Vec::new();
        for topic in &mut body.topics {
            let name = topic.name.clone();
            let mut partitions = Vec::new();
            topic.partitions.retain(|asked| {
                let error = locate(&image, &name, asked.partition_index).err().unwrap_or(ErrorCode::None);
                if error != ErrorCode::None {
                    let (partition_index, error_code) = (asked.partition_index, error.code());
                    partitions.push(OffsetDeleteResponsePartition { partition_index, error_code });
                }
                error == ErrorCode::None
            });
            if !partitions.is_empty() {
                missing.push(OffsetDeleteResponseTopic { name, partitions });
            }
        }
        body.topics.retain(|topic| !topic.partitions.is_empty());
        let group_id = body.group_id.clone();
        let answer = ask(&call.shard, &group_id, Request::OffsetDelete(body));
        answer.map(|answer| match answer {
            group::Reply::OffsetDelete(mut response) => {
                merge(&mut response.topics, missing);
                response
            }
            other => {
                OffsetDeleteResponse { error_code: other.error().code(), ..OffsetDeleteResponse::default() }
            }
        })
    }
}

/// Adds partitions to the topics that they belong to: each topic stands once in a response.
fn merge(topics: &mut Vec<OffsetDeleteResponseTopic>, more: Vec<OffsetDeleteResponseTopic>) {
    for mut addition in more {
        match topics.iter_mut().find(|topic| topic.name == addition.name) {
            Some(topic) => topic.partitions.append(&mut addition.partitions),
            None => topics.push(addition),
        }
    }
}
