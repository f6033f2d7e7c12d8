//! What commands print: one value, as text for people or as one line of JSON for programs.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use serde::Serialize;

/// For whom to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: one JSON value a line
    Json,
}

/// The flag that every command has.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Print for people or for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// A result that can be printed both ways.
pub(crate) trait Report: Serialize {
    /// The result for people, without a last newline.
    fn text(&self) -> String;
}

/// Prints a result to standard output.
pub(crate) fn print(format: Format, report: &impl Report) {
    match format {
        Format::Text => line(&report.text()),
        Format::Json => match serde_json::to_string(report) {
            Ok(json) => line(&json),
            Err(error) => eprintln!("error: the result is no JSON: {error}"),
        },
    }
}

/// Prints a line to standard output; a reader that has gone (`| head`) is no error.
pub(crate) fn line(text: &str) {
    if let Err(error) = writeln!(io::stdout().lock(), "{text}")
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        eprintln!("error: standard output: {error}");
    }
}

/// Columns under headings, as wide as they need to be.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|h| h.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let head_row: Vec<String> = head.iter().map(|h| (*h).to_owned()).collect();
    let lines = std::iter::once(&head_row).chain(rows).map(|row| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["a".to_owned(), "1".to_owned()], vec!["long-name".to_owned(), "2".to_owned()]];
        assert_eq!(table(&["NAME", "N"], &rows), "NAME       N\na          1\nlong-name  2");
    }
}
