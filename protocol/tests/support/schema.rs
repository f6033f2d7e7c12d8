//! The schema that `cargo gen` leaves for the tests, parsed. `gen/src/emit/schema.rs` says what its lines hold.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Every message by name.
pub(crate) fn parse(text: &str) -> BTreeMap<String, Message> {
    let mut messages: Vec<Message> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["message", name, _role, _versions, flexible] => messages.push(Message {
                name: (*name).to_owned(),
                flexible: range(flexible),
                structs: BTreeMap::new(),
                last: String::new(),
            }),
            ["struct", name, _versions] => {
                let message = messages.last_mut().expect("a message before its structures");
                message.structs.insert((*name).to_owned(), Vec::new());
                message.last = (*name).to_owned();
            }
            ["field", _name, ty, versions, nullable, tagged, tag, default] => {
                let message = messages.last_mut().expect("a message before its fields");
                let fields = message.structs.get_mut(&message.last).expect("a structure before its fields");
                fields.push(Field {
                    ty: (*ty).to_owned(),
                    versions: range(versions),
                    nullable: range(nullable),
                    tagged: range(tagged),
                    tag: tag.parse().ok(),
                    default: (*default).to_owned(),
                });
            }
            _ => panic!("schema line {line:?}"),
        }
    }
    messages.into_iter().map(|message| (message.name.clone(), message)).collect()
}

/// A message.
pub(crate) struct Message {
    /// Kafka's name, also that of its outermost structure.
    pub(crate) name: String,
    /// The versions in the flexible encoding.
    pub(crate) flexible: RangeInclusive<i16>,
    /// Its structures by name: their fields in order.
    pub(crate) structs: BTreeMap<String, Vec<Field>>,
    last: String,
}

/// A field.
pub(crate) struct Field {
    /// The type, `[]` in front for an array.
    pub(crate) ty: String,
    /// The versions that have it.
    pub(crate) versions: RangeInclusive<i16>,
    /// The versions that can be null.
    pub(crate) nullable: RangeInclusive<i16>,
    /// The versions that have it as a tagged field.
    pub(crate) tagged: RangeInclusive<i16>,
    /// The number of the tagged field.
    pub(crate) tag: Option<u32>,
    /// `null`, `empty`, `true`, a number, or text in quotes.
    pub(crate) default: String,
}

/// Versions: `3+`, `2-7`, `4` or `none`.
#[expect(clippy::reversed_empty_ranges, reason = "no version at all")]
fn range(text: &str) -> RangeInclusive<i16> {
    let number = |text: &str| text.parse::<i16>().expect("a version");
    match (text, text.strip_suffix('+'), text.split_once('-')) {
        ("none", ..) => 0..=-1,
        (_, Some(min), _) => number(min)..=i16::MAX,
        (_, _, Some((min, max))) => number(min)..=number(max),
        _ => number(text)..=number(text),
    }
}
