//! The body of `decode`: fields in wire order into a structure literal, then the tagged fields.

use std::fmt::Write;

use super::types;
use crate::conditions::{Condition, choose};
use crate::model::{Field, Message, Struct, Type};
use crate::names;

/// The statements of `decode`; `d` is the decoder, `version` lies in the versions of the structure.
pub(crate) fn body(message: &Message, known: &Struct) -> String {
    let mut text = String::new();
    let flexible = Condition::new(message.flexible, known.versions);
    let mut fields = String::new();
    for field in &known.fields {
        let name = names::field(&field.name);
        let value = choose(
            &Condition::new(field.mandatory, known.versions),
            &mandatory(message, known, field),
            &types::default(field),
        );
        let _ = writeln!(fields, "{name}: {value},");
    }
    let tagged = known.fields.iter().any(|field| field.tag.is_some());
    let uses_flag = fields.contains("flexible") || tagged;
    if let (Condition::When { holds, .. }, true) = (&flexible, uses_flag) {
        let _ = writeln!(text, "let flexible = {holds};");
    }
    let tags = tagged_fields(message, known);
    let section = choose_flexible(&flexible, uses_flag, &tags);
    let mutable = if tagged { "mut " } else { "" };
    if section.is_empty() {
        let _ = writeln!(text, "Ok(Self {{ {fields} }})");
    } else {
        let _ = writeln!(text, "let {mutable}this = Self {{ {fields} }};\n{section}\nOk(this)");
    }
    text
}

fn choose_flexible(flexible: &Condition, has_flag: bool, statement: &str) -> String {
    match flexible {
        Condition::When { .. } if has_flag => format!("if flexible {{ {statement} }}"),
        _ => choose(flexible, statement, ""),
    }
}

/// The argument that says whether the version is flexible.
pub(crate) fn flag(message: &Message, known: &Struct) -> &'static str {
    match Condition::new(message.flexible, known.versions) {
        Condition::Always => "true",
        Condition::Never => "false",
        Condition::When { .. } => "flexible",
    }
}

/// The expression that reads a field in its place in the order.
fn mandatory(message: &Message, known: &Struct, field: &Field) -> String {
    let flag = flag(message, known);
    let read = read(message, known, field, flag, "is_present");
    let nullable = Condition::new(field.nullable, field.mandatory);
    choose(&nullable, &read.nullable, &read.plain)
}

/// The two ways to read a field: with null (an `Option`), and without (wrapped where the field is an `Option`).
struct Read {
    nullable: String,
    plain: String,
}

fn read(message: &Message, known: &Struct, field: &Field, flag: &str, is_present: &str) -> Read {
    let (nullable, plain) = match &field.ty {
        Type::Fixed(name, _) => (String::new(), format!("d.{name}()?")),
        Type::Uuid => (String::new(), "d.uuid()?".to_owned()),
        Type::Str => (format!("d.nullable_str({flag})?"), format!("d.str({flag})?")),
        Type::Bytes => (format!("d.nullable_bytes({flag})?"), format!("d.bytes({flag})?")),
        Type::Records => (format!("d.nullable_records({flag})?"), format!("d.records({flag})?")),
        Type::Struct(name) => (
            format!("if d.{is_present}()? {{ Some({name}::decode(d, version)?) }} else {{ None }}"),
            format!("{name}::decode(d, version)?"),
        ),
        Type::Array(element) if **element == Type::Str => {
            (format!("d.nullable_str_array({flag})?"), format!("d.str_array({flag})?"))
        }
        Type::Array(element) => {
            let min = types::min_element_bytes(message, known, field, element);
            assert!(min > 0, "{}::{} has elements that may take no bytes", known.name, field.name);
            let read = match &**element {
                Type::Struct(name) => format!("{name}::decode"),
                Type::Fixed(name, _) => format!("|d, _| d.{name}()"),
                Type::Uuid => "|d, _| d.uuid()".to_owned(),
                other => unreachable!("Kafka has no arrays of {other:?}"),
            };
            let call = |name: &str| format!("d.{name}({flag}, version, {min}, {read})?");
            (call("nullable_array"), call("array"))
        }
    };
    let plain = if field.is_option() { format!("Some({plain})") } else { plain };
    Read { nullable, plain }
}

/// The statements that read the tagged fields.
fn tagged_fields(message: &Message, known: &Struct) -> String {
    let mut arms = String::new();
    for field in &known.fields {
        let Some(tag) = field.tag else { continue };
        let name = names::field(&field.name);
        // Inside the section the version is flexible.
        let read = read(message, known, field, "true", "is_present_tagged");
        let value = choose(&Condition::new(field.nullable, field.tagged), &read.nullable, &read.plain);
        let guard = match Condition::new(field.tagged, message.flexible.and(known.versions)) {
            Condition::When { holds, .. } => format!(" if {holds}"),
            Condition::Always | Condition::Never => String::new(),
        };
        let _ = writeln!(arms, "{tag}{guard} => this.{name} = {value},");
    }
    if arms.is_empty() {
        return "d.skip_tags()?;".to_owned();
    }
    format!(
        "for _ in 0..d.tag_count()? {{ let tag = d.tag()?; \
         match tag.number {{ {arms} _ => d.skip_tag(tag), }} d.end_tag(tag)?; }}"
    )
}
