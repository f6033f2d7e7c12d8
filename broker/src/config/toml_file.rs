//! TOML to entries: quoted dotted keys and nested tables give the same names, each with its line.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::entry::{Entry, Raw};
use super::mistake::{Mistake, Place};

/// Every `key = value` of the text in the order of its lines, and what is not TOML.
pub(super) fn read(file: &str, text: &str) -> (Vec<Entry>, Vec<Mistake>) {
    let place = |position: usize| Place::File { file: file.to_owned(), line: line_of(text, position) };
    let (table, errors) = DeTable::parse_recoverable(text);
    // Only the message: the parser's full text quotes the line, which may hold a secret.
    let mistakes = errors
        .iter()
        .map(|error| Mistake {
            place: place(error.span().map_or(0, |span| span.start)),
            key: None,
            what: format!("this is not TOML: {}", error.message()),
            cure: cure(error.message()).to_owned(),
        })
        .collect();
    let mut found = Vec::new();
    flatten("", table.get_ref(), &mut found);
    found.sort_by_key(|(position, ..)| *position);
    let entry = |(position, key, raw)| Entry { key, raw, place: place(position) };
    (found.into_iter().map(entry).collect(), mistakes)
}

fn cure(message: &str) -> &'static str {
    if message.contains("duplicate") || message.contains("extend") {
        "set each key once, and put names in quotes where one starts with another, as \"max.connections\" = 1000"
    } else {
        "write key = value, with text in \"quotes\""
    }
}

/// The line, from 1, of a byte position.
fn line_of(text: &str, position: usize) -> u32 {
    let before = text.as_bytes().iter().take(position);
    u32::try_from(before.filter(|b| **b == b'\n').count()).unwrap_or(u32::MAX - 1) + 1
}

fn flatten(prefix: &str, table: &DeTable<'_>, found: &mut Vec<(usize, String, Raw)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{prefix}.{}", name.get_ref())
        };
        match value.get_ref() {
            // An empty table is a heading without settings, which means nothing.
            DeValue::Table(inner) => flatten(&key, inner, found),
            other => found.push((name.span().start, key, raw(other))),
        }
    }
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Boolean(value) => Raw::Bool(*value),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Raw::Int(number),
            Err(_) => Raw::Other("a number beyond 64 bits"),
        },
        DeValue::Float(_) => Raw::Other("a fraction"),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Table(_) => Raw::Other("a table"),
        DeValue::Array(items) => list(items.iter().map(Spanned::get_ref)),
    }
}

fn list<'v, 'i: 'v>(items: impl Iterator<Item = &'v DeValue<'i>>) -> Raw {
    let mut texts = Vec::new();
    for item in items {
        match raw(item) {
            Raw::Text(text) => texts.push(text),
            Raw::Int(number) => texts.push(number.to_string()),
            Raw::Bool(value) => texts.push(value.to_string()),
            Raw::List(_) => return Raw::Other("a list of lists"),
            Raw::Other(_) => return Raw::Other("a list of mixed things"),
        }
    }
    Raw::List(texts)
}
