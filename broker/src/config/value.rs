//! Text, TOML values and units to typed values, and back to Kafka's text.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::entry::Raw;
use super::setting::{Kind, Spec, Unit};
use super::types::{CleanupPolicy, CompressionType, HttpListener, Listener, TimestampType};

/// Why a value does not serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) cure: String,
}

/// A type that a setting may have.
pub(super) trait Value: Sized {
    const KIND: Kind;
    const CHOICES: &'static [&'static str] = &[];
    fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong>;
    fn render(&self) -> Option<String>;
}

fn wrong<T>(what: impl Into<String>, cure: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { what: what.into(), cure: cure.into() })
}

fn wrong_type<T>(raw: &Raw, wanted: &str, spec: &Spec) -> Result<T, Wrong> {
    let what = match raw {
        Raw::Text(text) => format!("{text:?} is not {wanted}"),
        other => format!("{} stands where {wanted} belongs", other.type_name()),
    };
    wrong(what, format!("write {wanted}, such as {}", spec.example))
}

fn text<'a>(raw: &'a Raw, wanted: &str, spec: &Spec) -> Result<&'a str, Wrong> {
    match raw {
        Raw::Text(text) => Ok(text.trim()),
        _ => wrong_type(raw, wanted, spec),
    }
}

/// The items of a TOML array or of comma-separated text.
fn items(raw: &Raw, wanted: &str, spec: &Spec) -> Result<Vec<String>, Wrong> {
    match raw {
        Raw::List(items) => Ok(items.iter().map(|i| i.trim().to_owned()).collect()),
        Raw::Int(number) => Ok(vec![number.to_string()]),
        Raw::Text(text) if text.trim().is_empty() => Ok(Vec::new()),
        Raw::Text(text) => Ok(text.split(',').map(|i| i.trim().to_owned()).collect()),
        _ => wrong_type(raw, wanted, spec),
    }
}

impl Unit {
    /// The suffixes that the unit accepts, as multiples of the smallest of their family, and that unit's own size.
    fn suffixes(self) -> (&'static [(&'static str, i128)], i128) {
        const SIZES: &[(&str, i128)] = &[
            ("b", 1),
            ("kib", 1 << 10),
            ("mib", 1 << 20),
            ("gib", 1 << 30),
            ("tib", 1 << 40),
            ("kb", 1_000),
            ("mb", 1_000_000),
            ("gb", 1_000_000_000),
            ("tb", 1_000_000_000_000),
        ];
        const TIMES: &[(&str, i128)] = &[
            ("ms", 1),
            ("s", 1_000),
            ("m", 60_000),
            ("min", 60_000),
            ("h", 3_600_000),
            ("d", 86_400_000),
            ("w", 604_800_000),
        ];
        match self {
            Unit::Plain => (&[], 1),
            Unit::Bytes => (SIZES, 1),
            Unit::Milliseconds => (TIMES, 1),
            Unit::Minutes => (TIMES, 60_000),
            Unit::Hours => (TIMES, 3_600_000),
        }
    }

    /// What a number of this unit is called in a message.
    pub(super) fn wanted(self) -> &'static str {
        match self {
            Unit::Plain => "a whole number",
            Unit::Bytes => "a size in bytes",
            Unit::Milliseconds => "a time in milliseconds",
            Unit::Minutes => "a time in minutes",
            Unit::Hours => "a time in hours",
        }
    }
}

/// Reads `-1`, `1_000`, `512MiB`, `7 d`.
fn number(raw: &Raw, spec: &Spec) -> Result<i128, Wrong> {
    let wanted = spec.unit.wanted();
    let text = match raw {
        Raw::Int(number) => return Ok(i128::from(*number)),
        other => text(other, wanted, spec)?,
    };
    let split = text.find(|c: char| !(c.is_ascii_digit() || "-+_".contains(c))).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    let Ok(count) = digits.replace('_', "").parse::<i64>() else {
        return wrong_type(raw, wanted, spec);
    };
    let suffix = suffix.trim().to_ascii_lowercase();
    if suffix.is_empty() {
        return Ok(i128::from(count));
    }
    let (suffixes, own) = spec.unit.suffixes();
    let Some((_, scale)) = suffixes.iter().find(|(name, _)| *name == suffix) else {
        return wrong_type(raw, wanted, spec);
    };
    let scaled = i128::from(count) * scale;
    if scaled % own != 0 {
        return wrong(format!("{text:?} is no whole count of its unit"), format!("write {wanted}"));
    }
    Ok(scaled / own)
}

/// Reads a number that lies within the bounds of the setting and of its type.
fn bounded(raw: &Raw, spec: &Spec, least: i128, most: i128) -> Result<i128, Wrong> {
    let number = number(raw, spec)?;
    let least = least.max(i128::from(spec.bounds.0));
    let most = most.min(i128::from(spec.bounds.1));
    if number < least {
        return wrong(format!("{number} is too small"), format!("the smallest value is {least}"));
    }
    if number > most {
        return wrong(format!("{number} is too large"), format!("the largest value is {most}"));
    }
    Ok(number)
}

