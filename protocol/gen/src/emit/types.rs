//! Rust types, defaults, and the fewest bytes that a value takes on the wire.

use crate::model::{Field, Message, Struct, Type, Value};

/// The Rust type of a field.
pub(crate) fn rust_type(field: &Field) -> String {
    let plain = plain_type(&field.ty);
    if field.is_option() { format!("Option<{plain}>") } else { plain }
}

fn plain_type(ty: &Type) -> String {
    match ty {
        Type::Fixed(name, _) => (*name).to_owned(),
        Type::Uuid => "Uuid".to_owned(),
        Type::Str => "Str".to_owned(),
        Type::Bytes => "Bytes".to_owned(),
        Type::Records => "Records".to_owned(),
        Type::Struct(name) => name.clone(),
        Type::Array(element) => format!("Vec<{}>", plain_type(element)),
    }
}

/// Whether Rust's own default of the type is the default of the field.
pub(crate) fn default_is_rusts(field: &Field) -> bool {
    match field.default {
        Value::Null => true,
        Value::Empty => !field.is_option(),
        _ => false,
    }
}

/// The default of a field as an expression.
pub(crate) fn default(field: &Field) -> String {
    let plain = match (&field.default, &field.ty) {
        (Value::Null, _) => return "None".to_owned(),
        (Value::True, _) => "true".to_owned(),
        (Value::Number(number), Type::Fixed(name, _)) => number_literal(*number, name),
        (Value::Number(number), _) => number.to_string(),
        (Value::Text(text), _) => format!("Str::from_static({text:?})"),
        (Value::Empty, Type::Fixed("bool", _)) => "false".to_owned(),
        (Value::Empty, Type::Fixed("f64", _)) => "0.0".to_owned(),
        (Value::Empty, Type::Fixed(..)) => "0".to_owned(),
        (Value::Empty, Type::Uuid) => "Uuid::ZERO".to_owned(),
        (Value::Empty, Type::Str) => "Str::new()".to_owned(),
        (Value::Empty, Type::Bytes) => "Bytes::new()".to_owned(),
        (Value::Empty, Type::Records) => "Records::new()".to_owned(),
        (Value::Empty, Type::Struct(name)) => format!("{name}::default()"),
        (Value::Empty, Type::Array(_)) => "Vec::new()".to_owned(),
    };
    if field.is_option() { format!("Some({plain})") } else { plain }
}

fn number_literal(number: i64, ty: &str) -> String {
    for (name, min, max) in [
        ("i16", i16::MIN.into(), i16::MAX.into()),
        ("i32", i32::MIN.into(), i32::MAX.into()),
        ("i64", i64::MIN, i64::MAX),
    ] {
        if ty == name && number == min {
            return format!("{ty}::MIN");
        }
        if ty == name && number == max {
            return format!("{ty}::MAX");
        }
    }
    number.to_string()
}

/// An expression that holds where the field differs from its default.
pub(crate) fn differs(field: &Field, value: &str) -> String {
    let option = field.is_option();
    match (&field.default, &field.ty) {
        (Value::Null, _) => format!("{value}.is_some()"),
        (Value::Empty, Type::Fixed("bool", _)) => value.to_owned(),
        (Value::True, _) => format!("!{value}"),
        (Value::Empty, Type::Uuid) if !option => format!("!{value}.is_zero()"),
        (Value::Empty, Type::Str | Type::Bytes | Type::Array(_)) if option => {
            format!("{value}.as_ref().is_none_or(|value| !value.is_empty())")
        }
        (Value::Empty, Type::Str | Type::Bytes | Type::Array(_)) => format!("!{value}.is_empty()"),
        (Value::Text(text), _) if option => format!("{value}.as_deref() != Some({text:?})"),
        (Value::Text(text), _) => format!("{value} != {text:?}"),
        _ => format!("{value} != {}", default(field)),
    }
}

/// The fewest bytes that an element of this type takes in any version of `parent`.
pub(crate) fn min_element_bytes(message: &Message, parent: &Struct, field: &Field, element: &Type) -> usize {
    let range = field.versions.and(parent.versions).and(message.versions);
    range.iter().map(|version| min_bytes(message, element, version)).min().unwrap_or(1)
}

fn min_bytes(message: &Message, ty: &Type, version: i16) -> usize {
    let flexible = message.flexible.contains(version);
    match ty {
        Type::Fixed(_, width) => *width,
        Type::Uuid => 16,
        Type::Str => 2 - usize::from(flexible),
        Type::Bytes | Type::Records | Type::Array(_) => 4 - 3 * usize::from(flexible),
        Type::Struct(name) => {
            let fields =
                message.structs.iter().filter(|known| known.name == *name).flat_map(|known| &known.fields);
            let mandatory = fields.filter(|field| field.mandatory.contains(version));
            let field_bytes = mandatory.map(|field| match field.ty {
                Type::Struct(_) if field.nullable.contains(version) => 1,
                _ => min_bytes(message, &field.ty, version),
            });
            field_bytes.sum::<usize>() + usize::from(flexible)
        }
    }
}
