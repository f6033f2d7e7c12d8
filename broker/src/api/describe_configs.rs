//! DescribeConfigs (32): what is configured on topics and on this broker, and where each value comes from (KIP-226, KIP-569).

use super::call::{Api, Call};
use crate::config::{NodeConfig, SETTINGS, Setting, topic_settings};
use crate::metadata::{Image, settings, topic_name};
use protocol::messages::describe_configs_request::DescribeConfigsResource;
use protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use protocol::{ErrorCode, Str};
use std::collections::BTreeMap;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
/// Where a value comes from: set on the topic, in the node's configuration, or nowhere.
const FROM_TOPIC: i8 = 1;
const FROM_NODE: i8 = 4;
const FROM_DEFAULT: i8 = 5;

pub(crate) struct DescribeConfigs;

/// One configuration with all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) value: Option<String>,
    pub(super) source: i8,
    kind: i8,
    read_only: bool,
    doc: &'static str,
    synonyms: Vec<(&'static str, Option<String>, i8)>,
}

impl Api for DescribeConfigs {
    type Request = DescribeConfigsRequest;

    async fn handle(call: Call<DescribeConfigsRequest>) -> DescribeConfigsResponse {
        let image = call.shard.image();
        let request = &call.request;
        let results = request.resources.iter().map(|resource| {
            let (entries, error) = match describe(&call.shard.config, &image, resource) {
                Ok(entries) => (entries, None),
                Err(error) => (Vec::new(), Some(error)),
            };
            let keys = resource.configuration_keys.as_deref().unwrap_or_default();
            let wanted = |entry: &Entry| keys.is_empty() || keys.iter().any(|key| **key == *entry.name);
            DescribeConfigsResult {
                error_code: error.as_ref().map_or(ErrorCode::None, |(code, _)| *code).code(),
                error_message: error.and_then(|(_, text)| text).map(Str::from),
                resource_type: resource.resource_type,
                resource_name: resource.resource_name.clone(),
                configs: entries.into_iter().filter(wanted).map(|entry| render(entry, request)).collect(),
            }
        });
        DescribeConfigsResponse { results: results.collect(), ..DescribeConfigsResponse::default() }
    }
}

type Failure = (ErrorCode, Option<String>);

fn describe(
    config: &NodeConfig,
    image: &Image,
    resource: &DescribeConfigsResource,
) -> Result<Vec<Entry>, Failure> {
    let name = &resource.resource_name;
    match resource.resource_type {
        TOPIC => {
            topic_name::check(name).map_err(|text| (ErrorCode::InvalidTopicException, Some(text)))?;
            let topic = image.topic(name).ok_or((ErrorCode::UnknownTopicOrPartition, None))?;
            Ok(topic_entries(config, &topic.configs).collect())
        }
        // The defaults of all brokers that can be changed while they run: there are none.
        BROKER if name.is_empty() => Ok(Vec::new()),
        BROKER if name.parse() == Ok(config.node_id) => {
            Ok(SETTINGS.iter().map(|s| node_entry(config, s)).collect())
        }
        BROKER => {
            let text = format!(
                "Unexpected broker id, expected {} or empty string, but received {name}",
                config.node_id
            );
            Err((ErrorCode::InvalidRequest, Some(text)))
        }
        other => Err((ErrorCode::InvalidRequest, Some(format!("Unsupported resource type: {other}")))),
    }
}

