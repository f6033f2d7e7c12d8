//! One message as one Rust file.

use std::fmt::Write;

use anyhow::{Result, ensure};

use super::{decode, encode, header, role, types};
use crate::conditions::Condition;
use crate::model::{Field, Kind, Message, Struct, Type};
use crate::names;
use crate::versions::Versions;

/// Names that the generated files import, and that no structure may therefore have.
const IMPORTS: [&str; 6] = ["Bytes", "Records", "Str", "Uuid", "Decoder", "Encoder"];
const RESERVED: [&str; 9] =
    ["DecodeError", "EncodeError", "Message", "Request", "Record", "ApiKey", "Option", "Result", "Vec"];

/// The file.
pub(crate) fn file(message: &Message) -> Result<String> {
    for known in &message.structs {
        let name = known.name.as_str();
        ensure!(!IMPORTS.contains(&name) && !RESERVED.contains(&name), "{name} is a name the file needs");
    }
    let mut body = String::new();
    for known in &message.structs {
        definition(&mut body, message, known);
    }
    let mut text =
        header(&format!("`{}`: {}, versions {}.", message.name, role(message.kind), message.versions));
    imports(&mut text, message, &body);
    text.push_str(&body);
    Ok(text)
}

fn imports(text: &mut String, message: &Message, body: &str) {
    // The body is checked for whole words, so that nothing is imported for the sake of a longer name.
    let words: Vec<&str> = body.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let used = |name: &&'static str| words.contains(name);
    if used(&"Bytes") {
        text.push_str("use bytes::Bytes;\n\n");
    }
    let traits = match message.kind {
        Kind::Request(_) => "Message, Request",
        Kind::Record(_) => "Message, Record",
        Kind::Response(_) | Kind::Data => "Message",
    };
    let _ = writeln!(text, "use crate::messages::{{{traits}}};");
    let _ = writeln!(text, "use crate::wire::{{DecodeError, Decoder, EncodeError, Encoder}};");
    let mut names = vec!["Records", "Str", "Uuid"];
    names.retain(used);
    if matches!(message.kind, Kind::Request(_)) {
        names.insert(0, "ApiKey");
    }
    if !names.is_empty() {
        let _ = writeln!(text, "use crate::{{{}}};", names.join(", "));
    }
    text.push('\n');
}

fn definition(text: &mut String, message: &Message, known: &Struct) {
    let name = &known.name;
    let is_message = *name == message.name;
    if is_message {
        let _ = writeln!(text, "/// `{name}`: {}, versions {}.", role(message.kind), message.versions);
    } else {
        let _ = writeln!(text, "/// `{name}` in `{}`, versions {}.", message.name, known.versions);
    }
    let derived = known.fields.iter().all(types::default_is_rusts);
    let default = if derived { ", Default" } else { "" };
    let _ = writeln!(text, "#[derive(Clone, Debug{default}, PartialEq)]\npub struct {name} {{");
    for field in &known.fields {
        let _ = writeln!(text, "{}", documentation(field, known.versions));
        let _ = writeln!(text, "pub {}: {},", names::field(&field.name), types::rust_type(field));
    }
    text.push_str("}\n\n");
    if !derived {
        let _ = writeln!(text, "impl Default for {name} {{ fn default() -> Self {{ Self {{");
        for field in &known.fields {
            let _ = writeln!(text, "{}: {},", names::field(&field.name), types::default(field));
        }
        text.push_str("} } }\n\n");
    }
    let decode = decode::body(message, known);
    let encode = encode::body(message, known);
    let (dv, ev) = (version_parameter(&decode), version_parameter(&encode));
    if is_message {
        message_impl(text, message, &decode, &encode);
    } else {
        let _ = writeln!(
            text,
            "impl {name} {{\n\
             fn decode(d: &mut Decoder, {dv}: i16) -> Result<Self, DecodeError> {{\n{decode}}}\n\n\
             fn encode(&self, e: &mut Encoder, {ev}: i16) -> Result<(), EncodeError> {{\n{encode}}}\n}}\n"
        );
    }
}

/// The name of the parameter `version`: with an underscore where the body does not use it.
fn version_parameter(body: &str) -> &'static str {
    // A field may be called so too.
    let body = body.replace("self.version", "").replace("version: ", "");
    let mut words = body.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    if words.any(|word| word == "version") { "version" } else { "_version" }
}

fn message_impl(text: &mut String, message: &Message, decode: &str, encode: &str) {
    let Message { name, versions: Versions { min, max }, flexible, .. } = message;
    let flexible_from =
        if flexible.is_empty() { "None".to_owned() } else { format!("Some({})", flexible.min) };
    let _ = writeln!(
        text,
        "impl Message for {name} {{\n\
         const NAME: &'static str = {name:?};\n\
         const MIN_VERSION: i16 = {min};\n\
         const MAX_VERSION: i16 = {max};\n\
         const FLEXIBLE_FROM: Option<i16> = {flexible_from};\n\n\
         fn decode(d: &mut Decoder, version: i16) -> Result<Self, DecodeError> {{\n\
         Self::check_decodable(version)?;\n{decode}}}\n\n\
         fn encode(&self, e: &mut Encoder, version: i16) -> Result<(), EncodeError> {{\n\
         Self::check_encodable(version)?;\n{encode}}}\n}}\n"
    );
    match message.kind {
        Kind::Request(_) => {
            let api = name.strip_suffix("Request").unwrap_or(name);
            let _ = writeln!(
                text,
                "impl Request for {name} {{\n\
                 const KEY: ApiKey = ApiKey::{api};\n\
                 type Response = super::{api}Response;\n}}"
            );
        }
        Kind::Record(number) => {
            let _ = writeln!(text, "impl Record for {name} {{ const TYPE: i16 = {number}; }}");
        }
        Kind::Response(_) | Kind::Data => {}
    }
}

/// The documentation of a field: its name, and where it is, can be null, or is tagged, so far as that varies.
fn documentation(field: &Field, all: Versions) -> String {
    let mut text = format!("/// `{}`", field.name);
    if Condition::new(field.versions, all) != Condition::Always {
        let _ = write!(text, ", versions {}", field.versions);
    }
    match Condition::new(field.nullable, field.versions) {
        Condition::Always => text.push_str(", nullable"),
        Condition::When { .. } => {
            let _ = write!(text, ", nullable in {}", field.nullable);
        }
        Condition::Never if field.ty == Type::Records => text.push_str(", must be set"),
        Condition::Never => {}
    }
    match (Condition::new(field.tagged, field.versions), field.tag) {
        (Condition::Always, Some(tag)) => {
            let _ = write!(text, ", tagged {tag}");
        }
        (Condition::When { .. }, Some(tag)) => {
            let _ = write!(text, ", tagged {tag} in {}", field.tagged);
        }
        _ => {}
    }
    text.push('.');
    text
}
