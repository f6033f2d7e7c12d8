//! The table of API keys.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::header;
use crate::KAFKA_VERSION;
use crate::model::{Kind, Message};

/// The file.
pub(crate) fn file(messages: &[Message]) -> String {
    let requests: BTreeMap<i16, &Message> = messages
        .iter()
        .filter_map(|message| match message.kind {
            Kind::Request(key) => Some((key, message)),
            _ => None,
        })
        .collect();
    let mut text = header(&format!("The APIs of Kafka {KAFKA_VERSION}."));
    text.push_str("use crate::api_key::{Api, Listener};\n\n");
    text.push_str(
        "/// An API of the protocol; its number is what a request header carries.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]\n#[repr(i16)]\npub enum ApiKey {\n",
    );
    for (key, message) in &requests {
        let name = api_name(message);
        let _ = writeln!(text, "/// `{name}`, versions {}.\n{name} = {key},", message.versions);
    }
    text.push_str(
        "}\n\n/// What is known of each API, ordered by number.\npub(crate) const APIS: &[Api] = &[\n",
    );
    for message in requests.values() {
        let name = api_name(message);
        let listeners = message.listeners.iter().map(|listener| match listener.as_str() {
            "broker" => "Listener::Broker",
            "controller" => "Listener::Controller",
            other => unreachable!("listener {other:?}"),
        });
        let listeners = listeners.collect::<Vec<_>>().join(", ");
        let flexible_from = match message.flexible.is_empty() {
            true => "None".to_owned(),
            false => format!("Some({})", message.flexible.min),
        };
        let _ = writeln!(
            text,
            "Api {{ key: ApiKey::{name}, name: {name:?}, valid: ({}, {}), stable: ({}, {}), \
             flexible_from: {flexible_from}, listeners: &[{listeners}] }},",
            message.versions.min,
            message.versions.max,
            message.stable_versions.min,
            message.stable_versions.max
        );
    }
    text.push_str("];\n");
    text
}

fn api_name(message: &Message) -> &str {
    message.name.strip_suffix("Request").unwrap_or(&message.name)
}
