//! Turns the definitions of the jars into checked [`Message`]s: ranges intersected, names looked up, defaults parsed.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

use crate::model::{Definition, Field, Kind, Message, RawField, Struct, Type, Value};
use crate::versions::Versions;

/// The messages, ordered by name. Left out: the frame headers, which `protocol` writes by hand, and messages without
/// a valid version, which Kafka keeps only to reserve their numbers.
pub(crate) fn messages(definitions: Vec<Definition>) -> Result<Vec<Message>> {
    let mut messages = BTreeMap::new();
    for definition in definitions {
        let name = definition.name.clone();
        if definition.kind == "header" || Versions::parse(&definition.valid_versions)?.is_empty() {
            continue;
        }
        let message = message(definition).with_context(|| name.clone())?;
        ensure!(messages.insert(name.clone(), message).is_none(), "{name} is defined twice");
    }
    Ok(messages.into_values().collect())
}

fn message(definition: Definition) -> Result<Message> {
    let key = || definition.api_key.context("no apiKey");
    let kind = match definition.kind.as_str() {
        "request" => Kind::Request(key()?),
        "response" => Kind::Response(key()?),
        "metadata" | "coordinator-key" | "coordinator-value" => Kind::Record(key()?),
        "data" => Kind::Data,
        other => bail!("unknown type {other:?}"),
    };
    let versions = Versions::parse(&definition.valid_versions)?;
    let flexible = definition.flexible_versions.as_deref().context("no flexibleVersions")?;
    let mut resolver = Resolver {
        flexible: Versions::parse(flexible)?.and(versions),
        shared: BTreeMap::new(),
        structs: Vec::new(),
    };
    let mut shared = Vec::new();
    for raw in definition.common_structs {
        let versions = Versions::parse(&raw.versions)?.and(versions);
        resolver.shared.insert(raw.name.clone(), versions);
        shared.push((raw.name, versions, raw.fields));
    }
    resolver.add_struct(definition.name.clone(), versions, definition.fields)?;
    for (name, versions, fields) in shared {
        resolver.add_struct(name, versions, fields)?;
    }
    let unstable = i16::from(definition.latest_version_unstable);
    Ok(Message {
        name: definition.name,
        kind,
        versions,
        stable_versions: Versions { min: versions.min, max: versions.max - unstable },
        flexible: resolver.flexible,
        listeners: definition.listeners,
        structs: resolver.structs,
    })
}

/// Collects the structures of one message.
struct Resolver {
    flexible: Versions,
    shared: BTreeMap<String, Versions>,
    structs: Vec<Struct>,
}

impl Resolver {
    fn add_struct(&mut self, name: String, versions: Versions, fields: Vec<RawField>) -> Result<()> {
        ensure!(!self.structs.iter().any(|known| known.name == name), "structure {name} is defined twice");
        let place = self.structs.len();
        self.structs.push(Struct { name: name.clone(), versions, fields: Vec::new() });
        let mut resolved = Vec::new();
        for raw in fields {
            let field_name = raw.name.clone();
            let field = self.field(raw, versions).with_context(|| format!("{name}::{field_name}"))?;
            // A field that no valid version has is a leftover of versions that are gone.
            resolved.extend(field);
        }
        let mut tags: Vec<u32> = resolved.iter().filter_map(|field| field.tag).collect();
        tags.sort_unstable();
        ensure!(
            tags.iter().enumerate().all(|(at, &tag)| at == tag as usize),
            "tags of {name} are not 0, 1, 2, …"
        );
        self.structs[place].fields = resolved;
        Ok(())
    }

    fn field(&mut self, raw: RawField, parent: Versions) -> Result<Option<Field>> {
        let range = |text: &Option<String>| text.as_deref().map_or(Ok(Versions::NONE), Versions::parse);
        let tagged = range(&raw.tagged_versions)?;
        let versions = if raw.versions.is_none() { tagged } else { range(&raw.versions)? }.and(parent);
        if versions.is_empty() {
            return Ok(None);
        }
        let tagged = tagged.and(versions);
        ensure!(tagged.and(self.flexible) == tagged, "tagged in a version that is not flexible");
        ensure!(raw.tag.is_some() || tagged.is_empty(), "tagged without a tag");
        let ty = self.ty(&raw.ty)?;
        let nullable = range(&raw.nullable_versions)?.and(versions);
        let default = default(&ty, !nullable.is_empty(), raw.default.as_ref())?;
        if !raw.fields.is_empty() {
            let name = struct_name(&ty).context("fields in a field that is no structure")?;
            self.add_struct(name.to_owned(), versions, raw.fields)?;
        }
        Ok(Some(Field {
            name: raw.name,
            mandatory: versions.minus(tagged).context("tagged in the middle of its versions")?,
            tag: raw.tag.filter(|_| !tagged.is_empty()),
            ty,
            versions,
            tagged,
            nullable,
            default,
            ignorable: raw.ignorable,
        }))
    }

