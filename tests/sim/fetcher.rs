//! Fetchers: they read on where they were, or anywhere, with long polls and small limits, and ask for the offsets at the ends.

use std::rc::Rc;

use protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use protocol::messages::fetch_response::PartitionData;
use protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use protocol::messages::{FetchRequest, ListOffsetsRequest};
use protocol::record::{RecordIter, split_batches, verify_crc};
use protocol::{ErrorCode, Str};
use runtime::time;

use crate::checks;
use crate::client::Link;
use crate::dice::Dice;
use crate::history::{History, Mark, Tick};
use crate::value::{Place, Value};
use crate::world::World;

const FETCH_VERSION: i16 = 12;
const LIST_OFFSETS_VERSION: i16 = 7;
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
/// Bytes that a batch may have when it is decompressed; none is compressed here.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// One fetch of one partition, and what came of it.
pub(crate) struct Fetched {
    pub records: Vec<(i64, Value)>,
    pub high_watermark: i64,
    pub log_start: i64,
}

/// Reads until the run ends.
pub(crate) async fn run(world: Rc<World>, number: u64) {
    let dice = Dice::new(world.plan.seed, &format!("fetcher {number}"));
    let mut link = Link::new(&world);
    let mut positions: Vec<i64> = world.plan.places.iter().map(|_| 0).collect();
    while !world.ended.get() {
        let at = dice.between(0..=positions.len() as u64 - 1) as usize;
        let (Some(place), Some(position)) = (world.plan.places.get(at).copied(), positions.get_mut(at))
        else {
            continue;
        };
        if dice.chance(15) {
            let _ = ends(&world, &mut link, place).await;
        } else {
            let from = if dice.chance(25) {
                dice.between(0..=world.history.borrow().end_of(place) as u64) as i64
            } else {
                *position
            };
            let bytes_max = dice.pick(&[1, 4000, 1 << 20]);
            let wait_ms = dice.pick(&[0, 50, 400]);
            match fetch(&world, &mut link, place, from, bytes_max, wait_ms).await {
                Some(fetched) if from == *position => {
                    *position = fetched.records.last().map_or(from, |(offset, _)| offset + 1);
                }
                Some(_) => {}
                None => time::sleep(dice.millis(5..=60)).await,
            }
        }
        time::sleep(dice.millis(1..=40)).await;
    }
}

/// Fetches once, and notes all that it shows; none when there is no answer, or an error.
pub(crate) async fn fetch(
    world: &World,
    link: &mut Link,
    place: Place,
    from: i64,
    bytes_max: i32,
    wait_ms: i32,
) -> Option<Fetched> {
    let partition = FetchPartition {
        partition: place.partition,
        fetch_offset: from,
        partition_max_bytes: bytes_max,
        ..FetchPartition::default()
    };
    let name = Str::from(place.topic_name().as_str());
    let topic = FetchTopic { topic: name, partitions: vec![partition], ..FetchTopic::default() };
    let request = FetchRequest {
        max_wait_ms: wait_ms,
        min_bytes: 1,
        max_bytes: 1 << 24,
        session_epoch: -1,
        topics: vec![topic],
        ..FetchRequest::default()
    };
    let asked_at = world.history.borrow_mut().tick();
    let mut response = link.call(FETCH_VERSION, &request).await.ok()?;
    let data = response.responses.pop().and_then(|mut topic| topic.partitions.pop())?;
    match ErrorCode::from_code(data.error_code) {
        Some(ErrorCode::None) => {
            let mut history = world.history.borrow_mut();
            mark(&mut history, place, asked_at, data.high_watermark);
            Some(show(&mut history, place, from, &data))
        }
        // No client asks beyond what it knows to be there.
        Some(ErrorCode::OffsetOutOfRange) => {
            mark(&mut world.history.borrow_mut(), place, asked_at, from - 1);
            None
        }
        // A read failed, or the shard is ending.
        Some(ErrorCode::KafkaStorageError | ErrorCode::NotLeaderOrFollower) if world.storage_may_refuse() => {
            None
        }
        other => {
            world.breach(checks::FITTING_ANSWERS, format!("a fetch of {place} was told {other:?}"));
            None
        }
    }
}

fn mark(history: &mut History, place: Place, asked_at: Tick, high_watermark: i64) {
    let answered_at = history.tick();
    history.marks.push(Mark { place, asked_at, answered_at, high_watermark });
}

/// Notes the records of a fetch, which must be whole, follow each other from the offset asked for, and lie below the mark.
fn show(history: &mut History, place: Place, from: i64, data: &PartitionData) -> Fetched {
    let mut fetched = Fetched {
        records: Vec::new(),
        high_watermark: data.high_watermark,
        log_start: data.log_start_offset,
    };
    let bytes = data.records.clone().map(protocol::Records::into_bytes).unwrap_or_default();
    let mut expected = None;
    for batch in split_batches(bytes) {
        let records = batch.and_then(|(_, batch)| {
            verify_crc(&batch)?;
            RecordIter::of_batch(&batch, BATCH_BYTES_MAX)?.collect::<Result<Vec<_>, _>>()
        });
        let Ok(records) = records else {
            history.garbage.push(format!("{place}: a fetch from {from} holds a damaged batch"));
            break;
        };
        for record in records {
            let offset = record.offset;
            if expected.is_some_and(|expected| expected != offset) || (expected.is_none() && offset > from) {
                history.torn_reads.push(format!("{place}: a fetch from {from} skips to {offset}"));
            }
            expected = Some(offset + 1);
            if offset >= data.high_watermark {
                history
                    .torn_reads
                    .push(format!("{place}: {offset} is shown at mark {}", data.high_watermark));
            }
            match record.value.as_deref().and_then(Value::decode) {
                Some(value) => {
                    history.shown.entry((place, offset)).or_default().insert(value);
                    fetched.records.push((offset, value));
                }
                None => history.garbage.push(format!("{place}: no value at offset {offset}")),
            }
        }
    }
    fetched.records.retain(|(offset, _)| *offset >= from);
    fetched
}

/// Asks for both ends of a partition; none when there is no answer.
async fn ends(world: &World, link: &mut Link, place: Place) -> Option<()> {
    for timestamp in [EARLIEST, LATEST] {
        let partition = ListOffsetsPartition {
            partition_index: place.partition,
            timestamp,
            ..ListOffsetsPartition::default()
        };
        let name = Str::from(place.topic_name().as_str());
        let topic = ListOffsetsTopic { name, partitions: vec![partition] };
        let request =
            ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() };
        let asked_at = world.history.borrow_mut().tick();
        let response = link.call(LIST_OFFSETS_VERSION, &request).await.ok()?;
        let answer = response.topics.first().and_then(|topic| topic.partitions.first())?;
        if answer.error_code != 0 {
            return None;
        }
        if timestamp == LATEST {
            mark(&mut world.history.borrow_mut(), place, asked_at, answer.offset);
        } else if answer.offset != 0 {
            // Nothing is ever deleted in these runs.
            let what = format!("{place}: the first offset is {}", answer.offset);
            world.history.borrow_mut().torn_reads.push(what);
        }
    }
    Some(())
}
