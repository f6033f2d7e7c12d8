//! Topics, produce, fetch, offsets: what every client does, on a node of several shards.

use crate::client::Client;
use crate::world::*;
use protocol::ErrorCode;
use protocol::messages::delete_topics_request::DeleteTopicState;
use protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use protocol::messages::{
    DeleteTopicsRequest, FetchRequest, ListOffsetsRequest, MetadataRequest, ProduceRequest,
};
use runtime::task;
use std::time::Duration;

#[test]
fn what_is_produced_is_fetched_from_every_partition() {
    let world = World::new(1);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 7).await;
        let batches = (0..7).map(|p| (p, batch(100 * p as u32, 3, None))).collect();
        let response = client.call(9, &produce_request("t", -1, batches)).await.expect("answered");
        let answers = &response.responses[0].partition_responses;
        assert!(
            answers.iter().all(|answer| answer.error_code == 0 && answer.base_offset == 0),
            "{answers:?}"
        );
        for partition in 0..7 {
            let first = 100 * partition as u32;
            let expected = vec![(0, first), (1, first + 1), (2, first + 2)];
            assert_eq!(read_all(&mut client, "t", partition).await, expected);
        }
    });
}

#[test]
fn a_topic_that_is_asked_for_is_created_and_survives_a_restart() {
    let world = World::new(2);
    let address = world.address();
    let id = world.run(async move {
        let mut client = Client::connect(address).await;
        let topic = metadata(&mut client, "auto").await;
        assert_eq!((topic.error_code, topic.partitions.len()), (0, 1));
        assert_eq!(produce(&mut client, "auto", 0, batch(1, 2, None)).await.base_offset, 0);
        topic.topic_id
    });
    world.bounce();
    world.run(async move {
        let mut client = Client::connect(address).await;
        assert_eq!(metadata(&mut client, "auto").await.topic_id, id);
        assert_eq!(produce(&mut client, "auto", 0, batch(3, 1, None)).await.base_offset, 2);
        assert_eq!(read_all(&mut client, "auto", 0).await, vec![(0, 1), (1, 2), (2, 3)]);
    });
}

#[test]
fn a_fetch_waits_for_a_record_and_no_longer() {
    let world = World::new(3);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 9).await;
        let mut consumer = Client::connect(address).await;
        let all: Vec<_> = (0..9).map(|partition| (partition, 0)).collect();
        let request = FetchRequest { max_wait_ms: 60_000, ..fetch_request("t", &all) };
        let waiting = task::spawn(async move {
            let response = consumer.call(12, &request).await.expect("answered");
            (runtime::time::now(), response)
        });
        runtime::time::sleep(Duration::from_secs(2)).await;
        let produced_at = runtime::time::now();
        assert_eq!(produce(&mut client, "t", 5, batch(1, 1, None)).await.error_code, 0);
        let (answered_at, response) = waiting.await.expect("not cancelled");
        let with_records: Vec<_> = response.responses[0]
            .partitions
            .iter()
            .filter(|partition| !values(partition).is_empty())
            .map(|partition| partition.partition_index)
            .collect();
        assert_eq!(with_records, [5]);
        assert!(answered_at.duration_since(produced_at) < Duration::from_secs(1));
        // And one that gets nothing ends when it should.
        let request = FetchRequest { max_wait_ms: 500, ..fetch_request("t", &[(0, 0)]) };
        let started = runtime::time::now();
        let response = client.call(12, &request).await.expect("answered");
        assert!(values(&response.responses[0].partitions[0]).is_empty());
        assert!((450..2000).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    });
}

#[test]
fn a_fetch_respects_its_limits_and_makes_progress() {
    let world = World::new(4);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 2).await;
        for partition in 0..2 {
            for first in [0, 10] {
                produce(&mut client, "t", partition, batch(first, 10, None)).await;
            }
        }
        let one_batch = batch(0, 10, None).len();
        let request = FetchRequest { max_bytes: 1, ..fetch_request("t", &[(0, 0), (1, 0)]) };
        let response = client.call(12, &request).await.expect("answered");
        let lens = |response: &protocol::messages::FetchResponse| -> Vec<usize> {
            response.responses[0]
                .partitions
                .iter()
                .map(|p| p.records.as_ref().map_or(0, |r| r.len()))
                .collect()
        };
        assert_eq!(lens(&response), [one_batch, 0], "one batch, though it is larger");
        let mut request = fetch_request("t", &[(0, 0)]);
        request.topics[0].partitions[0].partition_max_bytes = i32::try_from(one_batch).expect("small") + 1;
        let response = client.call(12, &request).await.expect("answered");
        assert_eq!(lens(&response), [one_batch]);
    });
}

#[test]
fn fetch_sessions_tell_only_what_is_new() {
    let world = World::new(5);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        let id = create_topic(&mut client, "t", 4).await;
        let partitions = (0..4).map(|partition| FetchPartition {
            partition,
            partition_max_bytes: 1 << 20,
            ..FetchPartition::default()
        });
        let topic = FetchTopic { topic_id: id, partitions: partitions.collect(), ..FetchTopic::default() };
        let full = FetchRequest { topics: vec![topic], session_epoch: 0, ..fetch_request("t", &[]) };
        let response = client.call(17, &full).await.expect("answered");
        assert_eq!((response.error_code, response.responses[0].partitions.len()), (0, 4));
        let session_id = response.session_id;
        assert_ne!(session_id, 0);
        produce(&mut client, "t", 2, batch(7, 1, None)).await;
        let next = |session_epoch| FetchRequest { topics: vec![], session_id, session_epoch, ..full.clone() };
        let response = client.call(17, &next(1)).await.expect("answered");
        let partitions = &response.responses[0].partitions;
        assert_eq!(partitions.iter().map(|p| p.partition_index).collect::<Vec<_>>(), [2]);
        assert_eq!(response.responses[0].topic_id, id);
        let stale = client.call(17, &next(1)).await.expect("answered");
        assert_eq!(stale.error_code, ErrorCode::InvalidFetchSessionEpoch.code());
    });
}

