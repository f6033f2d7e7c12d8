//! One `key = value` as some source gives it, before the table says what it means.

use super::mistake::Place;

/// A value before its type is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// A TOML boolean.
    Bool(bool),
    /// A TOML integer.
    Int(i64),
    /// A TOML string, a line of `.properties`, or a flag.
    Text(String),
    /// A TOML array of strings, integers or booleans, each as text.
    List(Vec<String>),
    /// Anything else, by the name of its TOML type.
    Other(&'static str),
}

/// One value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Kafka's dotted name.
    pub key: String,
    /// The value.
    pub raw: Raw,
    /// Where it stands.
    pub place: Place,
}

impl Entry {
    /// A value that a command-line flag gives.
    #[must_use]
    pub fn flag(flag: &str, key: &str, value: &str) -> Entry {
        let place = Place::Flag { flag: flag.to_owned() };
        Entry { key: key.to_owned(), raw: Raw::Text(value.to_owned()), place }
    }
}

impl Raw {
    /// The type as an operator would name it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Raw::Bool(_) => "a boolean",
            Raw::Int(_) => "a whole number",
            Raw::Text(_) => "text",
            Raw::List(_) => "a list",
            Raw::Other(name) => name,
        }
    }
}
