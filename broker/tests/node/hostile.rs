//! Whatever arrives on a socket: an error or a closed connection, and the node goes on.

use crate::client::Client;
use crate::world::*;
use bytes::{BufMut, Bytes, BytesMut};
use protocol::messages::{ApiVersionsRequest, ApiVersionsResponse, Message};
use protocol::wire::Decoder;
use protocol::{ApiKey, ErrorCode};
use std::time::Duration;

/// A frame with a header and whatever follows.
fn framed(api_key: i16, version: i16, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_i32(i32::try_from(10 + body.len()).expect("short"));
    frame.put_i16(api_key);
    frame.put_i16(version);
    frame.put_i32(7);
    frame.put_i16(-1);
    frame.extend_from_slice(body);
    frame.freeze()
}

async fn is_alive(address: std::net::SocketAddr) -> bool {
    let mut client = Client::connect(address).await;
    client.call(0, &ApiVersionsRequest::default()).await.is_ok_and(|response| response.error_code == 0)
}

#[test]
fn impossible_sizes_close_the_connection() {
    let world = World::new(20);
    let address = world.address();
    world.run(async move {
        for size in [-1, i32::MIN, i32::MAX, 104_857_601] {
            let mut client = Client::connect(address).await;
            client.send_raw(size.to_be_bytes().to_vec()).await.expect("sent");
            assert!(client.is_closed().await, "{size}");
        }
        for size in [0_i32, 1, 3, 9] {
            let mut client = Client::connect(address).await;
            let mut frame = BytesMut::from(size.to_be_bytes().as_slice());
            frame.extend_from_slice(&vec![0; usize::try_from(size).expect("positive")]);
            client.send_raw(frame.freeze()).await.expect("sent");
            assert!(client.is_closed().await, "{size}");
        }
        assert!(is_alive(address).await);
    });
}

#[test]
fn unknown_apis_and_versions_close_the_connection_but_for_api_versions() {
    let world = World::new(21);
    let address = world.address();
    world.run(async move {
        let mut refused = vec![(-1, 0), (i16::MAX, 0), (4, 0), (99, 0)];
        for key in ApiKey::all() {
            let (min, max) = key.valid_versions();
            refused.extend([
                (key as i16, min - 1),
                (key as i16, max + 1),
                (key as i16, -1),
                (key as i16, i16::MAX),
            ]);
        }
        for (api_key, version) in refused {
            let mut client = Client::connect(address).await;
            client.send_raw(framed(api_key, version, &[0; 8])).await.expect("sent");
            if api_key == ApiKey::ApiVersions as i16 {
                let mut body = Decoder::new(client.receive_frame().await.expect("answered"));
                assert_eq!(body.i32(), Ok(7));
                let response = ApiVersionsResponse::decode(&mut body, 0).expect("in version 0");
                assert_eq!(response.error_code, ErrorCode::UnsupportedVersion.code());
                assert_eq!(response.api_keys.len(), 1);
            } else {
                assert!(client.is_closed().await, "{api_key} in version {version}");
            }
        }
        assert!(is_alive(address).await);
    });
}

#[test]
fn bodies_of_noise_end_in_an_answer_or_a_closed_connection() {
    let world = World::new(22);
    let address = world.address();
    world.run(async move {
        for entry in millrace_broker::api::registry::REGISTRY {
            for version in entry.min..=entry.max {
                for len in [0, 1, 7, 40] {
                    let mut body = vec![0; len];
                    runtime::random::fill(&mut body);
                    let mut client = Client::connect(address).await;
                    client.send_raw(framed(entry.key as i16, version, &body)).await.expect("sent");
                    let _ = runtime::time::timeout(Duration::from_secs(2), client.receive_frame()).await;
                }
            }
        }
        assert!(is_alive(address).await);
    });
}

#[test]
fn a_frame_in_many_pieces_is_a_frame() {
    let world = World::new(23);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        for byte in framed(ApiKey::ApiVersions as i16, 0, &[]) {
            client.send_raw(vec![byte]).await.expect("sent");
            runtime::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(client.receive_frame().await.is_ok());
        // Two in one piece.
        let two =
            [framed(ApiKey::ApiVersions as i16, 0, &[]), framed(ApiKey::ApiVersions as i16, 0, &[])].concat();
        client.send_raw(two).await.expect("sent");
        assert!(client.receive_frame().await.is_ok() && client.receive_frame().await.is_ok());
    });
}

#[test]
fn a_client_that_starts_a_frame_and_stalls_is_cut() {
    let world = World::new(24);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        client.send_raw(1000_i32.to_be_bytes().to_vec()).await.expect("sent");
        let started = runtime::time::now();
        assert!(client.is_closed().await);
        assert!((29..40).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    });
}

#[test]
fn idle_connections_are_closed() {
    let world = World::with_config(25, |config| config.connections_max_idle_ms = 5000);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        client.call(0, &ApiVersionsRequest::default()).await.expect("answered");
        let started = runtime::time::now();
        assert!(client.is_closed().await);
        assert!((5..9).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    });
}

#[test]
fn limits_on_connections_hold() {
    let world = World::with_config(26, |config| config.max_connections_per_ip = i32::from(SHARDS));
    let address = world.address();
    world.run(async move {
        let mut open = Vec::new();
        let mut refused = 0;
        for _ in 0..40 {
            let mut client = Client::connect(address).await;
            match client.call(0, &ApiVersionsRequest::default()).await {
                Ok(_) => open.push(client),
                Err(_) => refused += 1,
            }
        }
        assert!(open.len() <= usize::from(SHARDS) && refused > 0, "{} open", open.len());
        open.clear();
        runtime::time::sleep(Duration::from_millis(200)).await;
        assert!(is_alive(address).await);
    });
}

/// A batch whose first record says that it is huge, with a CRC that is right.
fn lying_record(good: &Bytes) -> Bytes {
    let mut bytes = good.to_vec();
    bytes[61] = 0x7e;
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    Bytes::from(bytes)
}

/// CRC-32C bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

#[test]
fn bad_batches_are_refused_with_kafkas_errors() {
    let world = World::new(27);
    let address = world.address();
    world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 1).await;
        let good = batch(0, 3, None);
        let patched = |at: usize, byte: u8| {
            let mut bytes = good.to_vec();
            bytes[at] = byte;
            Bytes::from(bytes)
        };
        let cases = [
            ("empty", Bytes::new(), ErrorCode::InvalidRecord),
            ("truncated", good.slice(..good.len() - 1), ErrorCode::InvalidRecord),
            ("two batches", Bytes::from([&good[..], &good[..]].concat()), ErrorCode::InvalidRecord),
            ("wrong CRC", patched(good.len() - 1, 0xff), ErrorCode::CorruptMessage),
            ("base offset", patched(7, 1), ErrorCode::InvalidRecord),
            ("magic 1", patched(16, 1), ErrorCode::InvalidRecord),
            ("magic 9", patched(16, 9), ErrorCode::CorruptMessage),
            ("a record that is longer than the batch", lying_record(&good), ErrorCode::InvalidRecord),
        ];
        for (what, bytes, error) in cases {
            let answer = produce(&mut client, "t", 0, bytes).await;
            assert_eq!(ErrorCode::from_code(answer.error_code), Some(error), "{what}");
        }
        let huge = Bytes::from(vec![0; 2 << 20]);
        assert_ne!(produce(&mut client, "t", 0, huge).await.error_code, 0);
        assert!(read_all(&mut client, "t", 0).await.is_empty());
    });
}
