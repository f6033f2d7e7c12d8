//! The body of `encode`: fields in wire order, values refused where the version cannot carry them, tagged fields.

use std::fmt::Write;

use super::decode::flag;
use super::types;
use crate::conditions::{Condition, choose};
use crate::model::{Field, Message, Struct, Type};
use crate::names;

/// The statements of `encode`; `e` is the encoder, `version` lies in the versions of the structure.
pub(crate) fn body(message: &Message, known: &Struct) -> String {
    let mut text = String::new();
    let flexible = Condition::new(message.flexible, known.versions);
    let mut statements = String::new();
    for field in &known.fields {
        statements.push_str(&mandatory(message, known, field));
    }
    let tags = tagged_fields(message, known);
    let tagged = known.fields.iter().any(|field| field.tag.is_some());
    if let (Condition::When { holds, .. }, true) = (&flexible, statements.contains("flexible") || tagged) {
        let _ = writeln!(text, "let flexible = {holds};");
        let _ = writeln!(text, "{statements}if flexible {{ {tags} }}");
    } else {
        let _ = write!(text, "{statements}{}", choose(&flexible, &tags, ""));
    }
    text.push_str("Ok(())\n");
    text
}

fn error(kind: &str, known: &Struct, field: &Field) -> String {
    format!("return Err(EncodeError::{kind} {{ field: \"{}::{}\", version }});", known.name, field.name)
}

fn mandatory(message: &Message, known: &Struct, field: &Field) -> String {
    let value = format!("self.{}", names::field(&field.name));
    let mut yes = String::new();
    if field.is_option() && !field.mandatory.is_empty() {
        let refuse = format!("if {value}.is_none() {{ {} }}", error("NullNotAllowed", known, field));
        // Where null is possible in some versions only, it is refused in the others.
        match Condition::new(field.nullable, field.mandatory) {
            Condition::Always => {}
            Condition::Never => yes.push_str(&refuse),
            Condition::When { fails, .. } => {
                let _ = writeln!(
                    yes,
                    "if {value}.is_none() && {fails} {{ {} }}",
                    error("NullNotAllowed", known, field)
                );
            }
        }
    }
    yes.push_str(&write(field, &value, flag(message, known), "present"));
    let in_place = Condition::new(field.mandatory, known.versions);
    let anywhere = Condition::new(field.versions, known.versions);
    let differs = types::differs(field, &value);
    let error = error("NoSuchField", known, field);
    match (&in_place, &anywhere) {
        // Dropped without a word where the version has no such field.
        _ if field.ignorable => choose(&in_place, &yes, ""),
        (Condition::When { holds, .. }, _) if in_place == anywhere => {
            format!("if {holds} {{ {yes} }} else if {differs} {{ {error} }}\n")
        }
        (_, Condition::When { fails, .. }) => {
            format!("{}if {fails} && {differs} {{ {error} }}\n", choose(&in_place, &yes, ""))
        }
        _ => choose(&in_place, &yes, ""),
    }
}

/// The statements that write a field that the version has.
fn write(field: &Field, value: &str, flag: &str, present: &str) -> String {
    let option = field.is_option();
    match &field.ty {
        Type::Fixed(name, _) => format!("e.{name}({value});\n"),
        Type::Uuid => format!("e.uuid({value});\n"),
        Type::Str if option => format!("e.nullable_str({value}.as_deref(), {flag})?;\n"),
        Type::Str => format!("e.str(&{value}, {flag})?;\n"),
        Type::Bytes if option => format!("e.nullable_bytes({value}.as_ref(), {flag})?;\n"),
        Type::Bytes => format!("e.bytes(&{value}, {flag})?;\n"),
        Type::Records => format!("e.nullable_records({value}.as_ref(), {flag})?;\n"),
        Type::Struct(_) if option => format!(
            "e.{present}({value}.is_some());\n\
             if let Some(value) = &{value} {{ value.encode(e, version)?; }}\n"
        ),
        Type::Struct(_) => format!("{value}.encode(e, version)?;\n"),
        Type::Array(element) => {
            let write = match &**element {
                Type::Fixed(name, _) => format!("e.{name}(*element);"),
                Type::Uuid => "e.uuid(*element);".to_owned(),
                Type::Str => format!("e.str(element, {flag})?;"),
                Type::Struct(_) => "element.encode(e, version)?;".to_owned(),
                other => unreachable!("Kafka has no arrays of {other:?}"),
            };
            if option {
                format!(
                    "e.nullable_array_len({value}.as_ref().map(Vec::len), {flag})?;\n\
                     for element in {value}.iter().flatten() {{ {write} }}\n"
                )
            } else {
                format!("e.array_len({value}.len(), {flag})?;\nfor element in &{value} {{ {write} }}\n")
            }
        }
    }
}

/// The statements that write the tagged fields, by number, those that differ from their defaults.
fn tagged_fields(message: &Message, known: &Struct) -> String {
    let mut tagged: Vec<&Field> = known.fields.iter().filter(|field| field.tag.is_some()).collect();
    if tagged.is_empty() {
        return "e.uvarint(0);\n".to_owned();
    }
    tagged.sort_by_key(|field| field.tag);
    let mut flags = String::new();
    let mut writes = String::new();
    let mut count = Vec::new();
    for field in tagged {
        let value = format!("self.{}", names::field(&field.name));
        let has = format!("has_{}", names::snake(&field.name));
        let differs = types::differs(field, &value);
        let within = Condition::new(field.tagged, message.flexible.and(known.versions));
        let _ = match within {
            Condition::When { holds, .. } => writeln!(flags, "let {has} = {holds} && {differs};"),
            Condition::Always | Condition::Never => writeln!(flags, "let {has} = {differs};"),
        };
        let tag = field.tag.unwrap_or_default();
        let write = write(field, &value, "true", "present_tagged");
        let _ = writeln!(writes, "if {has} {{ let start = e.begin_tag({tag});\n{write}e.end_tag(start); }}");
        count.push(format!("u32::from({has})"));
    }
    format!("{flags}e.uvarint({});\n{writes}", count.join(" + "))
}
