//! `millrace config`, and wrong configurations at start.

use std::fs;

use crate::process::millrace;

#[test]
fn check_reports_every_mistake_with_line_and_cure() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wrong.toml");
    fs::write(&file, "num.partitons = 3\nshards = \"many\"\nssl.keystore.password = \"hunter2\"\n").unwrap();
    let file = file.to_str().unwrap();
    let ended = millrace(&["config", "check", file]);
    assert_eq!(ended.code, Some(3));
    for wanted in [
        "wrong.toml:1: num.partitons: no setting has this name",
        "did you mean num.partitions?",
        "wrong.toml:2: shards: \"many\" is not a whole number",
        "wrong.toml:3: ssl.keystore.password: TLS is not available",
        "no data directory is set",
    ] {
        assert!(ended.stderr.contains(wanted), "{wanted}\n{}", ended.stderr);
    }
    assert!(!ended.stderr.contains("hunter2"));

    let ended = millrace(&["config", "check", file, "--format", "json"]);
    let failure = ended.failure();
    assert_eq!(failure["exit_code"], 3);
    assert_eq!(failure["problems"].as_array().map(Vec::len), Some(4));
    assert_eq!(failure["problems"][1]["line"], 2);
    assert_eq!(failure["problems"][1]["key"], "shards");
}

#[test]
fn check_says_what_a_right_file_changes() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/millrace.toml");
    let ended = millrace(&["config", "check", example, "--set", "num.partitions=9", "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    assert_eq!(json["changed"]["num.partitions"], "9");
    assert_eq!(json["changed"]["log.dirs"], "/var/lib/millrace");
    assert_eq!(json["warnings"], serde_json::json!([]));
}

#[test]
fn serve_refuses_a_wrong_configuration_before_anything_else() {
    let ended =
        millrace(&["serve", "--data-dir", "/dev/null/x", "--shards", "-1", "--listener", "SSL://h:1"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("--shards: shards: -1 is too small"), "{}", ended.stderr);
    assert!(ended.stderr.contains("SSL listeners are not available"), "{}", ended.stderr);
}

#[test]
fn the_reference_lists_every_setting() {
    let text = millrace(&["config", "reference"]).stdout;
    let json = millrace(&["serve", "--help-config", "--format", "json"]).json();
    let settings = json.as_array().unwrap();
    assert!(settings.len() > 50);
    for setting in settings {
        let key = setting["key"].as_str().unwrap();
        assert!(text.contains(&format!("### `{key}`")), "{key}");
    }
}
