//! The progress of a load, on standard error: a bar on a terminal, a line every few seconds elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use bench::progress::{Observer, Phase, Progress};
use indicatif::{ProgressBar, ProgressStyle};

/// Steps of a full bar.
const STEPS: u64 = 1000;

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(2);

/// Draws until the run ends.
pub(crate) fn bar() -> Observer {
    if stderr().is_terminal() { drawn() } else { lines() }
}

fn drawn() -> Observer {
    let template = "  [{bar:40}] {percent:>3} %  {msg}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(STEPS).with_style(style.progress_chars("=> "));
    Box::new(move |progress| {
        bar.set_position(steps(progress.done));
        bar.set_message(message(progress));
        if progress.done >= 1.0 {
            bar.finish();
        }
    })
}

fn lines() -> Observer {
    let mut next = Duration::ZERO;
    Box::new(move |progress| {
        if progress.elapsed >= next && progress.phase != Phase::Draining {
            next = progress.elapsed + LINE_EVERY;
            eprintln!("  {:>3} %  {}", steps(progress.done) / 10, message(progress));
        }
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1 of a thousand"
)]
fn steps(done: f64) -> u64 {
    (done.clamp(0.0, 1.0) * 1000.0) as u64
}

fn message(progress: &Progress) -> String {
    let mib = progress.bytes >> 20;
    let p99 = progress.p99_us.map_or_else(String::new, |us| format!(", p99 {}", millis(us)));
    format!("{} records, {mib} MiB{p99} ({})", progress.records, progress.phase.name())
}

/// Microseconds as milliseconds for people.
pub(crate) fn millis(us: u64) -> String {
    format!("{}.{:02} ms", us / 1000, us % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::{millis, steps};

    #[test]
    fn numbers_for_people() {
        assert_eq!(millis(1_234), "1.23 ms");
        assert_eq!(millis(50), "0.05 ms");
        assert_eq!((steps(0.5), steps(2.0)), (500, 1000));
    }
}