/// The configurations of a topic with these overrides, by name.
pub(super) fn topic_entries(
    config: &NodeConfig,
    overrides: &BTreeMap<Str, Str>,
) -> impl Iterator<Item = Entry> + use<> {
    let active = topic_settings().map(|(name, setting)| {
        let mut synonyms = Vec::new();
        if !setting.is_default(config) {
            synonyms.push((setting.spec.key, topic_value(config, name, setting), FROM_NODE));
        }
        synonyms.push((setting.spec.key, topic_value(&NodeConfig::default(), name, setting), FROM_DEFAULT));
        Entry {
            name,
            value: None,
            source: FROM_DEFAULT,
            kind: setting.kind as i8,
            read_only: false,
            doc: setting.doc,
            synonyms,
        }
    });
    let passive = settings::PASSIVE.iter().map(|row| Entry {
        name: row.name,
        value: None,
        source: FROM_DEFAULT,
        kind: row.kind as i8,
        read_only: false,
        doc: row.doc,
        synonyms: vec![(row.name, Some(row.default.to_owned()), FROM_DEFAULT)],
    });
    let mut entries: Vec<Entry> = active.chain(passive).collect();
    for entry in &mut entries {
        if let Some(own) = overrides.get(entry.name) {
            entry.synonyms.insert(0, (entry.name, Some(own.to_string()), FROM_TOPIC));
        }
        if let Some((_, value, source)) = entry.synonyms.first() {
            (entry.value, entry.source) = (value.clone(), *source);
        }
    }
    entries.sort_unstable_by_key(|entry| entry.name);
    entries.into_iter()
}

/// What a topic without overrides has; three settings of the node have a form that topics do not know.
fn topic_value(config: &NodeConfig, name: &str, setting: &Setting) -> Option<String> {
    match name {
        "segment.ms" => Some(config.roll_ms().to_string()),
        "retention.ms" => Some(config.retention_ms().unwrap_or(-1).to_string()),
        "flush.ms" => Some(config.log_flush_interval_ms.unwrap_or(i64::MAX).to_string()),
        _ => setting.value(config),
    }
}

fn node_entry(config: &NodeConfig, setting: &'static Setting) -> Entry {
    let name = setting.spec.key;
    let mut synonyms = vec![(name, setting.default_value(), FROM_DEFAULT)];
    let mut source = FROM_DEFAULT;
    if !setting.is_default(config) {
        source = FROM_NODE;
        synonyms.insert(0, (name, setting.value(config), FROM_NODE));
    }
    Entry {
        name,
        value: setting.value(config),
        source,
        kind: setting.kind as i8,
        read_only: true,
        doc: setting.doc,
        synonyms,
    }
}

fn render(entry: Entry, request: &DescribeConfigsRequest) -> DescribeConfigsResourceResult {
    let synonyms = entry.synonyms.into_iter().filter(|_| request.include_synonyms);
    DescribeConfigsResourceResult {
        name: Str::from_static(entry.name),
        value: entry.value.map(Str::from),
        read_only: entry.read_only,
        config_source: entry.source,
        is_sensitive: false,
        synonyms: synonyms
            .map(|(name, value, source)| DescribeConfigsSynonym {
                name: Str::from_static(name),
                value: value.map(Str::from),
                source,
            })
            .collect(),
        config_type: entry.kind,
        documentation: request.include_documentation.then(|| Str::from_static(entry.doc)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(config: &NodeConfig, overrides: &BTreeMap<Str, Str>, name: &str) -> Entry {
        topic_entries(config, overrides).find(|entry| entry.name == name).expect("known")
    }

    #[test]
    fn a_value_comes_from_the_topic_then_the_node_then_the_default() {
        let own = BTreeMap::from([("retention.ms".into(), "7".into())]);
        let node = NodeConfig { log_retention_ms: Some(5), ..NodeConfig::default() };
        let values = |entry: &Entry| (entry.value.clone().expect("set"), entry.source, entry.synonyms.len());
        assert_eq!(values(&entry(&node, &own, "retention.ms")), ("7".to_owned(), FROM_TOPIC, 3));
        assert_eq!(values(&entry(&node, &BTreeMap::new(), "retention.ms")), ("5".to_owned(), FROM_NODE, 2));
        let default = NodeConfig::default();
        let expected = ("604800000".to_owned(), FROM_DEFAULT, 1);
        assert_eq!(values(&entry(&default, &BTreeMap::new(), "retention.ms")), expected);
    }

    #[test]
    fn every_entry_has_a_value_and_a_place_of_its_own() {
        let entries: Vec<_> = topic_entries(&NodeConfig::default(), &BTreeMap::new()).collect();
        assert!(entries.iter().all(|entry| entry.value.is_some()));
        assert!(entries.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
