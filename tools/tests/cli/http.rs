//! Health and metrics of a node that serves.

use serde_json::Value;

use crate::process::Node;

#[test]
fn health_and_metrics_answer() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    for path in ["/health", "/health/ready", "/health/live"] {
        let (status, body) = node.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        let health: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&health["alive"], &health["ready"]), (&Value::Bool(true), &Value::Bool(true)));
    }
    assert_eq!(node.get("/nothing").0, 404);

    assert_eq!(node.admin(&["topic", "create", "m", "--partitions", "4"]).code, Some(0));
    let (status, text) = node.get("/metrics");
    assert_eq!(status, 200);
    assert!(text.contains("millrace_alive 1\n"), "{text}");
    assert!(
        text.contains("millrace_request_seconds_count{shard=\"0\",api=\"CreateTopics\"}")
            || text.contains("millrace_request_seconds_count{shard=\"1\",api=\"CreateTopics\"}"),
        "{text}"
    );
    for shard in 0..2 {
        let partitions = format!("millrace_partitions{{shard=\"{shard}\"}} ");
        assert!(text.contains(&partitions), "{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn every_metric_that_alerts_and_dashboard_name_exists() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &[]);
    let (_, text) = node.get("/metrics");
    let files = [
        include_str!("../../../deploy/prometheus/alerts.yml"),
        include_str!("../../../deploy/grafana/millrace.json"),
    ];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for file in files {
        let names: Vec<&str> =
            file.split(|c| !is_name(c)).filter(|word| word.starts_with("millrace_")).collect();
        assert!(names.len() >= 5, "{names:?}");
        for name in names {
            let ends = ["_total", "_bucket", "_count"];
            let family = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            assert!(text.contains(&format!("# TYPE {family} ")), "{name} is not in\n{text}");
        }
    }
}