macro_rules! integer_value {
    ($($type:ty => $kind:expr),+) => { $(
        impl Value for $type {
            const KIND: Kind = $kind;
            fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong> {
                let number = bounded(raw, spec, i128::from(<$type>::MIN), i128::from(<$type>::MAX))?;
                <$type>::try_from(number).or_else(|_| wrong_type(raw, spec.unit.wanted(), spec))
            }
            fn render(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )+ };
}
integer_value!(u16 => Kind::Int, u32 => Kind::Int, i32 => Kind::Int, i64 => Kind::Long, u64 => Kind::Long);

impl Value for bool {
    const KIND: Kind = Kind::Boolean;
    fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong> {
        match raw {
            Raw::Bool(value) => Ok(*value),
            Raw::Text(text) if text.trim().eq_ignore_ascii_case("true") => Ok(true),
            Raw::Text(text) if text.trim().eq_ignore_ascii_case("false") => Ok(false),
            _ => wrong_type(raw, "true or false", spec),
        }
    }
    fn render(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for String {
    const KIND: Kind = Kind::String;
    fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong> {
        text(raw, "text", spec).map(str::to_owned)
    }
    fn render(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    const CHOICES: &'static [&'static str] = T::CHOICES;
    fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong> {
        T::parse(raw, spec).map(Some)
    }
    fn render(&self) -> Option<String> {
        self.as_ref().and_then(T::render)
    }
}

impl Value for PathBuf {
    const KIND: Kind = Kind::String;
    fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong> {
        match items(raw, "a directory", spec)?.as_slice() {
            [one] if !one.is_empty() => Ok(PathBuf::from(one)),
            [] | [_] => wrong("no directory is named", format!("write one, such as {}", spec.example)),
            many => wrong(
                format!("{} directories are named", many.len()),
                "name one: a node keeps all its data in one directory (join disks with RAID or LVM)",
            ),
        }
    }
    fn render(&self) -> Option<String> {
        Some(self.display().to_string())
    }
}

impl Value for Vec<Listener> {
    const KIND: Kind = Kind::List;
    fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong> {
        let parse = |item: &String| Listener::parse(item).map_err(|(what, cure)| Wrong { what, cure });
        items(raw, "a list of listeners", spec)?.iter().map(parse).collect()
    }
    fn render(&self) -> Option<String> {
        Some(self.iter().map(Listener::to_string).collect::<Vec<_>>().join(","))
    }
}

impl Value for Vec<usize> {
    const KIND: Kind = Kind::List;
    fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong> {
        let mut cpus = BTreeSet::new();
        for item in items(raw, "a list of CPU numbers", spec)? {
            let (first, last) = item.split_once('-').unwrap_or((&item, &item));
            match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
                (Ok(first), Ok(last)) if first <= last => cpus.extend(usize::from(first)..=usize::from(last)),
                _ => return wrong_type(&Raw::Text(item), "a CPU number or a range", spec),
            }
        }
        if cpus.is_empty() {
            return wrong("no CPU is named", format!("write numbers or ranges, such as {}", spec.example));
        }
        Ok(cpus.into_iter().collect())
    }
    fn render(&self) -> Option<String> {
        Some(self.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
    }
}

impl Value for HttpListener {
    const KIND: Kind = Kind::String;
    fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong> {
        let wanted = "an address HOST:PORT, or \"off\"";
        let text = text(raw, wanted, spec)?;
        if text.is_empty() || text == "off" {
            return Ok(HttpListener(None));
        }
        let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        match local.as_deref().unwrap_or(text).parse() {
            Ok(address) => Ok(HttpListener(Some(address))),
            Err(_) => wrong_type(raw, wanted, spec),
        }
    }
    fn render(&self) -> Option<String> {
        Some(self.0.map_or_else(|| "off".to_owned(), |address| address.to_string()))
    }
}

macro_rules! choice_value {
    ($($type:ty),+) => { $(
        impl Value for $type {
            const KIND: Kind = Kind::String;
            const CHOICES: &'static [&'static str] = <$type>::NAMES;
            fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong> {
                let text = text(raw, "a name", spec)?;
                match <$type>::from_name(text) {
                    Some(value) => Ok(value),
                    None => wrong(
                        format!("{text:?} is none of the choices"),
                        format!("write one of {}", <$type>::NAMES.join(", ")),
                    ),
                }
            }
            fn render(&self) -> Option<String> {
                Some(self.name().to_owned())
            }
        }
    )+ };
}
choice_value!(CompressionType, TimestampType);

impl Value for CleanupPolicy {
    const KIND: Kind = Kind::List;
    const CHOICES: &'static [&'static str] = &["delete", "compact"];
    fn parse(raw: &Raw, spec: &Spec) -> Result<Self, Wrong> {
        let cure = "write delete, compact, or delete,compact";
        let mut policy = CleanupPolicy { delete: false, compact: false };
        for item in items(raw, "a list of policies", spec)? {
            match item.as_str() {
                "delete" => policy.delete = true,
                "compact" => policy.compact = true,
                _ => return wrong(format!("{item:?} is no cleanup policy"), cure),
            }
        }
        if !policy.delete && !policy.compact {
            return wrong("no cleanup policy is named", cure);
        }
        Ok(policy)
    }
    fn render(&self) -> Option<String> {
        let names = [(self.delete, "delete"), (self.compact, "compact")];
        let chosen: Vec<_> = names.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        Some(chosen.join(","))
    }
}
