//! The reference of all settings, for `docs/configuration.md` and `--help-config`.

use std::fmt::Write;

use super::setting::{Kind, Setting, Unit};
use super::table::SETTINGS;

const HEAD: &str = "# Configuration

Made of the table in `broker/src/config/table.rs` by `millrace config reference`; a test compares.

A node reads, each over the one before: its defaults, the file of `--config`, the flags of the command line (`--set KEY=VALUE` for
any setting). The file is TOML with Kafka's names, quoted (`\"log.segment.bytes\" = \"1GiB\"`), plain (`log.segment.bytes = \"1GiB\"`) or
as tables (`[log.segment]` and `bytes = \"1GiB\"`); a file whose name ends in `.properties` is read as Apache Kafka's own
`server.properties`. Names must stand in quotes where one starts with another, as `max.connections` and `max.connections.per.ip` do.
`millrace config check FILE` reports every mistake at once.

Sizes may be written as numbers of bytes or with `KiB`, `MiB`, `GiB`, `TiB` (1024) or `kB`, `MB`, `GB`, `TB` (1000); times as numbers in the unit of
the name or with `ms`, `s`, `min`, `h`, `d`, `w`.
";

/// `docs/configuration.md`.
#[must_use]
pub fn reference_markdown() -> String {
    let mut out = HEAD.to_owned();
    let mut section = "";
    for setting in SETTINGS {
        if setting.section != section {
            section = setting.section;
            let _ = write!(out, "\n## {section}\n");
        }
        let spec = &setting.spec;
        let _ = write!(out, "\n### `{}`\n\n{}\n\n", spec.key, setting.doc.trim());
        let _ = writeln!(out, "- {}", facts(setting).join(" · "));
        let _ = writeln!(out, "- example: `{} = {}`", spec.key, spec.example);
    }
    out
}

/// The paragraph of one setting for a terminal.
#[must_use]
pub fn one_setting(setting: &Setting) -> String {
    format!(
        "{}\n    {}\n    {}",
        setting.spec.key,
        setting.doc.trim(),
        facts(setting).join(" · ").replace('`', "")
    )
}

/// Type, default, bounds and other names.
fn facts(setting: &Setting) -> Vec<String> {
    let spec = &setting.spec;
    let mut facts = vec![type_name(setting)];
    facts.push(match setting.default_value() {
        Some(text) if text.is_empty() => "no default".to_owned(),
        Some(text) => format!("default `{text}`"),
        None => "default unset".to_owned(),
    });
    let (least, most) = spec.bounds;
    if least != i64::MIN && most != i64::MAX {
        facts.push(format!("{least} to {most}"));
    } else if least != i64::MIN {
        facts.push(format!("at least {least}"));
    }
    if let Some(alias) = spec.alias {
        facts.push(format!("also named `{alias}`"));
    }
    if let Some(topic) = spec.topic_key {
        facts.push(format!("per topic `{topic}`"));
    }
    if !spec.in_kafka {
        facts.push("Millrace's own".to_owned());
    }
    facts
}

fn type_name(setting: &Setting) -> String {
    if setting.kind == Kind::String && !setting.choices.is_empty() {
        return format!("one of {}", setting.choices.join(", "));
    }
    let name = match (setting.kind, setting.spec.unit) {
        (_, Unit::Bytes) => "size in bytes",
        (_, Unit::Milliseconds) => "time in milliseconds",
        (_, Unit::Minutes) => "time in minutes",
        (_, Unit::Hours) => "time in hours",
        (Kind::Boolean, _) => "true or false",
        (Kind::String, _) => "text",
        (Kind::Int | Kind::Long, _) => "number",
        (Kind::List, _) => "list",
    };
    name.to_owned()
}
