//! Why a run could not be made at all. A run that was made and did badly is a `Report` that says so.

use std::io;
use std::time::Duration;

use protocol::ErrorCode;

/// What stops a run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The options contradict themselves or each other.
    #[error("{0}")]
    Option(String),
    /// No broker at the bootstrap address.
    #[error("no connection to {address}: {source}")]
    Connect {
        /// Address as it was given or advertised.
        address: String,
        /// What the network said.
        source: io::Error,
    },
    /// The connection ended while an answer was awaited.
    #[error("the connection was lost: {0}")]
    Lost(#[from] io::Error),
    /// Bytes that are not the answer expected.
    #[error("the broker's answer to {request} cannot be read: {reason}")]
    Malformed {
        /// Name of the request.
        request: &'static str,
        /// What is wrong with the answer.
        reason: String,
    },
    /// A request that cannot be written in the broker's version of it.
    #[error("a {request} request cannot be written: {reason}")]
    Unsendable {
        /// Name of the request.
        request: &'static str,
        /// What the version lacks.
        reason: String,
    },
    /// The broker has no version of a request in common with this client.
    #[error("the broker does not serve {request} in a version from {min} to {max}")]
    Unsupported {
        /// Name of the request.
        request: &'static str,
        /// Oldest version that this client speaks.
        min: i16,
        /// Newest version that this client speaks.
        max: i16,
    },
    /// The broker refused a request that the run depends on.
    #[error("{what}: {name}{}", .message.as_deref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Refused {
        /// What was asked for.
        what: String,
        /// The broker's error code.
        code: i16,
        /// Its name.
        name: String,
        /// The broker's own words, if any.
        message: Option<String>,
    },
    /// The topic exists and is not what the options say.
    #[error("topic {topic} has {found} partitions, --partitions says {wanted}")]
    Partitions {
        /// Topic.
        topic: String,
        /// Partitions that it has.
        found: i32,
        /// Partitions that were asked for.
        wanted: i32,
    },
    /// A consumer that knows where to end got nothing more.
    #[error("no record for {0:?} before the end of the log")]
    Stalled(Duration),
    /// A file beside the broker: histogram log, process table.
    #[error("{path}: {source}")]
    File {
        /// File.
        path: String,
        /// What the file system said.
        source: io::Error,
    },
    /// The generator's own threads did not start.
    #[error("the generator did not start: {0}")]
    Start(String),
}

/// Kafka's name of an error code, or its number when this version does not know it.
pub(crate) fn code_name(code: i16) -> String {
    ErrorCode::from_code(code).map_or_else(|| format!("ERROR_{code}"), |known| known.name().to_owned())
}

impl BenchError {
    pub(crate) fn option(text: impl Into<String>) -> Self {
        BenchError::Option(text.into())
    }

    pub(crate) fn refused(what: impl Into<String>, code: i16, message: Option<String>) -> Self {
        BenchError::Refused { what: what.into(), code, name: code_name(code), message }
    }
}
