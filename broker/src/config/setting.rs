//! What a setting is, and the macro that makes `NodeConfig` and `SETTINGS` out of the table in `table`.

use super::entry::Raw;
use super::table::{NodeConfig, SETTINGS};
use super::value::Wrong;

/// The type of a setting, by the codes of Kafka's DescribeConfigs (KIP-569).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum Kind {
    /// true or false
    Boolean = 1,
    /// text
    String = 2,
    /// 32-bit integer
    Int = 3,
    /// 64-bit integer
    Long = 5,
    /// comma-separated list
    List = 7,
}

/// The unit in which a number is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain count, or not a number.
    Plain,
    /// Bytes; `512MiB` is accepted.
    Bytes,
    /// Milliseconds; `7d` is accepted.
    Milliseconds,
    /// Minutes; `7d` is accepted.
    Minutes,
    /// Hours; `7d` is accepted.
    Hours,
}

/// What the table says of a setting besides its Rust type.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Kafka's name, or ours where Kafka has none.
    pub key: &'static str,
    /// A second name that means the same.
    pub alias: Option<&'static str>,
    /// The topic-level name, where a topic may override the setting.
    pub topic_key: Option<&'static str>,
    /// Smallest and largest value, both allowed.
    pub bounds: (i64, i64),
    /// The unit of the number.
    pub unit: Unit,
    /// A value as it would stand in a TOML file.
    pub example: &'static str,
    /// Whether Apache Kafka has the setting.
    pub in_kafka: bool,
}

/// One setting of the table.
pub struct Setting {
    /// Name, bounds, unit, example.
    pub spec: Spec,
    /// The heading that it stands under.
    pub section: &'static str,
    /// One sentence of documentation.
    pub doc: &'static str,
    /// Type for DescribeConfigs.
    pub kind: Kind,
    /// The choices of a named choice; empty otherwise.
    pub choices: &'static [&'static str],
    /// Parses a value into its field.
    pub(super) set: fn(&mut NodeConfig, &Raw, &Spec) -> Result<(), Wrong>,
    /// The field in Kafka's text form; none where Kafka would say null.
    pub(super) get: fn(&NodeConfig) -> Option<String>,
}

impl Spec {
    pub(super) const fn kafka(key: &'static str) -> Spec {
        Spec {
            key,
            alias: None,
            topic_key: None,
            bounds: (i64::MIN, i64::MAX),
            unit: Unit::Plain,
            example: "",
            in_kafka: true,
        }
    }

    pub(super) const fn ours(key: &'static str) -> Spec {
        Spec { in_kafka: false, ..Spec::kafka(key) }
    }

    pub(super) const fn alias(self, alias: &'static str) -> Spec {
        Spec { alias: Some(alias), ..self }
    }

    pub(super) const fn topic(self, topic_key: &'static str) -> Spec {
        Spec { topic_key: Some(topic_key), ..self }
    }

    pub(super) const fn at_least(self, least: i64) -> Spec {
        Spec { bounds: (least, i64::MAX), ..self }
    }

    pub(super) const fn between(self, least: i64, most: i64) -> Spec {
        Spec { bounds: (least, most), ..self }
    }

    pub(super) const fn unit(self, unit: Unit) -> Spec {
        Spec { unit, ..self }
    }

    pub(super) const fn example(self, example: &'static str) -> Spec {
        Spec { example, ..self }
    }
}

impl Setting {
    /// The value in Kafka's text form, for DescribeConfigs; none where Kafka would say null.
    #[must_use]
    pub fn value(&self, config: &NodeConfig) -> Option<String> {
        (self.get)(config)
    }

    /// The default in Kafka's text form.
    #[must_use]
    pub fn default_value(&self) -> Option<String> {
        (self.get)(&NodeConfig::default())
    }

    /// Whether the value is the default.
    #[must_use]
    pub fn is_default(&self, config: &NodeConfig) -> bool {
        self.value(config) == self.default_value()
    }
}

/// The setting with this name or alias.
#[must_use]
pub fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|s| s.spec.key == key || s.spec.alias == Some(key))
}

/// Makes the struct, its default and the table of settings from one list.
macro_rules! settings {
    ($(section $section:literal { $(
        $(#[doc = $doc:literal])+
        $field:ident: $type:ty = $default:expr, $spec:expr;
    )* })*) => {
        /// The configuration of one node: plain values, in Kafka's names turned to snake case.
        #[derive(Debug, Clone, PartialEq)]
        pub struct NodeConfig { $($(
            $(#[doc = $doc])+
            pub $field: $type,
        )*)* }

        impl Default for NodeConfig {
            fn default() -> Self {
                NodeConfig { $($( $field: $default, )*)* }
            }
        }

        /// Every setting, in the order of the documentation.
        pub static SETTINGS: &[Setting] = &[ $($(
            Setting {
                spec: $spec,
                section: $section,
                doc: concat!($($doc),+),
                kind: <$type as Value>::KIND,
                choices: <$type as Value>::CHOICES,
                set: |config, raw, spec| {
                    config.$field = <$type as Value>::parse(raw, spec)?;
                    Ok(())
                },
                get: |config| config.$field.render(),
            },
        )*)* ];
    };
}
pub(super) use settings;
