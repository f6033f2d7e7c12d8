//! What an operator reads when a configuration is wrong: where, which key, what is wrong, what would be right.
//! It never holds the value of an unknown key, which may be a secret.

use std::fmt;

use serde::Serialize;

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Place {
    /// A line of a file; lines count from 1.
    File {
        /// The file as the operator named it.
        file: String,
        /// The line, from 1.
        line: u32,
    },
    /// A command-line flag, such as `--set`.
    Flag {
        /// The flag as typed.
        flag: String,
    },
    /// No place: a setting that is missing.
    Nowhere {},
}

/// One mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// Where it stands.
    #[serde(flatten)]
    pub place: Place,
    /// The key, if one could be read.
    pub key: Option<String>,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub cure: String,
}

/// Every mistake of a configuration, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { file, line } => write!(f, "{file}:{line}"),
            Place::Flag { flag } => write!(f, "{flag}"),
            Place::Nowhere {} => write!(f, "configuration"),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        write!(f, "{}; {}", self.what, self.cure)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "{count} mistake{} in the configuration:", if count == 1 { "" } else { "s" })?;
        for mistake in &self.0 {
            write!(f, "\n  {mistake}")?;
        }
        Ok(())
    }
}
