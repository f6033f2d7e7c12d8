//! The histogram log: one line per second and latency, in HdrHistogram's interval log format (V2, deflated, base64),
//! which its own tools plot and merge. Times are seconds since the start of the run; values are microseconds.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::error::BenchError;
use crate::tally::Tally;

/// Length of an interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// A histogram log that is being written.
pub(crate) struct HistogramLog<W: Write = BufWriter<File>> {
    out: W,
    path: String,
    serializer: V2DeflateSerializer,
    gathered: Tally,
    from: Duration,
}

impl HistogramLog {
    /// Creates the file; `start_unix_ms` is when the run's clock started.
    pub(crate) fn create(path: &Path, start_unix_ms: i64) -> Result<Self, BenchError> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|source| BenchError::File { path: name.clone(), source })?;
        HistogramLog::new(BufWriter::new(file), name, start_unix_ms)
    }
}

impl<W: Write> HistogramLog<W> {
    fn new(out: W, path: String, start_unix_ms: i64) -> Result<Self, BenchError> {
        let mut log = HistogramLog {
            out,
            path,
            serializer: V2DeflateSerializer::new(),
            gathered: Tally::default(),
            from: Duration::ZERO,
        };
        let start = SystemTime::UNIX_EPOCH + Duration::from_millis(start_unix_ms.max(0) as u64);
        let begun = IntervalLogWriterBuilder::new()
            .add_comment("millrace bench; latencies in microseconds")
            .with_start_time(start)
            .with_base_time(start)
            .begin_log_with(&mut log.out, &mut log.serializer)
            .map(drop);
        begun.map_err(|source| BenchError::File { path: log.path.clone(), source })?;
        Ok(log)
    }

    /// Adds what was counted up to `at` and writes a line for each latency once a second is full.
    pub(crate) fn add(&mut self, tally: &Tally, at: Duration) -> Result<(), BenchError> {
        self.gathered.merge(tally);
        if at.saturating_sub(self.from) >= INTERVAL { self.write(at) } else { Ok(()) }
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self, at: Duration) -> Result<(), BenchError> {
        self.write(at)?;
        let flushed = self.out.flush();
        flushed.map_err(|source| BenchError::File { path: self.path, source })
    }

    fn write(&mut self, at: Duration) -> Result<(), BenchError> {
        let tally = self.gathered.take();
        let (from, length) = (self.from, at.saturating_sub(self.from));
        self.from = at;
        for (name, histogram) in [
            ("response", &tally.response_us),
            ("service", &tally.service_us),
            ("fetch", &tally.fetch_us),
            ("end-to-end", &tally.end_to_end_us),
            ("jitter", &tally.jitter_us),
        ] {
            self.write_one(name, histogram, from, length)?;
        }
        Ok(())
    }

    fn write_one(
        &mut self,
        name: &'static str,
        histogram: &Histogram<u64>,
        from: Duration,
        length: Duration,
    ) -> Result<(), BenchError> {
        if histogram.is_empty() {
            return Ok(());
        }
        let written = IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.out, &mut self.serializer)
            .map_err(|error| error.to_string())
            .and_then(|mut log| {
                log.write_histogram(histogram, from, length, Tag::new(name))
                    .map_err(|error| error.to_string())
            });
        written
            .map_err(|text| BenchError::File { path: self.path.clone(), source: std::io::Error::other(text) })
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::tally::Acked;

    #[test]
    fn seconds_are_gathered_and_can_be_merged_again() {
        let mut bytes = Vec::new();
        let mut log = HistogramLog::new(&mut bytes, "log".into(), 1_000).unwrap();
        let mut tally = Tally::default();
        for interval in 1..=6u64 {
            tally.acked(Acked {
                due_ns: None,
                sent_ns: 0,
                answered_ns: interval * 1_000_000,
                value_bytes: 1,
                measured: true,
            });
            log.add(&tally.take(), Duration::from_millis(400 * interval)).unwrap();
        }
        log.finish(Duration::from_millis(2_500)).unwrap();

        let mut merged = crate::tally::histogram();
        let mut lines = 0;
        for entry in IntervalLogIterator::new(&bytes) {
            if let LogEntry::Interval(line) = entry.unwrap() {
                assert_eq!(line.tag().unwrap().as_str(), "service");
                let packed = base64_decode(line.encoded_histogram());
                let one: Histogram<u64> = Deserializer::new().deserialize(&mut packed.as_slice()).unwrap();
                merged.add(one).unwrap();
                lines += 1;
            }
        }
        assert_eq!((lines, merged.len()), (2, 6));
    }

    fn base64_decode(text: &str) -> Vec<u8> {
        let digit = |byte: u8| match byte {
            b'A'..=b'Z' => u32::from(byte - b'A'),
            b'a'..=b'z' => u32::from(byte - b'a') + 26,
            b'0'..=b'9' => u32::from(byte - b'0') + 52,
            b'+' => 62,
            _ => 63,
        };
        let digits: Vec<u32> = text.bytes().filter(|byte| *byte != b'=').map(digit).collect();
        digits
            .chunks(4)
            .flat_map(|chunk| {
                let word = chunk.iter().fold(0, |word, digit| word << 6 | digit) << (6 * (4 - chunk.len()));
                word.to_be_bytes()[1..chunk.len()].to_vec()
            })
            .collect()
    }
}
