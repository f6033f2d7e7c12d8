//! The table holds together, and every kind of mistake is reported, all at once, with its place and its cure.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

fn toml(text: &str) -> Result<Loaded, Mistakes> {
    load_text("m.toml", &format!("\"log.dirs\" = \"/data\"\n{text}"), vec![])
}

fn config(text: &str) -> NodeConfig {
    toml(text).unwrap().config
}

/// The one mistake of a text.
fn mistake(text: &str) -> Mistake {
    let mut all = toml(text).unwrap_err().0;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn the_page_of_all_settings_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(
        page == reference_markdown(),
        "docs/configuration.md is old: run `cargo run -- config reference > docs/configuration.md`"
    );
}

#[test]
fn keys_are_unique_and_none_is_a_prefix_of_another() {
    let mut seen = BTreeSet::new();
    for setting in SETTINGS {
        for name in [Some(setting.spec.key), setting.spec.alias].into_iter().flatten() {
            assert!(seen.insert(name), "{name} twice");
        }
    }
    for a in &seen {
        for b in &seen {
            // Kafka's own exception; the page says that it must stand in quotes.
            let allowed = *a == "max.connections" && *b == "max.connections.per.ip";
            assert!(allowed || !b.starts_with(&format!("{a}.")), "{a} is a prefix of {b}");
        }
    }
}

#[test]
fn every_setting_has_one_sentence_and_an_example_that_is_accepted() {
    for setting in SETTINGS {
        let doc = setting.doc.trim();
        assert!(doc.ends_with('.') && doc.len() > 15, "{}", setting.spec.key);
        let line = format!("{} = {}", setting.spec.key, setting.spec.example);
        let loaded = load_text("m.toml", &line, vec![Entry::flag("--x", "log.dirs", "/d")]);
        let loaded = if setting.spec.key == "log.dirs" { load_text("m.toml", &line, vec![]) } else { loaded };
        assert!(loaded.is_ok(), "{line}: {}", loaded.unwrap_err());
    }
}

#[test]
fn every_default_reads_back_as_itself() {
    let default = NodeConfig::default();
    for setting in SETTINGS.iter().filter(|s| s.spec.key != "log.dirs") {
        let Some(text) = setting.value(&default) else { continue };
        if text.is_empty() {
            continue;
        }
        let mut again = default.clone();
        (setting.set)(&mut again, &Raw::Text(text), &setting.spec).unwrap();
        assert_eq!(again, default, "{}", setting.spec.key);
    }
}

#[test]
fn memory_is_divided_among_shards() {
    let mib = |text: &str, shards| config(text).memory_per_shard_bytes(shards) >> 20;
    assert_eq!((mib("", 1), mib("", 4), mib("", 64)), (1024, 256, 64));
    assert_eq!(mib("memory.bytes = \"1GiB\"", 64), 16);
    assert_eq!(config("cache.memory.percent = 25").cache_per_shard_bytes(1) >> 20, 255);
}

#[test]
fn defaults_are_kafkas_and_durable() {
    let config = config("");
    assert_eq!(config.data_dir, PathBuf::from("/data"));
    assert_eq!(config.message_max_bytes, 1_048_588);
    assert_eq!(config.retention_ms(), Some(7 * 86_400_000));
    assert_eq!(config.log_flush_interval_messages, 1);
    assert_eq!(config.listeners, vec![Listener::plaintext("", 9092)]);
}

#[test]
fn three_ways_to_write_a_key_mean_the_same() {
    let wanted = 2 << 20;
    assert_eq!(config("\"log.segment.bytes\" = 2097152").log_segment_bytes, wanted);
    assert_eq!(config("log.segment.bytes = \"2MiB\"").log_segment_bytes, wanted);
    assert_eq!(config("[log.segment]\nbytes = \"2 mib\"").log_segment_bytes, wanted);
    assert_eq!(config("[log]\n[log.segment]\n\"bytes\" = \"2_048KiB\"").log_segment_bytes, wanted);
}

#[test]
fn units_are_those_of_the_name() {
    assert_eq!(config("log.retention.ms = \"7d\"").retention_ms(), Some(604_800_000));
    assert_eq!(config("log.retention.minutes = \"2h\"").retention_ms(), Some(7_200_000));
    assert_eq!(config("log.retention.hours = \"2d\"").log_retention_hours, 48);
    assert_eq!(config("log.retention.ms = -1").retention_ms(), None);
    assert_eq!(config("memory.bytes = \"4GB\"").memory_bytes, 4_000_000_000);
    assert!(mistake("log.retention.hours = \"90min\"").what.contains("no whole count"));
    assert!(mistake("log.retention.ms = \"7MiB\"").cure.contains("a time in milliseconds"));
    assert!(mistake("num.partitions = \"7d\"").what.contains("not a whole number"));
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let flags = vec![Entry::flag("--set", "num.partitions", "9")];
    let text = "log.dir = \"/d\"\nnum.partitions = 3\nlog.roll.hours = 5";
    let config = load_text("m.toml", text, flags).unwrap().config;
    assert_eq!((config.num_partitions, config.log_roll_hours, config.node_id), (9, 5, 1));
}

