//! Valid encodings of any message, made from the schema alone: they know nothing of the code under test.
//!
//! The encodings are canonical (tagged fields in order, and only those that differ from their defaults), so whoever
//! decodes one and encodes it again must come to the same bytes.

use super::random::Random;
use super::schema::{Field, Message};

/// What the fields hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Their defaults.
    Default,
    /// Anything short.
    Random,
    /// The highest, lowest, longest, emptiest; null where possible.
    Extreme,
}

/// One encoding of `message` in `version`.
pub(crate) fn encoding(message: &Message, version: i16, content: Content, random: &mut Random) -> Vec<u8> {
    let mut sampler = Sampler { message, version, random, flexible: message.flexible.contains(&version) };
    let mut out = Vec::new();
    sampler.structure(&message.name, content, 0, &mut out);
    out
}

struct Sampler<'a> {
    message: &'a Message,
    version: i16,
    random: &'a mut Random,
    flexible: bool,
}

impl Sampler<'_> {
    fn structure(&mut self, name: &str, content: Content, depth: usize, out: &mut Vec<u8>) {
        let message = self.message;
        let fields = &message.structs[name];
        let version = self.version;
        let here = |field: &&Field| field.versions.contains(&version);
        for field in fields.iter().filter(here).filter(|field| !field.tagged.contains(&version)) {
            self.value(field, content, depth, false, out);
        }
        if !self.flexible {
            return;
        }
        let mut tagged: Vec<&Field> = fields.iter().filter(|field| field.tagged.contains(&version)).collect();
        tagged.sort_by_key(|field| field.tag);
        let mut tags = Vec::new();
        for field in tagged {
            let (mut value, mut default) = (Vec::new(), Vec::new());
            let content = if self.random.one_in(3) { Content::Default } else { content };
            self.value(field, content, depth, true, &mut value);
            self.value(field, Content::Default, depth, true, &mut default);
            if value != default {
                tags.push((field.tag.expect("a tag"), value));
            }
        }
        uvarint(tags.len() as u32, out);
        for (tag, value) in tags {
            uvarint(tag, out);
            uvarint(value.len() as u32, out);
            out.extend(value);
        }
    }

    fn value(&mut self, field: &Field, content: Content, depth: usize, tagged: bool, out: &mut Vec<u8>) {
        let nullable = field.nullable.contains(&self.version);
        let null = match content {
            Content::Default => field.default == "null" && nullable,
            Content::Random => nullable && self.random.one_in(4),
            Content::Extreme => nullable && self.random.one_in(2),
        };
        if let Some(element) = field.ty.strip_prefix("[]") {
            let count = match content {
                _ if null => None,
                Content::Default => Some(0),
                Content::Random => Some(self.random.below(4 - depth.min(2))),
                Content::Extreme => Some(*self.random.pick(&[0, 1, 2])),
            };
            self.long_len(count, out);
            for _ in 0..count.unwrap_or(0) {
                self.plain(element, "empty", content, depth + 1, out);
            }
        } else if self.message.structs.contains_key(&field.ty) {
            match (nullable, tagged) {
                (true, true) => uvarint(u32::from(!null), out),
                (true, false) => out.push(if null { 0xff } else { 1 }),
                (false, _) => {}
            }
            if !null {
                self.structure(&field.ty, content, depth + 1, out);
            }
        } else if null {
            match field.ty.as_str() {
                "str" => self.str_len(None, out),
                _ => self.long_len(None, out),
            }
        } else {
            self.plain(&field.ty, &field.default, content, depth, out);
        }
    }

    /// A value that is not null.
    fn plain(&mut self, ty: &str, default: &str, content: Content, depth: usize, out: &mut Vec<u8>) {
        match ty {
            "bool" => out.push(u8::from(match content {
                Content::Default => default == "true",
                _ => self.random.one_in(2),
            })),
            "i8" => self.number::<1>(default, content, out),
            "i16" | "u16" => self.number::<2>(default, content, out),
            "i32" | "u32" => self.number::<4>(default, content, out),
            "i64" => self.number::<8>(default, content, out),
            "f64" => {
                // Whole numbers: not-a-number equals nothing, not even itself.
                let value = if content == Content::Default { 0 } else { self.random.u64() as i32 };
                out.extend(f64::from(value).to_be_bytes());
            }
            "uuid" => {
                let value = if content == Content::Random { self.random.bytes(16) } else { vec![0; 16] };
                out.extend(value);
            }
            "str" => {
                let text = self.text(default, content);
                self.str_len(Some(text.len()), out);
                out.extend(text.bytes());
            }
            "bytes" | "records" => {
                let len = match content {
                    Content::Default => 0,
                    Content::Random => self.random.below(40),
                    Content::Extreme => *self.random.pick(&[0, 1, 700]),
                };
                self.long_len(Some(len), out);
                out.extend(self.random.bytes(len));
            }
            name => self.structure(name, content, depth, out),
        }
    }

    fn number<const N: usize>(&mut self, default: &str, content: Content, out: &mut Vec<u8>) {
        let value = match content {
            Content::Default => default.parse().unwrap_or(0),
            Content::Random if self.random.one_in(2) => self.random.below(100) as i64,
            Content::Random => self.random.u64() as i64,
            Content::Extreme => {
                let top = i64::MAX >> (64 - 8 * N);
                *self.random.pick(&[0, -1, 1, top, -top - 1])
            }
        };
        out.extend(&value.to_be_bytes()[8 - N..]);
    }

    fn text(&mut self, default: &str, content: Content) -> String {
        match content {
            Content::Default if default == "empty" => String::new(),
            Content::Default => default.trim_matches('"').to_owned(),
            Content::Random => {
                let letters = ["a", "B", "7", "-", "_", ".", "ü", "→", "🦀"];
                (0..self.random.below(12)).map(|_| *self.random.pick(&letters)).collect()
            }
            Content::Extreme => match self.random.below(40) {
                0 => "z".repeat(i16::MAX as usize),
                1..10 => "y".repeat(127),
                10..20 => "x".repeat(126),
                _ => String::new(),
            },
        }
    }

    fn str_len(&self, len: Option<usize>, out: &mut Vec<u8>) {
        if self.flexible {
            uvarint(len.map_or(0, |len| len as u32 + 1), out);
        } else {
            out.extend(len.map_or(-1, |len| len as i16).to_be_bytes());
        }
    }

    fn long_len(&self, len: Option<usize>, out: &mut Vec<u8>) {
        if self.flexible {
            uvarint(len.map_or(0, |len| len as u32 + 1), out);
        } else {
            out.extend(len.map_or(-1, |len| len as i32).to_be_bytes());
        }
    }
}

fn uvarint(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
