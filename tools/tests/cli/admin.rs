//! Topics and consumer groups over the Kafka protocol, for people and for programs.

use crate::process::{Node, millrace};

#[test]
fn topics_from_creation_to_deletion() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    let json = |args: &[&str]| {
        let args: Vec<&str> = args.iter().copied().chain(["--format", "json"]).collect();
        let ended = node.admin(&args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.json()
    };
    assert_eq!(json(&["topic", "list"])["topics"], serde_json::json!([]));
    let created =
        json(&["topic", "create", "orders", "--partitions", "3", "--config", "retention.ms=3600000"]);
    assert_eq!(created["topics"][0]["outcome"], "created");
    assert_eq!(json(&["topic", "create", "orders", "--if-not-exists"])["topics"][0]["outcome"], "exists");
    assert_eq!(json(&["topic", "list"])["topics"], serde_json::json!(["orders"]));

    let described = json(&["topic", "describe", "orders"]);
    let topic = &described["topics"][0];
    assert_eq!(topic["partitions"].as_array().map(Vec::len), Some(3));
    assert_eq!(topic["partitions"][0]["end_offset"], 0);
    assert_eq!(topic["configs"]["retention.ms"], "3600000");
    assert_eq!(topic["configs"].as_object().map(serde_json::Map::len), Some(1));

    json(&["topic", "add-partitions", "orders", "--partitions", "5"]);
    assert_eq!(json(&["topic", "describe"])["topics"][0]["partitions"].as_array().map(Vec::len), Some(5));
    assert_eq!(json(&["topic", "delete", "orders"])["topics"][0]["outcome"], "deleted");
    assert_eq!(json(&["topic", "delete", "orders", "--if-exists"])["topics"][0]["outcome"], "missing");
    let text = node.admin(&["topic", "list"]).stdout;
    assert!(text.contains("there are no topics"), "{text}");
}

#[test]
fn a_refusal_names_the_error_and_the_cure() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    assert_eq!(node.admin(&["topic", "create", "t"]).code, Some(0));
    for (args, name) in [
        (&["topic", "create", "t"] as &[&str], "TOPIC_ALREADY_EXISTS"),
        (&["topic", "create", "no/slash"], "INVALID_TOPIC_EXCEPTION"),
        (&["topic", "create", "u", "--config", "retention.ms=soon"], "INVALID_CONFIG"),
        (&["topic", "create", "u", "--replication-factor", "3"], "INVALID_REPLICATION_FACTOR"),
        (&["topic", "delete", "nothing"], "UNKNOWN_TOPIC_OR_PARTITION"),
        (&["topic", "describe", "nothing"], "UNKNOWN_TOPIC_OR_PARTITION"),
        (&["topic", "add-partitions", "t", "--partitions", "1"], "INVALID_PARTITIONS"),
        (&["group", "describe", "nothing"], "GROUP_ID_NOT_FOUND"),
        (&["group", "delete", "nothing"], "GROUP_ID_NOT_FOUND"),
    ] {
        let ended = node.admin(args);
        assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(name) && ended.stderr.contains("->"), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn no_broker_ends_with_6_and_a_cure() {
    // A port of the reserved range that nothing listens on.
    let ended = millrace(&["group", "list", "--bootstrap", "127.0.0.1:1", "--format", "json"]);
    assert_eq!(ended.code, Some(6), "{ended:?}");
    assert!(ended.failure()["problems"][0]["cure"].as_str().unwrap().contains("millrace serve"));
}
