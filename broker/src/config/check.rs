//! Settings that are each right and contradict each other.

use std::collections::BTreeSet;

use super::table::NodeConfig;
use super::value::Wrong;

/// A contradiction between settings.
pub(super) struct Conflict {
    /// The settings that it concerns, the one to change first.
    pub(super) keys: &'static [&'static str],
    pub(super) wrong: Wrong,
    /// Whether the node must not start.
    pub(super) is_fatal: bool,
}

/// Every contradiction; `is_set` says whether a key was given at all.
pub(super) fn conflicts(config: &NodeConfig, is_set: &dyn Fn(&str) -> bool) -> Vec<Conflict> {
    let mut found = Vec::new();
    sizes(config, &mut found);
    listeners(config, &mut found);
    replication(config, &mut found);
    overruled(is_set, &mut found);
    if config.data_dir.as_os_str().is_empty() && !is_set("log.dirs") {
        found.push(fatal(
            &["log.dirs"],
            "no data directory is set",
            "set log.dirs = \"/var/lib/millrace\" or give --data-dir DIR",
        ));
    }
    found
}

fn fatal(keys: &'static [&'static str], what: impl Into<String>, cure: impl Into<String>) -> Conflict {
    Conflict { keys, wrong: Wrong { what: what.into(), cure: cure.into() }, is_fatal: true }
}

fn sizes(config: &NodeConfig, found: &mut Vec<Conflict>) {
    let message = i64::from(config.message_max_bytes);
    if message > i64::from(config.log_segment_bytes) {
        found.push(fatal(
            &["message.max.bytes", "log.segment.bytes"],
            format!("a batch of {message} bytes does not fit into a segment of {}", config.log_segment_bytes),
            "lower message.max.bytes or raise log.segment.bytes",
        ));
    }
    if message > i64::from(config.socket_request_max_bytes) {
        found.push(fatal(
            &["message.max.bytes", "socket.request.max.bytes"],
            format!(
                "a batch of {message} bytes does not fit into a request of {}",
                config.socket_request_max_bytes
            ),
            "lower message.max.bytes or raise socket.request.max.bytes",
        ));
    }
    // A batch is one journal entry and stays within one file, beside the heads of its blocks.
    if message > i64::try_from(config.journal_file_bytes / 2).unwrap_or(i64::MAX) {
        found.push(fatal(
            &["journal.file.bytes", "message.max.bytes"],
            format!(
                "a journal file of {} bytes is too small for batches of {message}",
                config.journal_file_bytes
            ),
            "make it at least twice message.max.bytes",
        ));
    }
    if !config.journal_file_bytes.is_multiple_of(4096) {
        let what = format!("{} is no multiple of 4096", config.journal_file_bytes);
        found.push(fatal(&["journal.file.bytes"], what, "write whole MiB, such as \"64MiB\""));
    }
    let (min, max) = (config.group_min_session_timeout_ms, config.group_max_session_timeout_ms);
    if min > max {
        found.push(fatal(
            &["group.min.session.timeout.ms", "group.max.session.timeout.ms"],
            format!("the shortest session timeout {min} is above the longest {max}"),
            "make the first at most the second",
        ));
    }
}

fn listeners(config: &NodeConfig, found: &mut Vec<Conflict>) {
    if config.listeners.is_empty() {
        found.push(fatal(&["listeners"], "no listener is named", "write at least one PLAINTEXT://HOST:PORT"));
    }
    let (own, told) = (config.listeners.len(), config.advertised_listeners.len());
    if told != 0 && told != own {
        found.push(fatal(
            &["advertised.listeners", "listeners"],
            format!("{told} addresses are advertised for {own} listeners"),
            "advertise one address for each listener, in the same order",
        ));
    }
    let mut seen = BTreeSet::new();
    for listener in &config.listeners {
        if listener.port != 0 && !seen.insert((listener.host.clone(), listener.port)) {
            let what = format!("{listener} is named twice");
            found.push(fatal(&["listeners"], what, "name each address once"));
        }
    }
    for address in config.advertised_listeners.iter().filter(|a| a.is_wildcard() || a.port == 0) {
        found.push(fatal(
            &["advertised.listeners"],
            format!("no client can connect to {address}"),
            "advertise a host name or address, and a port, that clients can reach",
        ));
    }
    let http_port = config.http_listener.0.map(|address| address.port()).filter(|port| *port != 0);
    if let Some(listener) = config.listeners.iter().find(|l| Some(l.port) == http_port) {
        let what = format!("the HTTP server and {listener} use the same port");
        found.push(fatal(
            &["http.listener", "listeners"],
            what,
            "give the HTTP server another port, or \"off\"",
        ));
    }
}

fn replication(config: &NodeConfig, found: &mut Vec<Conflict>) {
    if config.default_replication_factor > 1 {
        found.push(fatal(
            &["default.replication.factor"],
            format!(
                "{} replicas need as many nodes, and this release runs one",
                config.default_replication_factor
            ),
            "write 1",
        ));
    }
}

fn overruled(is_set: &dyn Fn(&str) -> bool, found: &mut Vec<Conflict>) {
    let pairs: [(&'static [&'static str], &str); 4] = [
        (&["log.retention.hours"], "log.retention.ms"),
        (&["log.retention.minutes"], "log.retention.ms"),
        (&["log.retention.hours"], "log.retention.minutes"),
        (&["log.roll.hours"], "log.roll.ms"),
    ];
    for (keys, stronger) in pairs {
        if keys.iter().all(|key| is_set(key)) && is_set(stronger) {
            let wrong = Wrong {
                what: format!("{stronger} overrules it"),
                cure: "keep the one that you mean".to_owned(),
            };
            found.push(Conflict { keys, wrong, is_fatal: false });
        }
    }
}
