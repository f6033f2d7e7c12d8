//! The definitions as the jars hold them ([`Definition`]), and as they are once checked ([`Message`]).

use serde::Deserialize;

use crate::versions::Versions;

/// One file of the jars.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Definition {
    /// The number of the API, or of the kind of record.
    pub(crate) api_key: Option<i16>,
    /// `request`, `response`, `header`, `data`, `metadata`, `coordinator-key` or `coordinator-value`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The name.
    pub(crate) name: String,
    /// The versions that exist.
    pub(crate) valid_versions: String,
    /// The versions in the flexible encoding.
    pub(crate) flexible_versions: Option<String>,
    /// Where a request is served.
    #[serde(default)]
    pub(crate) listeners: Vec<String>,
    /// Whether the highest version may still change.
    #[serde(default)]
    pub(crate) latest_version_unstable: bool,
    /// The fields.
    #[serde(default)]
    pub(crate) fields: Vec<RawField>,
    /// Structures that several fields share.
    #[serde(default)]
    pub(crate) common_structs: Vec<RawStruct>,
}

/// A structure that several fields share.
#[derive(Deserialize)]
pub(crate) struct RawStruct {
    /// The name.
    pub(crate) name: String,
    /// The versions that have it.
    pub(crate) versions: String,
    /// The fields.
    pub(crate) fields: Vec<RawField>,
}

/// One field.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawField {
    /// The name.
    pub(crate) name: String,
    /// The type.
    #[serde(rename = "type")]
    pub(crate) ty: String,
    /// The versions that have it.
    pub(crate) versions: Option<String>,
    /// The versions that can be null.
    pub(crate) nullable_versions: Option<String>,
    /// The versions that carry it as a tagged field.
    pub(crate) tagged_versions: Option<String>,
    /// The number of the tagged field.
    pub(crate) tag: Option<u32>,
    /// The default, a string, boolean, number or null.
    pub(crate) default: Option<serde_json::Value>,
    /// Whether a value may be dropped silently where the version lacks the field.
    #[serde(default)]
    pub(crate) ignorable: bool,
    /// The fields of a structure defined in place.
    #[serde(default)]
    pub(crate) fields: Vec<RawField>,
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request, by API key.
    Request(i16),
    /// A response, by API key.
    Response(i16),
    /// A record of the metadata log or of a coordinator, by record type.
    Record(i16),
    /// Data inside other messages.
    Data,
}

/// A checked message.
pub(crate) struct Message {
    /// Kafka's name.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) kind: Kind,
    /// The versions that exist.
    pub(crate) versions: Versions,
    /// The versions that will not change any more.
    pub(crate) stable_versions: Versions,
    /// The versions in the flexible encoding.
    pub(crate) flexible: Versions,
    /// Where a request is served.
    pub(crate) listeners: Vec<String>,
    /// The message itself, then the structures in it.
    pub(crate) structs: Vec<Struct>,
}

/// A checked structure.
pub(crate) struct Struct {
    /// Kafka's name.
    pub(crate) name: String,
    /// The versions in which it can occur.
    pub(crate) versions: Versions,
    /// The fields in wire order.
    pub(crate) fields: Vec<Field>,
}

/// A checked field. All ranges lie within the versions of its structure.
pub(crate) struct Field {
    /// Kafka's name.
    pub(crate) name: String,
    /// The type, without nullability.
    pub(crate) ty: Type,
    /// The versions that have it, in either place.
    pub(crate) versions: Versions,
    /// The versions that have it in its place in the order.
    pub(crate) mandatory: Versions,
    /// The versions that have it as a tagged field.
    pub(crate) tagged: Versions,
    /// The number of the tagged field.
    pub(crate) tag: Option<u32>,
    /// The versions that can be null.
    pub(crate) nullable: Versions,
    /// The default.
    pub(crate) default: Value,
    /// Whether a value may be dropped silently where the version lacks the field.
    pub(crate) ignorable: bool,
}

impl Field {
    /// Whether the Rust field is an `Option`. Records always are: Kafka's default for them is null.
    pub(crate) fn is_option(&self) -> bool {
        !self.nullable.is_empty() || self.ty == Type::Records
    }
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A number or boolean: the Rust type, and its width in bytes.
    Fixed(&'static str, usize),
    /// A 16-byte identifier.
    Uuid,
    /// Text.
    Str,
    /// Bytes.
    Bytes,
    /// Record batches.
    Records,
    /// A structure of the same message.
    Struct(String),
    /// An array.
    Array(Box<Type>),
}

/// A default value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Null.
    Null,
    /// Zero, false, empty, or a structure of defaults.
    Empty,
    /// A boolean that is true.
    True,
    /// A number other than zero.
    Number(i64),
    /// Text that is not empty.
    Text(String),
}
