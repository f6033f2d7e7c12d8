//! Topic-level names over the same table: a topic's configuration is the node's with a few values replaced.

use std::collections::BTreeMap;

use super::entry::Raw;
use super::setting::Setting;
use super::table::{NodeConfig, SETTINGS};

/// Every setting that a topic may override, with its topic-level name.
pub fn topic_settings() -> impl Iterator<Item = (&'static str, &'static Setting)> {
    SETTINGS.iter().filter_map(|setting| setting.spec.topic_key.map(|key| (key, setting)))
}

impl NodeConfig {
    /// This configuration with a topic's overrides, by their topic-level names such as `retention.ms`.
    /// An error is a sentence for the client that sent the overrides (INVALID_CONFIG).
    pub fn for_topic<'a>(
        &self,
        overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<NodeConfig, String> {
        let mut config = self.clone();
        let mut seen = BTreeMap::new();
        for (key, value) in overrides {
            let Some((_, setting)) = topic_settings().find(|(name, _)| *name == key) else {
                return Err(format!("Unknown topic config name: {key}"));
            };
            if seen.insert(key, ()).is_some() {
                return Err(format!("{key} is given twice"));
            }
            (setting.set)(&mut config, &Raw::Text(value.to_owned()), &setting.spec)
                .map_err(|wrong| format!("Invalid value for {key}: {}; {}", wrong.what, wrong.cure))?;
        }
        Ok(config)
    }
}
