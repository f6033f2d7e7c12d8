//! One consumer group without members: it stores rising offsets and asks for them.

use std::rc::Rc;

use protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use protocol::messages::{FindCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest};
use protocol::{ErrorCode, Str};
use runtime::time;

use crate::checks;
use crate::client::Link;
use crate::dice::Dice;
use crate::history::Stored;
use crate::timeline::{self, Sometimes};
use crate::world::World;

const GROUP: &str = "g";
const TOPIC: &str = "t0";

/// Stores and asks until the run winds down.
pub(crate) async fn run(world: Rc<World>) {
    let dice = Dice::new(world.plan.seed, "committer");
    let mut link = Link::new(&world);
    let mut offset = 0;
    // The topic of the offsets is made when a coordinator is first looked for.
    while !world.winding_down.get() {
        let request = FindCoordinatorRequest {
            coordinator_keys: vec![Str::from(GROUP)],
            ..FindCoordinatorRequest::default()
        };
        let found = link.call(4, &request).await;
        if found.is_ok_and(|found| found.coordinators.first().is_some_and(|found| found.error_code == 0)) {
            break;
        }
        time::sleep(dice.millis(20..=80)).await;
    }
    while !world.winding_down.get() {
        offset += 1;
        let done = store(&world, &mut link, offset).await.is_some();
        if done && dice.chance(40) {
            ask(&world, &mut link).await;
        }
        time::sleep(dice.millis(5..=100)).await;
    }
}

/// Stores an offset; none when it is not known to be stored.
async fn store(world: &World, link: &mut Link, offset: i64) -> Option<()> {
    let partition = OffsetCommitRequestPartition {
        partition_index: 0,
        committed_offset: offset,
        committed_leader_epoch: -1,
        ..OffsetCommitRequestPartition::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: Str::from(TOPIC),
        partitions: vec![partition],
        ..OffsetCommitRequestTopic::default()
    };
    let request = OffsetCommitRequest {
        group_id: Str::from(GROUP),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..OffsetCommitRequest::default()
    };
    let asked_at = world.history.borrow_mut().tick();
    let response = link.call(8, &request).await.ok()?;
    let answer = response.topics.first().and_then(|topic| topic.partitions.first())?;
    judge(world, answer.error_code)?;
    let mut history = world.history.borrow_mut();
    let answered_at = history.tick();
    history.committed.push(Stored { asked_at, answered_at, offset });
    Some(())
}

/// Asks for the stored offset; none when there is no answer.
pub(crate) async fn ask(world: &World, link: &mut Link) -> Option<()> {
    let topics = OffsetFetchRequestTopics {
        name: Str::from(TOPIC),
        partition_indexes: vec![0],
        ..OffsetFetchRequestTopics::default()
    };
    let group = OffsetFetchRequestGroup {
        group_id: Str::from(GROUP),
        topics: Some(vec![topics]),
        ..OffsetFetchRequestGroup::default()
    };
    let request = OffsetFetchRequest { groups: vec![group], ..OffsetFetchRequest::default() };
    let asked_at = world.history.borrow_mut().tick();
    let response = link.call(8, &request).await.ok()?;
    let group = response.groups.first()?;
    judge(world, group.error_code)?;
    let answer = group.topics.first().and_then(|topic| topic.partitions.first())?;
    judge(world, answer.error_code)?;
    let mut history = world.history.borrow_mut();
    let answered_at = history.tick();
    history.fetched.push(Stored { asked_at, answered_at, offset: answer.committed_offset });
    if answer.committed_offset > 0 {
        timeline::met(Sometimes::OffsetRead);
    }
    Some(())
}

/// Some for success; notes an error that the situation does not justify.
fn judge(world: &World, code: i16) -> Option<()> {
    match ErrorCode::from_code(code) {
        Some(ErrorCode::None) => return Some(()),
        // It loads, or it ends.
        Some(
            ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::RequestTimedOut,
        ) => {}
        Some(ErrorCode::KafkaStorageError) if world.storage_may_refuse() => {}
        other => world.breach(checks::FITTING_ANSWERS, format!("the group was told {other:?}")),
    }
    None
}
