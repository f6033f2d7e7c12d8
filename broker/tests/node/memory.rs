//! A node with next to no memory: it takes what does not fit, slowly, and serves the others meanwhile.

use crate::client::Client;
use crate::world::*;
use bytes::Bytes;
use protocol::messages::FetchRequest;
use protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use protocol::messages::{CreateTopicsRequest, ProduceRequest};
use protocol::record::{Builder, Codec};
use std::net::SocketAddr;
use std::time::Duration;

/// About a MiB for the requests of each shard, and as much for fetches.
fn small(seed: u64) -> World {
    World::with_config(seed, |config| config.memory_bytes = u64::from(SHARDS) * (4 << 20))
}

fn large_batch(len: usize) -> Bytes {
    let mut builder = Builder::new(Codec::None);
    builder.push(1_750_000_000_000, None, Some(&vec![7; len]), &[]);
    builder.build()
}

async fn create_large(client: &mut Client, name: &str) {
    let config = CreatableTopicConfig { name: "max.message.bytes".into(), value: Some("3500000".into()) };
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: 3,
        replication_factor: 1,
        configs: vec![config],
        ..CreatableTopic::default()
    };
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 1000, ..CreateTopicsRequest::default() };
    assert_eq!(client.call(7, &request).await.expect("answered").topics[0].error_code, 0);
}

/// A client that behaves is served in a few seconds.
async fn is_served(address: SocketAddr, topic: &str) {
    let served = async {
        let mut client = Client::connect(address).await;
        assert_eq!(produce(&mut client, topic, 2, batch(1, 1, None)).await.error_code, 0);
        // Where no memory is free for it, an answer is empty, and the client asks again.
        while values(&fetch(&mut client, topic, 2, 0).await).is_empty() {}
    };
    assert!(runtime::time::timeout(Duration::from_secs(10), served).await.is_ok(), "nobody is served");
}

#[test]
fn a_frame_that_is_larger_than_the_budget_passes() {
    let world = small(60);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_large(&mut client, "t").await;
        for _ in 0..3 {
            assert_eq!(produce(&mut client, "t", 0, large_batch(3_000_000)).await.error_code, 0);
        }
        let fetched = fetch(&mut client, "t", 0, 0).await;
        assert_eq!(
            fetched.records.expect("records").len(),
            large_batch(3_000_000).len(),
            "one batch at least"
        );
    });
}

#[test]
fn what_is_announced_costs_nothing() {
    let world = small(61);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_large(&mut client, "t").await;
        let mut idle = Vec::new();
        for _ in 0..100 {
            let mut client = Client::connect(address).await;
            let mut bytes = (100_i32 << 20).to_be_bytes().to_vec();
            bytes.extend([0; 10]);
            client.send_raw(bytes).await.expect("sent");
            idle.push(client);
        }
        is_served(address, "t").await;
    });
}

#[test]
fn answers_that_nobody_reads_do_not_starve_others() {
    let world = small(62);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_large(&mut client, "t").await;
        for partition in 0..3 {
            for _ in 0..3 {
                assert_eq!(produce(&mut client, "t", partition, large_batch(1_000_000)).await.error_code, 0);
            }
        }
        let mut deaf = Vec::new();
        let request = FetchRequest { ..fetch_request("t", &[(0, 0), (1, 0)]) };
        for _ in 0..30 {
            let mut client = Client::connect(address).await;
            for _ in 0..10 {
                client.send(12, &request).await.expect("sent");
            }
            deaf.push(client);
        }
        runtime::time::sleep(Duration::from_millis(500)).await;
        create_topic(&mut client, "u", 3).await;
        is_served(address, "u").await;
        // Those whose answers took the memory are cut; the others had empty ones, which cost nothing.
        runtime::time::sleep(Duration::from_secs(40)).await;
        let mut cut = 0;
        for mut client in deaf {
            let mut answers = 0;
            while answers < 10 && client.receive::<FetchRequest>(12).await.is_ok() {
                answers += 1;
            }
            cut += usize::from(answers < 10);
        }
        assert!((1..30).contains(&cut), "{cut} of 30 are cut");
    });
}

#[test]
fn large_frames_that_wait_for_each_other_do_not_do_so_for_ever() {
    let world = small(63);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_large(&mut client, "t").await;
        let frame = protocol::frame::encode_request(
            1,
            None,
            9,
            &produce_request("t", -1, vec![(0, large_batch(900_000))]),
        )
        .expect("encodes")
        .concat();
        // All but the end of many frames, which together are several times the budget.
        let mut halves = Vec::new();
        for _ in 0..12 {
            let mut client = Client::connect(address).await;
            client.send_raw(frame[..800_000].to_vec()).await.expect("sent");
            halves.push(client);
        }
        runtime::time::sleep(Duration::from_secs(90)).await;
        is_served(address, "t").await;
        drop(halves);
        let mut client = Client::connect(address).await;
        client.send_raw(frame).await.expect("sent");
        let response = client.receive::<ProduceRequest>(9).await.expect("answered");
        assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    });
}
