//! `millrace log`: look into a data directory, offline.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use protocol::record::{BatchHeader, NO_TIMESTAMP, Record, RecordIter, TimestampType};
use serde::Serialize;

use crate::exit::{Exit, Failure, Problem};
use crate::inspection;
use crate::output::{Format, OutputArgs, Report, print};
use crate::segment_file::{Found, Segment, SegmentError};

/// Most bytes that one batch may decompress to.
const BATCH_BYTES_MAX: usize = 1 << 30;

/// Characters of a key or value that are shown to people.
const SHOWN_CHARS: usize = 60;

/// What to look at.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Check every batch, checkpoint and journal of a data directory, and say what is in it
    #[command(after_long_help = "\
Examples:
  millrace log inspect /var/lib/millrace
  millrace log inspect data/shard-0/partitions/orders-0 --format json

Stop the node first: what it writes meanwhile may look like damage. Nothing is changed. Ends with 7 when there is damage;
a last write that a power cut tore is none: it was acknowledged to nobody, and the next start cuts it off.")]
    Inspect {
        /// A data directory, a shard's, or a partition's
        directory: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print the batches of segment files, and the records in them
    #[command(after_long_help = "\
Examples:
  millrace log dump data/shard-0/partitions/orders-0/00000000000000000000.log
  millrace log dump --records --format json FILE.log | jq .records[].value

Apache Kafka's own segments are read as well: the bytes are the same. Ends with 7 when a batch is damaged.")]
    Dump(DumpArgs),
}

/// What to print.
#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// Segment files (.log)
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print the records of each batch
    #[arg(long)]
    records: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl LogCommand {
    pub(crate) fn format(&self) -> Format {
        match self {
            LogCommand::Inspect { output, .. } => output.format,
            LogCommand::Dump(args) => args.output.format,
        }
    }
}

pub(crate) fn run(command: LogCommand) -> Result<(), Failure> {
    match command {
        LogCommand::Inspect { directory, output } => inspect(&directory, output.format),
        LogCommand::Dump(args) => dump(&args),
    }
}

fn inspect(directory: &Path, format: Format) -> Result<(), Failure> {
    let unreadable =
        |what: String| Failure::new(Exit::Refused, what, "name a data directory that can be read");
    let found = inspection::inspect(directory)
        .map_err(|error| unreadable(format!("{} cannot be read: {error}", directory.display())))?;
    if found.partitions.is_empty() && found.shards.is_empty() && found.identity.is_empty() {
        return Err(unreadable(format!("{} holds no data of Millrace", directory.display())));
    }
    print(format, &found);
    let cure = "keep the directory as it is, and read docs/operations/running.md, \"Damage\"";
    let problems: Vec<Problem> = found.damage.into_iter().map(|what| Problem::new(what, cure)).collect();
    if problems.is_empty() { Ok(()) } else { Err(Failure { exit: Exit::Damage, problems }) }
}

/// One batch for people and programs.
#[derive(Serialize)]
struct Batch {
    file: String,
    position: u64,
    size_bytes: usize,
    base_offset: i64,
    last_offset: i64,
    record_count: i32,
    leader_epoch: i32,
    timestamp_type: &'static str,
    max_timestamp_ms: Option<i64>,
    compression: String,
    producer_id: Option<i64>,
    producer_epoch: Option<i16>,
    base_sequence: Option<i32>,
    transactional: bool,
    control: bool,
    crc_is_right: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<Vec<Shown>>,
}

/// One record; bytes that are no UTF-8 are replaced.
#[derive(Serialize)]
struct Shown {
    offset: i64,
    timestamp_ms: i64,
    key: Option<String>,
    value: Option<String>,
    headers: Vec<(String, Option<String>)>,
}

