//! [`Coordinators`]: the coordinators of one shard, which come and go with its partitions of `__consumer_offsets`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use protocol::ErrorCode;
use runtime::sync::oneshot;
use runtime::task::{self, Queue};
use storage::PartitionId;

use super::group::{GroupConfig, Reply, Request};
use super::runtime::Coordinator;
use crate::config::NodeConfig;
use crate::metadata::topic_name::CONSUMER_OFFSETS;
use crate::partition::Partition;
use crate::shard::Shard;

/// The coordinators of one shard.
#[derive(Default)]
pub struct Coordinators {
    by_partition: RefCell<BTreeMap<PartitionId, Rc<Coordinator>>>,
}

impl Coordinators {
    /// Hands a request to the coordinator of this partition.
    pub(super) fn submit(&self, id: &PartitionId, request: Request) -> oneshot::Receiver<Reply> {
        let coordinator = self.by_partition.borrow().get(id).cloned();
        match coordinator {
            Some(coordinator) => coordinator.submit(request),
            None => {
                let (answer, answered) = oneshot::channel();
                answer.send(Reply::Failed(ErrorCode::NotCoordinator));
                answered
            }
        }
    }

    /// Hands a request to every coordinator.
    pub(super) fn submit_to_all(&self, request: &Request) -> Vec<oneshot::Receiver<Reply>> {
        let all: Vec<_> = self.by_partition.borrow().values().cloned().collect();
        all.into_iter().map(|coordinator| coordinator.submit(request.clone())).collect()
    }
}

/// Takes over the consumer groups of a partition of `__consumer_offsets`; other partitions are none of its business.
/// The log is read in the background, and until then clients are told that loading is in progress. On a new partition
/// there is nothing to read, and its coordinator serves on return.
pub(crate) async fn partition_added(shard: &Rc<Shard>, partition: &Rc<Partition>) {
    if *partition.topic != *CONSUMER_OFFSETS {
        return;
    }
    let coordinator = Coordinator::new(shard, partition, group_config(&shard.config));
    let before = shard.coordinators.by_partition.borrow_mut().insert(partition.id, Rc::clone(&coordinator));
    assert!(before.is_none(), "a partition is added once");
    shard.keep(task::spawn(Rc::clone(&coordinator).run_timers()));
    if partition.group().log().log_end_offset() == 0 {
        coordinator.load().await;
    } else {
        shard.keep(task::spawn_in(Queue::Background, coordinator.load()));
    }
}

/// Lets the consumer groups of a partition go.
pub(crate) fn partition_removed(shard: &Rc<Shard>, id: PartitionId) {
    let coordinator = shard.coordinators.by_partition.borrow_mut().remove(&id);
    if let Some(coordinator) = coordinator {
        coordinator.end();
    }
}

fn group_config(config: &NodeConfig) -> GroupConfig {
    let bytes = |setting: i32| usize::try_from(setting).unwrap_or(0);
    GroupConfig {
        session_timeout_min_ms: config.group_min_session_timeout_ms,
        session_timeout_max_ms: config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms: config.group_initial_rebalance_delay_ms,
        members_max: bytes(config.group_max_size),
        offsets_retention_ms: i64::from(config.offsets_retention_minutes) * 60_000,
        offsets_retention_check_interval_ms: config.offsets_retention_check_interval_ms,
        offset_metadata_max_bytes: bytes(config.offset_metadata_max_bytes),
        ..GroupConfig::default()
    }
}