    fn ty(&self, name: &str) -> Result<Type> {
        if let Some(element) = name.strip_prefix("[]") {
            return Ok(Type::Array(Box::new(self.ty(element)?)));
        }
        Ok(match name {
            "bool" => Type::Fixed("bool", 1),
            "int8" => Type::Fixed("i8", 1),
            "int16" => Type::Fixed("i16", 2),
            "uint16" => Type::Fixed("u16", 2),
            "int32" => Type::Fixed("i32", 4),
            "uint32" => Type::Fixed("u32", 4),
            "int64" => Type::Fixed("i64", 8),
            "float64" => Type::Fixed("f64", 8),
            "uuid" => Type::Uuid,
            "string" => Type::Str,
            "bytes" => Type::Bytes,
            "records" => Type::Records,
            _ if name.starts_with(|first: char| first.is_ascii_uppercase()) => Type::Struct(name.to_owned()),
            _ => bail!("unknown type {name:?}"),
        })
    }
}

/// The structure that a field, or each element of it, is.
fn struct_name(ty: &Type) -> Option<&str> {
    match ty {
        Type::Struct(name) => Some(name),
        Type::Array(element) => struct_name(element),
        _ => None,
    }
}

/// The default. A JSON null is the same as none, as in Kafka's own generator: empty, not null.
fn default(ty: &Type, nullable: bool, raw: Option<&serde_json::Value>) -> Result<Value> {
    let text = match raw {
        None | Some(serde_json::Value::Null) => String::new(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if *ty == Type::Records || text == "null" {
        ensure!(nullable || *ty == Type::Records, "default null, and never null");
        return Ok(Value::Null);
    }
    if text.is_empty() {
        return Ok(Value::Empty);
    }
    Ok(match ty {
        Type::Fixed("bool", _) => match text.to_ascii_lowercase().as_str() {
            "false" => Value::Empty,
            "true" => Value::True,
            _ => bail!("default {text:?}"),
        },
        Type::Fixed(name, _) if *name != "f64" => {
            let number = match text.strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16),
                None => text.parse(),
            };
            match number.with_context(|| format!("default {text:?}"))? {
                0 => Value::Empty,
                number => Value::Number(number),
            }
        }
        Type::Str => Value::Text(text),
        _ => bail!("default {text:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(json: &str) -> Result<Vec<Message>> {
        messages(vec![serde_json::from_str(json).expect("JSON")])
    }

    #[test]
    fn ranges_are_intersected_and_gone_fields_dropped() {
        let messages = one(r#"{ "apiKey": 1, "type": "request", "name": "ARequest", "validVersions": "3-6",
            "flexibleVersions": "5+", "latestVersionUnstable": true, "fields": [
            { "name": "Gone", "type": "int32", "versions": "0-2" },
            { "name": "Items", "type": "[]Item", "versions": "4+", "fields": [
              { "name": "X", "type": "int64", "versions": "0+", "default": "-1" } ] },
            { "name": "Extra", "type": "string", "versions": "3+", "taggedVersions": "5+", "tag": 0,
              "nullableVersions": "5+", "default": "null" } ] }"#)
        .expect("messages");
        let message = &messages[0];
        assert_eq!(message.stable_versions, Versions { min: 3, max: 5 });
        let names: Vec<_> = message.structs[0].fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["Items", "Extra"]);
        assert_eq!(message.structs[1].versions, Versions { min: 4, max: 6 });
        assert_eq!(message.structs[1].fields[0].default, Value::Number(-1));
        assert_eq!(message.structs[0].fields[1].mandatory, Versions { min: 3, max: 4 });
        assert_eq!(message.structs[0].fields[1].default, Value::Null);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let refused = |field: &str| {
            one(&format!(
                r#"{{ "type": "data", "name": "A", "validVersions": "0", "flexibleVersions": "none",
                "fields": [ {{ "name": "X", "versions": "0+", {field} }} ] }}"#
            ))
            .is_err()
        };
        assert!(!refused(r#""type": "int32""#));
        assert!(refused(r#""type": "int33""#));
        assert!(refused(r#""type": "int32", "default": "x""#));
        assert!(refused(r#""type": "string", "default": "null""#));
        assert!(refused(r#""type": "int32", "taggedVersions": "0+", "tag": 0"#));
    }
}
