//! `millrace quickstart`: from nothing to figures and to instructions.

use std::fs;

use crate::process::millrace;

#[test]
fn measures_a_short_load_and_shows_how_to_connect() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("new");
    let data = data.to_str().unwrap();
    // Slow enough for a busy machine in a debug build.
    let args = ["quickstart", "--exit", "--data-dir", data, "--listener", "PLAINTEXT://127.0.0.1:0"];
    let args: Vec<&str> =
        args.into_iter().chain(["--rate", "50", "--seconds", "1", "--shards", "2"]).collect();
    let ended = millrace(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for wanted in ["LATENCY", "p99", "kcat -b 127.0.0.1:", "bootstrap.servers", "confluent_kafka"] {
        assert!(ended.stdout.contains(wanted), "{wanted}\n{}", ended.stdout);
    }

    // Its data stays, and a second first look does not touch it.
    let again = millrace(&args);
    assert_eq!(again.code, Some(4), "{again:?}");
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
}

#[test]
fn prints_one_json_value_for_programs() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().to_str().unwrap();
    let args =
        ["quickstart", "--exit", "--format", "json", "--data-dir", data, "--rate", "50", "--seconds", "1"];
    let args: Vec<&str> =
        args.into_iter().chain(["--listener", "PLAINTEXT://127.0.0.1:0", "--shards", "1"]).collect();
    let ended = millrace(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    assert_eq!(json["load"]["valid"], true, "{json}");
    assert!(json["load"]["latency_us"]["response"]["p99"].as_u64().unwrap() > 0);
    assert!(fs::read_dir(data).unwrap().next().is_some());
}