impl Batch {
    fn new(file: String, found: &Found, records: Option<Vec<Shown>>) -> Batch {
        let header: &BatchHeader = &found.header;
        let produced = header.has_producer_id();
        Batch {
            file,
            position: found.position,
            size_bytes: header.size(),
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            record_count: header.record_count,
            leader_epoch: header.partition_leader_epoch,
            timestamp_type: match header.timestamp_type() {
                TimestampType::CreateTime => "CreateTime",
                TimestampType::LogAppendTime => "LogAppendTime",
            },
            max_timestamp_ms: (header.max_timestamp != NO_TIMESTAMP).then_some(header.max_timestamp),
            compression: header
                .compression()
                .map_or_else(|e| e.to_string(), |codec| format!("{codec:?}").to_lowercase()),
            producer_id: produced.then_some(header.producer_id),
            producer_epoch: produced.then_some(header.producer_epoch),
            base_sequence: produced.then_some(header.base_sequence),
            transactional: header.is_transactional(),
            control: header.is_control(),
            crc_is_right: found.crc_is_right,
            records,
        }
    }
}

impl Report for Batch {
    fn text(&self) -> String {
        let mut text = format!(
            "{}: position {} offsets {}-{} records {} bytes {} epoch {} {}",
            self.file,
            self.position,
            self.base_offset,
            self.last_offset,
            self.record_count,
            self.size_bytes,
            self.leader_epoch,
            self.compression
        );
        if let (Some(id), Some(epoch), Some(sequence)) =
            (self.producer_id, self.producer_epoch, self.base_sequence)
        {
            text += &format!(" producer {id} epoch {epoch} sequence {sequence}");
        }
        for (is, word) in [
            (self.transactional, " transactional"),
            (self.control, " control"),
            (!self.crc_is_right, " CRC IS WRONG"),
        ] {
            text += if is { word } else { "" };
        }
        let short = |text: &Option<String>| match text {
            None => "null".to_owned(),
            Some(text) if text.chars().count() > SHOWN_CHARS => {
                format!("{:?}...", text.chars().take(SHOWN_CHARS).collect::<String>())
            }
            Some(text) => format!("{text:?}"),
        };
        for record in self.records.iter().flatten() {
            text += &format!(
                "\n  offset {} timestamp {} key {} value {}",
                record.offset,
                record.timestamp_ms,
                short(&record.key),
                short(&record.value)
            );
        }
        text
    }
}

fn dump(args: &DumpArgs) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for path in &args.files {
        let file = path.display().to_string();
        let damaged = |what: String| {
            Failure::new(
                Exit::Damage,
                format!("{file}: {what}"),
                "the batches above it are whole; keep the file as it is",
            )
            .problems
        };
        let segment = Segment::open(path).map_err(|error| {
            Failure::new(Exit::Refused, format!("{file}: {error}"), "name a .log file that can be read")
        })?;
        for found in segment {
            let found = match found {
                Ok(found) => found,
                Err(SegmentError::Io(error)) => {
                    return Err(Failure::new(
                        Exit::Refused,
                        format!("{file}: {error}"),
                        "look at the device",
                    ));
                }
                Err(error) => {
                    problems.extend(damaged(error.to_string()));
                    break;
                }
            };
            if !found.crc_is_right {
                problems
                    .extend(damaged(format!("the CRC of the batch at position {} is wrong", found.position)));
            }
            let records = match args.records.then(|| records(&found)).transpose() {
                Ok(records) => records,
                Err(reason) => {
                    problems.extend(damaged(format!("the batch at position {}: {reason}", found.position)));
                    None
                }
            };
            print(args.output.format, &Batch::new(file.clone(), &found, records));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure { exit: Exit::Damage, problems }) }
}

fn records(found: &Found) -> Result<Vec<Shown>, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown = |record: Record| Shown {
        offset: record.offset,
        timestamp_ms: record.timestamp,
        key: record.key.as_deref().map(text),
        value: record.value.as_deref().map(text),
        headers: record.headers().map(|h| (text(&h.key), h.value.as_deref().map(text))).collect(),
    };
    let records = RecordIter::of_batch(&found.bytes, BATCH_BYTES_MAX).map_err(|e| e.to_string())?;
    records.map(|record| record.map(shown).map_err(|e| e.to_string())).collect()
}
