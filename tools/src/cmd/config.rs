//! `millrace config`: check a file, print the reference of all settings.

use std::collections::BTreeMap;

use broker::config::{Loaded, Mistake, SETTINGS, load, one_setting, reference_markdown};
use clap::Subcommand;
use serde::Serialize;

use crate::cli::{File, SourceArgs};
use crate::exit::Failure;
use crate::output::{Format, OutputArgs, Report, line, print};
use crate::settings::set_flags;

/// What to do with configurations.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Report every mistake in a file at once, or what it sets
    #[command(after_long_help = "\
Examples:
  millrace config check /etc/millrace/millrace.toml
  millrace config check kafka/config/server.properties    Kafka's own format, by the end of its name
  millrace config check millrace.toml --set num.partitions=6 --format json

Ends with 3 when there is a mistake; see `millrace --help` for all exit codes.")]
    Check {
        /// The file, TOML or Kafka's .properties
        file: File,
        #[command(flatten)]
        source: SourceArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print every setting with its type, default and bounds, in Markdown
    #[command(after_long_help = "\
Example:
  millrace config reference > docs/configuration.md")]
    Reference {
        #[command(flatten)]
        output: OutputArgs,
    },
}

impl ConfigCommand {
    pub(crate) fn format(&self) -> Format {
        match self {
            ConfigCommand::Check { output, .. } | ConfigCommand::Reference { output } => output.format,
        }
    }
}

/// What a file sets, and what is worth knowing about it.
#[derive(Serialize)]
struct Checked {
    file: String,
    /// Settings that differ from their defaults.
    changed: BTreeMap<&'static str, Option<String>>,
    warnings: Vec<Mistake>,
}

impl Report for Checked {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.warnings.iter().map(|w| format!("warning: {w}")).collect();
        lines.push(format!("{} is right; it changes these settings:", self.file));
        for (key, value) in &self.changed {
            lines.push(format!("  {key} = {}", value.as_deref().unwrap_or("(unset)")));
        }
        lines.join("\n")
    }
}

/// One setting for programs.
#[derive(Serialize)]
struct Described {
    key: &'static str,
    doc: &'static str,
    default: Option<String>,
    example: &'static str,
    topic_key: Option<&'static str>,
}

pub(crate) fn run(command: ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check { file, source, output } => {
            let Loaded { config, warnings } = load(Some(&file), set_flags(&source.set)?)?;
            let changed = SETTINGS.iter().filter(|s| !s.is_default(&config));
            let changed = changed.map(|s| (s.spec.key, s.value(&config))).collect();
            print(output.format, &Checked { file: file.display().to_string(), changed, warnings });
        }
        ConfigCommand::Reference { output } => match output.format {
            Format::Text => line(reference_markdown().trim_end()),
            Format::Json => print(output.format, &All(described())),
        },
    }
    Ok(())
}

/// `millrace serve --help-config`.
pub(crate) fn print_settings(format: Format) {
    print(format, &All(described()));
}

#[derive(Serialize)]
struct All(Vec<Described>);

impl Report for All {
    fn text(&self) -> String {
        SETTINGS.iter().map(one_setting).collect::<Vec<_>>().join("\n")
    }
}

fn described() -> Vec<Described> {
    let describe = |s: &broker::config::Setting| Described {
        key: s.spec.key,
        doc: s.doc.trim(),
        default: s.default_value(),
        example: s.spec.example,
        topic_key: s.spec.topic_key,
    };
    SETTINGS.iter().map(describe).collect()
}
