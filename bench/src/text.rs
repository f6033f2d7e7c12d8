//! A report drawn for people.

use std::fmt::{self, Display, Formatter};

use crate::report::{Percentiles, Report};

/// Draws a report as a table.
pub struct Text<'a>(pub &'a Report);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        writeln!(f, "{}: {:.1} s measured", report.kind, report.measured_s)?;
        if let Some(produced) = &report.produced {
            writeln!(
                f,
                "  produced   {:>12} records  {:>10.0} records/s  {:>8.2} MiB/s  (asked for {})",
                produced.acked_records,
                produced.records_per_s,
                produced.mib_per_s,
                if produced.target_records_per_s > 0.0 {
                    format!("{} records/s", produced.target_records_per_s)
                } else {
                    "as fast as possible".to_owned()
                }
            )?;
        }
        if let Some(consumed) = &report.consumed {
            writeln!(
                f,
                "  read       {:>12} records  {:>10.0} records/s  {:>8.2} MiB/s",
                consumed.records, consumed.records_per_s, consumed.mib_per_s
            )?;
        }
        self.latencies(f)?;
        if let Some(process) = &report.broker_process {
            write!(f, "  broker     {:.2} CPU s", process.cpu_s)?;
            if let Some(cpu_s) = process.cpu_s_per_gib {
                write!(f, " ({cpu_s:.2} per GiB)")?;
            }
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            writeln!(f, ", {:.1} MiB resident", mib(process.rss_after_bytes))?;
        }
        for (code, records) in &report.errors {
            writeln!(f, "  error      {records:>12} records  {code}")?;
        }
        for reason in &report.invalid_reasons {
            writeln!(f, "  INVALID    {reason}")?;
        }
        Ok(())
    }
}

impl Text<'_> {
    fn latencies(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        let rows =
            report.latency_us.iter().map(|(name, percentiles)| (*name, percentiles)).chain(
                (report.generator.jitter_us.count > 0).then_some(("jitter", &report.generator.jitter_us)),
            );
        let mut headed = false;
        for (name, row) in rows {
            if !headed {
                writeln!(f, "  {:<10} {}", "latency ms", HEADS.map(|head| format!("{head:>10}")).join(""))?;
                headed = true;
            }
            writeln!(
                f,
                "  {name:<10} {}",
                columns(row).map(|us| format!("{:>10}", milliseconds(us))).join("")
            )?;
        }
        Ok(())
    }
}

const HEADS: [&str; 6] = ["p50", "p90", "p99", "p99.9", "p99.99", "max"];

fn columns(row: &Percentiles) -> [u64; 6] {
    [row.p50, row.p90, row.p99, row.p99_9, row.p99_99, row.max]
}

/// Microseconds as milliseconds with as many digits as the histogram keeps.
fn milliseconds(us: u64) -> String {
    let ms = us as f64 / 1000.0;
    match us {
        0..10_000 => format!("{ms:.3}"),
        10_000..100_000 => format!("{ms:.2}"),
        100_000..1_000_000 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_keep_what_the_histogram_keeps() {
        assert_eq!(
            [3, 1_234, 12_345, 123_456, 60_000_000].map(milliseconds),
            ["0.003", "1.234", "12.35", "123.5", "60000"]
        );
    }
}
