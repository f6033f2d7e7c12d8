//! `millrace serve`: start-up checks, one process per directory, ports, the clean stop.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::process::{Node, millrace};

#[test]
fn starts_says_ready_and_stops_on_sigterm() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = Node::start(dir.path(), &[]);
    assert_eq!(node.ready["shards"], 2);
    let (code, took) = node.stop();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(12), "{took:?}");
    node.wait_log("stopped");
}

#[test]
fn what_a_stopped_node_leaves_is_inspected() {
    let dir = tempfile::tempdir().unwrap();
    let mut node = Node::start(dir.path(), &[]);
    assert_eq!(node.admin(&["topic", "create", "t"]).code, Some(0));
    assert_eq!(node.stop().0, Some(0));
    let path = dir.path().to_str().unwrap();
    let ended = millrace(&["log", "inspect", path, "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = ended.json();
    assert_eq!(found["identity"]["millrace.shards"], "2");
    let metadata = &found["partitions"][0];
    assert!(metadata["directory"].as_str().unwrap().contains("__cluster_metadata-0"), "{found}");
    assert!(metadata["records"].as_u64().unwrap() >= 2);

    let segment = dir.path().join(metadata["directory"].as_str().unwrap()).join("00000000000000000000.log");
    let dumped = millrace(&["log", "dump", segment.to_str().unwrap(), "--records"]);
    assert_eq!(dumped.code, Some(0), "{dumped:?}");
    assert!(dumped.stdout.contains("offset 0 "), "{}", dumped.stdout);

    let mut bytes = fs::read(&segment).unwrap();
    bytes[70] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let ended = millrace(&["log", "inspect", path]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(ended.stderr.contains("the CRC is wrong"), "{}", ended.stderr);
}

#[test]
fn what_a_killed_node_leaves_is_inspected() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    for topic in ["a", "b", "c"] {
        assert_eq!(node.admin(&["topic", "create", topic]).code, Some(0));
    }
    drop(node);
    let path = dir.path().to_str().unwrap();
    let inspect = || millrace(&["log", "inspect", path, "--format", "json"]);
    let ended = inspect();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let shard = &ended.json()["shards"][0];
    assert_eq!(shard["directory"], "shard-0");
    assert!(shard["journal"][0]["replayed_entries"].as_u64().unwrap() >= 4, "{shard}");

    let journal = dir.path().join("shard-0/journal/0000.journal");
    let whole = fs::read(&journal).unwrap();
    let boundaries = (0..whole.len()).step_by(4096);
    let blocks: Vec<usize> = boundaries.filter(|at| whole[*at..].starts_with(b"MJBK")).collect();
    for (block, code, list) in
        [(blocks[blocks.len() - 1], Some(0), "harmless"), (blocks[blocks.len() / 2], Some(7), "damage")]
    {
        let mut bytes = whole.clone();
        bytes[block + 40] ^= 1;
        fs::write(&journal, bytes).unwrap();
        let ended = inspect();
        assert_eq!(ended.code, code, "{ended:?}");
        let found = ended.json()[list][0].as_str().unwrap().to_owned();
        assert!(found.contains(&format!("0000.journal: at position {block}: ")), "{found}");
    }
}

#[test]
fn everything_that_does_not_serve_is_told_at_once() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let listener = format!("PLAINTEXT://{address}");
    let args = [
        "serve",
        "--data-dir",
        "/proc/nowhere",
        "--shards",
        "8",
        "--memory",
        "64MiB",
        "--listener",
        &listener,
        "--http",
        "off",
        "--format",
        "json",
    ];
    let ended = millrace(&args);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let failure = ended.failure();
    let whats: Vec<&str> =
        failure["problems"].as_array().unwrap().iter().filter_map(|p| p["what"].as_str()).collect();
    assert!(
        whats.iter().any(|w| w.contains(&format!("port {} of 127.0.0.1 is in use", address.port()))),
        "{whats:?}"
    );
    assert!(whats.iter().any(|w| w.contains("/proc/nowhere cannot be written")), "{whats:?}");
    assert!(whats.iter().any(|w| w.contains("for 8 shards")), "{whats:?}");
}

#[test]
fn a_second_node_on_the_same_port_is_refused() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let node = Node::start(one.path(), &[]);
    let listener = format!("PLAINTEXT://{}", node.bootstrap());
    let dir = two.path().to_str().unwrap();
    let ended = millrace(&["serve", "--data-dir", dir, "--listener", &listener, "--http", "off"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("is in use"), "{}", ended.stderr);
    assert!(ended.stderr.contains("ss -ltnp"), "{}", ended.stderr);
}

#[test]
fn a_second_node_on_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _node = Node::start(dir.path(), &[]);
    let path = dir.path().to_str().unwrap();
    let listener = "PLAINTEXT://127.0.0.1:0";
    let ended =
        millrace(&["serve", "--data-dir", path, "--listener", listener, "--http", "off", "--shards", "2"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("lock"), "{}", ended.stderr);
}

#[test]
fn a_directory_of_another_layout_is_refused_with_the_cure() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Node::start(dir.path(), &[]).stop().0, Some(0));
    let path = dir.path().to_str().unwrap();
    let listener = "PLAINTEXT://127.0.0.1:0";
    let ended =
        millrace(&["serve", "--data-dir", path, "--listener", listener, "--http", "off", "--shards", "3"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("shards"), "{}", ended.stderr);
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    // Root writes anyway: then the kernel's own read-only tree stands in.
    let writable = fs::write(dir.path().join("x"), b"").is_ok();
    let path = if writable { "/sys/millrace" } else { dir.path().to_str().unwrap() };
    let ended =
        millrace(&["serve", "--data-dir", path, "--listener", "PLAINTEXT://127.0.0.1:0", "--http", "off"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("cannot be written"), "{}", ended.stderr);
}
