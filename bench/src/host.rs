//! What the machine says about itself and about the broker's process: read from `/proc`, before and after a run.
//! The machine's name is not among it, so that a result can be published.

use std::fs;

use serde::Serialize;

use crate::error::BenchError;

/// Ticks per second of the times in `/proc/PID/stat`: fixed by Linux for user space, whatever the kernel's own clock.
const TICKS_PER_S: f64 = 100.0;

/// The machine that the generator ran on.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// Kernel release.
    pub kernel: String,
    /// Model name of the first CPU.
    pub cpu: String,
    /// CPUs that are there.
    pub cpus: usize,
    /// Memory, bytes.
    pub memory_bytes: u64,
}

impl Host {
    /// Reads what there is; an unreadable file leaves its field empty.
    pub fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = text("/proc/cpuinfo");
        Host {
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            cpu: field(&cpuinfo, "model name").unwrap_or_default().to_owned(),
            cpus: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            memory_bytes: kib(&text("/proc/meminfo"), "MemTotal"),
        }
    }
}

/// CPU time and memory of a process at one moment.
#[derive(Clone, Copy, Debug)]
pub struct ProcessSample {
    cpu_s: f64,
    rss_bytes: u64,
    rss_peak_bytes: u64,
}

impl ProcessSample {
    /// Reads process `pid`.
    pub fn read(pid: u32) -> Result<Self, BenchError> {
        let read = |name: &str| {
            let path = format!("/proc/{pid}/{name}");
            fs::read_to_string(&path).map_err(|source| BenchError::File { path, source })
        };
        let (stat, status) = (read("stat")?, read("status")?);
        Ok(ProcessSample {
            cpu_s: cpu_seconds(&stat),
            rss_bytes: kib(&status, "VmRSS"),
            rss_peak_bytes: kib(&status, "VmHWM"),
        })
    }
}

/// What the broker's process used during the run, warm-up included.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessUse {
    /// User and system time, seconds.
    pub cpu_s: f64,
    /// That, per GiB of values that it acknowledged (for a consumer: of batches that it served).
    pub cpu_s_per_gib: Option<f64>,
    /// Resident memory before, bytes.
    pub rss_before_bytes: u64,
    /// Resident memory after, bytes.
    pub rss_after_bytes: u64,
    /// Most resident memory since the process started, bytes.
    pub rss_peak_bytes: u64,
}

impl ProcessUse {
    /// The difference of two samples, over `bytes` of load.
    pub fn between(before: ProcessSample, after: ProcessSample, bytes: u64) -> Self {
        let cpu_s = (after.cpu_s - before.cpu_s).max(0.0);
        let gib = bytes as f64 / f64::from(1 << 30);
        ProcessUse {
            cpu_s,
            cpu_s_per_gib: (bytes > 0).then(|| cpu_s / gib),
            rss_before_bytes: before.rss_bytes,
            rss_after_bytes: after.rss_bytes,
            rss_peak_bytes: after.rss_peak_bytes,
        }
    }
}

/// User and system time out of `/proc/PID/stat`: fields 14 and 15, counted after the command's closing parenthesis,
/// since a command may hold blanks.
fn cpu_seconds(stat: &str) -> f64 {
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_S
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

/// A field in KiB, as bytes; 0 when it is not there.
fn kib(text: &str, name: &str) -> u64 {
    let number = field(text, name).and_then(|value| value.split_whitespace().next());
    number.and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_a_command_with_blanks_and_parentheses() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 150 0 0 20 0 1 0 5 6 7";
        assert_eq!(cpu_seconds(stat), 4.0);
        assert_eq!(cpu_seconds("nonsense"), 0.0);
    }

    #[test]
    fn memory_fields_are_kib() {
        assert_eq!(kib("VmPeak:\t 5 kB\nVmRSS:\t  12 kB\n", "VmRSS"), 12 * 1024);
        assert_eq!(kib("", "VmRSS"), 0);
    }

    #[test]
    fn this_process_can_be_sampled() {
        let sample = ProcessSample::read(std::process::id()).unwrap();
        assert!(sample.rss_bytes > 0);
        let used = ProcessUse::between(sample, sample, 1 << 30);
        assert_eq!((used.cpu_s, used.cpu_s_per_gib), (0.0, Some(0.0)));
        assert!(Host::read().cpus > 0);
    }
}