#[test]
fn all_mistakes_at_once_each_with_its_line() {
    let text = "\
log.dirs = [\"/a\", \"/b\"]
num.partitons = 3
num.partitions = \"three\"
\"log.segment.bytes\" = 5
compression.type = \"brotli\"
listeners = \"SASL_SSL://h:9092\"
delete.topic.enable = 1
group.min.session.timeout.ms = \"40min\"
[log.segment]
bytes = 9
[ssl.keystore]
password = \"hunter2\"
";
    let flags = vec![Entry::flag("--set", "log.roll.ms", "0"), Entry::flag("--set", "quota", "hunter2")];
    let mistakes = load_text("m.toml", text, flags).unwrap_err();
    let shown = mistakes.to_string();
    for wanted in [
        "m.toml:1: log.dirs: 2 directories are named",
        "m.toml:2: num.partitons: no setting has this name; did you mean num.partitions?",
        "m.toml:3: num.partitions: \"three\" is not a whole number",
        "m.toml:4: log.segment.bytes: 5 is too small; the smallest value is 1048576",
        "m.toml:5: compression.type: \"brotli\" is none of the choices; write one of producer, uncompressed",
        "m.toml:6: listeners: SASL_SSL listeners are not available in this release",
        "m.toml:7: delete.topic.enable: a whole number stands where true or false belongs",
        "m.toml:8: group.min.session.timeout.ms: the shortest session timeout 2400000 is above",
        "m.toml:10: log.segment.bytes: it is set twice, first at m.toml:4",
        "m.toml:12: ssl.keystore.password: TLS is not available",
        "--set: log.roll.ms: 0 is too small",
        "--set: quota: no setting has this name",
    ] {
        assert!(shown.contains(wanted), "{wanted}\nis missing in\n{shown}");
    }
    assert_eq!(mistakes.0.len(), 12, "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.starts_with("12 mistakes in the configuration:\n"));
}

#[test]
fn what_is_not_toml_is_reported_without_quoting_the_line() {
    let shown = load_text("m.toml", "log.dirs = \"/d\"\nssl.key.password = hunter2\n", vec![]).unwrap_err();
    assert!(shown.to_string().contains("m.toml:2: "), "{shown}");
    assert!(!shown.to_string().contains("hunter2"), "{shown}");
    let shown = load_text("m.toml", "log.dirs = \"/d\"\nnode.id = 1\nnode.id = 2\n", vec![]).unwrap_err();
    assert!(shown.to_string().contains("m.toml:3: "), "{shown}");
}

#[test]
fn names_that_start_with_another_name_stand_in_quotes() {
    let both = config("\"max.connections\" = 9\n\"max.connections.per.ip\" = 3");
    assert_eq!((both.max_connections, both.max_connections_per_ip), (9, 3));
    let shown = toml("max.connections = 9\nmax.connections.per.ip = 3").unwrap_err().to_string();
    assert!(shown.contains("m.toml:3: ") && shown.contains("in quotes"), "{shown}");
}

#[test]
fn the_nearest_name_is_suggested() {
    assert!(mistake("log_segment_bytes = 5000000").cure.contains("log.segment.bytes"));
    assert!(mistake("retention.ms = 5").cure.contains("log.retention.ms"));
    assert!(mistake("listners = \"PLAINTEXT://:1\"").cure.contains("listeners"));
    assert!(mistake("colour = 5").cure.contains("--help-config"));
}

#[test]
fn contradictions_are_reported() {
    for (text, wanted) in [
        ("message.max.bytes = \"20MiB\"\nlog.segment.bytes = \"10MiB\"", "does not fit into a segment"),
        ("message.max.bytes = \"20MiB\"\nsocket.request.max.bytes = \"1MiB\"", "does not fit into a request"),
        ("message.max.bytes = \"5MiB\"\njournal.file.bytes = \"4MiB\"", "too small for batches"),
        ("journal.file.bytes = 5000001", "no multiple of 4096"),
        ("default.replication.factor = 3", "this release runs one"),
        ("listeners = []", "no listener"),
        ("advertised.listeners = \"PLAINTEXT://0.0.0.0:9092\"", "no client can connect"),
        ("advertised.listeners = \"PLAINTEXT://a:1,PLAINTEXT://b:2\"", "2 addresses are advertised for 1"),
        ("listeners = \"PLAINTEXT://a:1,PLAINTEXT://a:1\"", "named twice"),
        ("http.listener = \"127.0.0.1:9092\"", "the same port"),
    ] {
        let shown = toml(text).unwrap_err().to_string();
        assert!(shown.contains(wanted), "{text}: {shown}");
    }
    let shown = load_text("m.toml", "", vec![]).unwrap_err().to_string();
    assert!(shown.contains("no data directory is set"), "{shown}");
}

#[test]
fn an_overruled_setting_is_a_warning() {
    let loaded = toml("log.retention.ms = 5\nlog.retention.hours = 5").unwrap();
    assert_eq!(loaded.warnings.len(), 1);
    assert!(loaded.warnings.iter().all(|w| w.to_string().contains("log.retention.ms overrules it")));
}

#[test]
fn kafkas_own_file_is_read() {
    let text = "\
# comment
process.roles=broker,controller
node.id=7
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
num.network.threads=3
socket.send.buffer.bytes=102400
log.dirs=/var/lib/kafka
num.partitions : 2
log.cleaner.threads=1
log.retention.\\
   hours=168
";
    let loaded = load_text("server.properties", text, vec![]).unwrap();
    assert_eq!(loaded.config.node_id, 7);
    assert_eq!(loaded.config.num_partitions, 2);
    assert_eq!(loaded.config.listeners, vec![Listener::plaintext("", 9092)]);
    assert_eq!(loaded.config.advertised_listeners, vec![Listener::plaintext("localhost", 9092)]);
    assert_eq!(loaded.warnings.len(), 8, "{:#?}", loaded.warnings);
    let shown =
        load_text("s.properties", "log.dirs=/d\nsasl.jaas.config=hunter2\nnonsense", vec![]).unwrap_err();
    assert_eq!(shown.0.len(), 2);
    assert!(!shown.to_string().contains("hunter2"));
}

#[test]
fn a_topic_overrides_by_its_own_names() {
    let node = config("log.retention.hours = 5");
    let topic = node.for_topic([("retention.ms", "7"), ("cleanup.policy", "compact,delete")]).unwrap();
    assert_eq!(topic.retention_ms(), Some(7));
    assert!(topic.log_cleanup_policy.compact && topic.log_cleanup_policy.delete);
    for (key, value) in [("log.retention.ms", "7"), ("retention.ms", "x"), ("segment.bytes", "1")] {
        assert!(node.for_topic([(key, value)]).unwrap_err().contains(key));
    }
}

#[test]
fn listeners_are_read_and_written() {
    for (text, host, port) in [
        ("PLAINTEXT://:9092", "", 9092),
        ("plaintext://[::1]:1", "::1", 1),
        ("PLAINTEXT://a-b.c:0", "a-b.c", 0),
    ] {
        let listener = Listener::parse(text).unwrap();
        assert_eq!(listener, Listener::plaintext(host, port));
        assert_eq!(Listener::parse(&listener.to_string()).unwrap(), listener);
    }
    for text in ["", "a:1", "PLAINTEXT://a", "PLAINTEXT://a:70000", "PLAINTEXT://a b:1", "X://a:1"] {
        assert!(Listener::parse(text).is_err(), "{text}");
    }
    assert_eq!(Listener::plaintext("127.0.0.1", 5).resolve().unwrap().to_string(), "127.0.0.1:5");
    assert!(Listener::plaintext("::", 5).is_wildcard() && Listener::plaintext("", 5).is_wildcard());
}

#[test]
fn cpus_are_numbers_and_ranges() {
    assert_eq!(config("cpus = \"0-2,8\"").cpus, Some(vec![0, 1, 2, 8]));
    assert_eq!(config("cpus = [3, 1]").cpus, Some(vec![1, 3]));
    assert!(mistake("cpus = \"3-1\"").what.contains("3-1"));
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in "\\PC{0,200}|([a-z.\\[\\]\"=\\n\\\\0-9 ]{0,200})") {
        let _ = load_text("m.toml", &text, vec![]);
        let _ = load_text("m.properties", &text, vec![]);
    }

    #[test]
    fn any_value_of_any_setting_is_an_answer(index in 0..SETTINGS.len(), value in "\\PC{0,20}|-?[0-9]{1,22}[a-z]{0,3}") {
        if let Some(setting) = SETTINGS.get(index) {
            let _ = load_text("", "", vec![Entry::flag("--set", setting.spec.key, &value)]);
        }
    }
}