#[test]
fn offsets_are_listed() {
    let world = World::new(6);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 1).await;
        produce(&mut client, "t", 0, batch(0, 4, None)).await;
        for (timestamp, expected) in [(-2, 0), (-1, 4), (-3, 0), (0, 0), (1_750_000_000_001, -1)] {
            let partition =
                ListOffsetsPartition { timestamp, current_leader_epoch: -1, ..Default::default() };
            let topic = ListOffsetsTopic { name: "t".into(), partitions: vec![partition] };
            let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
            let response = client.call(7, &request).await.expect("answered");
            let found = &response.topics[0].partitions[0];
            assert_eq!((found.error_code, found.offset), (0, expected), "timestamp {timestamp}");
        }
    });
}

#[test]
fn a_deleted_topic_is_gone_and_its_name_is_free() {
    let world = World::new(7);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        let first = create_topic(&mut client, "t", 3).await;
        produce(&mut client, "t", 0, batch(0, 4, None)).await;
        let mut waiting = Client::connect(address).await;
        let request = FetchRequest { max_wait_ms: 60_000, ..fetch_request("t", &[(1, 0)]) };
        waiting.send(12, &request).await.expect("sent");
        runtime::time::sleep(Duration::from_millis(100)).await;
        let doomed = DeleteTopicState { name: Some("t".into()), ..Default::default() };
        let request = DeleteTopicsRequest { topics: vec![doomed], ..Default::default() };
        assert_eq!(client.call(6, &request).await.expect("answered").responses[0].error_code, 0);
        let response = waiting.receive::<FetchRequest>(12).await.expect("woken");
        let told = response.responses[0].partitions[0].error_code;
        assert_eq!(told, ErrorCode::UnknownTopicOrPartition.code());
        let answer = produce(&mut client, "t", 0, batch(0, 1, None)).await;
        assert_eq!(answer.error_code, ErrorCode::UnknownTopicOrPartition.code());
        assert_ne!(create_topic(&mut client, "t", 3).await, first);
        assert_eq!(produce(&mut client, "t", 0, batch(9, 1, None)).await.base_offset, 0);
    });
    world.bounce();
    world.run(async move {
        let mut client = Client::connect(address).await;
        assert_eq!(read_all(&mut client, "t", 0).await, vec![(0, 9)]);
    });
}

#[test]
fn an_idempotent_producer_may_repeat_itself_even_over_a_restart() {
    let world = World::new(8);
    let address = world.address();
    let producer_id = world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 1).await;
        let request = init_producer_id();
        let id = client.call(4, &request).await.expect("answered").producer_id;
        for sequence in 0..6 {
            let new = produce(&mut client, "t", 0, batch(sequence, 1, Some((id, sequence as i32)))).await;
            assert_eq!((new.error_code, new.base_offset), (0, i64::from(sequence)));
        }
        id
    });
    world.crash();
    world.run(async move {
        let mut client = Client::connect(address).await;
        let mut again = async |sequence: u32| {
            let answer =
                produce(&mut client, "t", 0, batch(sequence, 1, Some((producer_id, sequence as i32)))).await;
            (ErrorCode::from_code(answer.error_code).expect("known"), answer.base_offset)
        };
        for sequence in 1..6 {
            assert_eq!(again(sequence).await, (ErrorCode::None, i64::from(sequence)));
        }
        assert_eq!(again(7).await.0, ErrorCode::OutOfOrderSequenceNumber);
        assert_eq!(again(6).await, (ErrorCode::None, 6));
        assert_eq!(read_all(&mut client, "t", 0).await.len(), 7);
    });
}

#[test]
fn requests_without_an_answer_keep_their_place() {
    let world = World::new(9);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 5).await;
        // Many at once: to all shards, with and without an answer.
        for round in 0..40_u32 {
            let acks = if round % 2 == 0 { 0 } else { -1 };
            let batches = (0..5).map(|p| (p, batch(round, 1, None))).collect();
            client.send(9, &produce_request("t", acks, batches)).await.expect("sent");
        }
        for round in (1..40).step_by(2) {
            let response = client.receive::<ProduceRequest>(9).await.expect("answered");
            for answer in &response.responses[0].partition_responses {
                assert_eq!((answer.error_code, answer.base_offset), (0, round));
            }
        }
        let expected: Vec<_> = (0..40).map(|n| (i64::from(n), n)).collect();
        for partition in 0..5 {
            assert_eq!(read_all(&mut client, "t", partition).await, expected);
        }
        // An error without an answer closes the connection.
        client.send(9, &produce_request("nowhere", 0, vec![(0, batch(0, 1, None))])).await.expect("sent");
        assert!(client.is_closed().await);
    });
}

#[test]
fn responses_leave_in_the_order_of_their_requests() {
    let world = World::new(10);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 2).await;
        // The first waits, the second is done at once.
        client
            .send(12, &FetchRequest { max_wait_ms: 300, ..fetch_request("t", &[(0, 0)]) })
            .await
            .expect("sent");
        client.send(9, &produce_request("t", -1, vec![(1, batch(0, 1, None))])).await.expect("sent");
        client.send(12, &MetadataRequest::default()).await.expect("sent");
        client.receive::<FetchRequest>(12).await.expect("first");
        client.receive::<ProduceRequest>(9).await.expect("second");
        client.receive::<MetadataRequest>(12).await.expect("third");
    });
}
