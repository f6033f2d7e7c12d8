//! A small blocking Kafka client that shares no code with the broker: it is built on the `kafka-protocol` crate.
//!
//! What the suites judge a broker by (which records are there, at which offsets) is read with this client, so that an
//! error in the broker's own encoding cannot hide itself. It is for answers of well-behaved brokers only.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::error::ResponseError;
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, FetchRequest, ProduceRequest, RequestHeader, ResponseHeader,
    TopicName,
};
use kafka_protocol::protocol::{
    Decodable, HeaderVersion, Request, StrBytes, encode_request_header_into_buffer,
};
use kafka_protocol::records::{
    Compression, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Record,
    RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};

const ANSWER_LIMIT: Duration = Duration::from_secs(30);
const FETCH_BYTES: i32 = 4 * 1024 * 1024;
const NO_PROGRESS_MAX: Duration = Duration::from_secs(15);
/// Position of the batch's length in its bytes; it counts what follows it.
const LENGTH_AT: usize = 8;
const OVERHEAD: usize = 12;

/// A client id, a topic, a version: whatever the protocol wants as a string.
fn string(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// One connection; one request at a time.
pub struct Wire {
    stream: TcpStream,
    correlation: i32,
}

/// The answer to one partition's produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Produced {
    /// Kafka's error code, 0 for success.
    pub error: i16,
    /// Offset of the first record.
    pub base_offset: i64,
}

/// The answer to one partition's fetch.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Kafka's error code, 0 for success.
    pub error: i16,
    /// Offset behind the last record that may be read.
    pub high_watermark: i64,
    /// Record batches, the last one perhaps cut off.
    pub batches: Bytes,
}

impl Wire {
    /// Connects to `HOST:PORT`.
    pub fn connect(bootstrap: &str) -> Result<Wire> {
        let stream = TcpStream::connect(bootstrap).with_context(|| format!("connecting to {bootstrap}"))?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, correlation: 0 })
    }

    /// Sends a request and waits for its answer.
    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        self.correlation += 1;
        let mut frame = BytesMut::from(&[0; 4][..]);
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation)
            .with_client_id(Some(string("millrace-tests")));
        encode_request_header_into_buffer(&mut frame, &header)?;
        request.encode(&mut frame, version)?;
        let length = u32::try_from(frame.len() - 4)?;
        (&mut frame[..4]).put_u32(length);
        self.stream.write_all(&frame)?;
        let mut answer = self.read_frame()?;
        let header = ResponseHeader::decode(&mut answer, R::Response::header_version(version))?;
        ensure!(header.correlation_id == self.correlation, "answer to another request: {header:?}");
        R::Response::decode(&mut answer, version)
    }

    fn read_frame(&mut self) -> Result<Bytes> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).context("reading an answer")?;
        let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length))?];
        self.stream.read_exact(&mut frame).context("reading an answer")?;
        Ok(frame.into())
    }

    /// Creates a topic with one replica and waits until each partition answers.
    pub fn create_topic(&mut self, topic: &str, partitions: i32, configs: &[(&str, &str)]) -> Result<()> {
        let configs = configs.iter().map(|(name, value)| {
            CreatableTopicConfig::default().with_name(string(name)).with_value(Some(string(value)))
        });
        let creatable = CreatableTopic::default()
            .with_name(TopicName(string(topic)))
            .with_num_partitions(partitions)
            .with_replication_factor(1)
            .with_configs(configs.collect());
        let request = CreateTopicsRequest::default().with_topics(vec![creatable]).with_timeout_ms(20_000);
        let answer = self.call(7, &request)?;
        let error = answer.topics.first().context("no topic in the answer")?.error_code;
        ensure!(error == 0, "creating {topic}: {}", error_name(error));
        for partition in 0..partitions {
            self.wait_for_leader(topic, partition)?;
        }
        Ok(())
    }

    fn wait_for_leader(&mut self, topic: &str, partition: i32) -> Result<()> {
        let end = Instant::now() + ANSWER_LIMIT;
        loop {
            let error = self.fetch(topic, partition, 0, 1)?.error;
            if error == 0 {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{topic}-{partition} has no leader: {}", error_name(error));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Deletes a topic.
    pub fn delete_topic(&mut self, topic: &str) -> Result<()> {
        let state = DeleteTopicState::default().with_name(Some(TopicName(string(topic))));
        let request = DeleteTopicsRequest::default().with_topics(vec![state]).with_timeout_ms(20_000);
        let error = self.call(6, &request)?.responses.first().context("no topic in the answer")?.error_code;
        ensure!(error == 0, "deleting {topic}: {}", error_name(error));
        Ok(())
    }

    /// Produces bytes as they are with acks=all.
    pub fn produce(&mut self, topic: &str, partition: i32, batch: Bytes) -> Result<Produced> {
        let data = PartitionProduceData::default().with_index(partition).with_records(Some(batch));
        let topic =
            TopicProduceData::default().with_name(TopicName(string(topic))).with_partition_data(vec![data]);
        let request =
            ProduceRequest::default().with_acks(-1).with_timeout_ms(20_000).with_topic_data(vec![topic]);
        let answer = self.call(9, &request)?;
        let partition = answer
            .responses
            .first()
            .and_then(|topic| topic.partition_responses.first())
            .context("no partition in the answer")?;
        Ok(Produced { error: partition.error_code, base_offset: partition.base_offset })
    }

    /// Fetches from one partition, waiting at most half a second for the first byte.
    pub fn fetch(&mut self, topic: &str, partition: i32, offset: i64, max_bytes: i32) -> Result<Fetched> {
        let wanted = FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(max_bytes);
        let topic = FetchTopic::default().with_topic(TopicName(string(topic))).with_partitions(vec![wanted]);
        let request = FetchRequest::default()
            .with_max_wait_ms(500)
            .with_min_bytes(0)
            .with_max_bytes(FETCH_BYTES)
            .with_session_epoch(-1)
            .with_topics(vec![topic]);
        let answer = self.call(12, &request)?;
        ensure!(answer.error_code == 0, "fetch: {}", error_name(answer.error_code));
        let partition = answer
            .responses
            .into_iter()
            .next()
            .and_then(|topic| topic.partitions.into_iter().next())
            .context("no partition in the answer")?;
        Ok(Fetched {
            error: partition.error_code,
            high_watermark: partition.high_watermark,
            batches: partition.records.unwrap_or_default(),
        })
    }

    /// Every record from `from` up to the high watermark; an error where offsets have a gap.
    pub fn read_all(&mut self, topic: &str, partition: i32, from: i64) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut next = from;
        let mut progress = Instant::now();
        loop {
            let fetched = self.fetch(topic, partition, next, FETCH_BYTES)?;
            ensure!(fetched.error == 0, "fetching {topic}-{partition}@{next}: {}", error_name(fetched.error));
            if next >= fetched.high_watermark {
                return Ok(records);
            }
            let before = next;
            for record in decode(fetched.batches)?.into_iter().filter(|record| record.offset >= before) {
                ensure!(
                    record.offset == next,
                    "{topic}-{partition}: offset {} after {}",
                    record.offset,
                    next - 1
                );
                next += 1;
                records.push(record);
            }
            if next > before {
                progress = Instant::now();
                continue;
            }
            // A node without memory for a fetch answers with nothing, and the client asks again.
            ensure!(
                progress.elapsed() < NO_PROGRESS_MAX,
                "{topic}-{partition}: no progress at {next} of {}",
                fetched.high_watermark
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The records of whole batches; what follows the last whole one is left out.
pub fn decode(mut batches: Bytes) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    while let Some(mut length) = batches.get(LENGTH_AT..OVERHEAD) {
        let size = OVERHEAD + usize::try_from(length.get_i32())?;
        if size > batches.len() {
            break;
        }
        records.extend(RecordBatchDecoder::decode(&mut batches.split_to(size))?.records);
    }
    Ok(records)
}

/// One batch of records numbered `numbers`, each with a value of `size` bytes that begins with its number, without a
/// producer id. Times are those of the numbers, in milliseconds after 2024-01-01.
pub fn batch(numbers: Range<i64>, size: usize, compression: Compression) -> Result<Bytes> {
    encode(numbers, size, compression, (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE))
}

/// As `batch`, by an idempotent producer: its id, its epoch and the sequence number of the first record.
pub fn encode(
    numbers: Range<i64>,
    size: usize,
    compression: Compression,
    (producer_id, producer_epoch, sequence): (i64, i16, i32),
) -> Result<Bytes> {
    const BEGIN_MS: i64 = 1_704_067_200_000;
    let records: Vec<Record> = numbers
        .enumerate()
        .map(|(at, number)| Record {
            transactional: false,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
            producer_id,
            producer_epoch,
            timestamp_type: TimestampType::Creation,
            offset: i64::try_from(at).unwrap_or_default(),
            // The encoder begins a new batch where sequence and offset do not rise together.
            sequence: sequence.wrapping_add(i32::try_from(at).unwrap_or_default()),
            timestamp: BEGIN_MS + number,
            key: None,
            value: Some(value(number, size)),
            headers: IndexMap::new(),
        })
        .collect();
    let mut bytes = BytesMut::new();
    RecordBatchEncoder::encode(&mut bytes, &records, &RecordEncodeOptions { version: 2, compression })?;
    Ok(bytes.freeze())
}

/// The value of the record `number` in `batch`: the number in decimal, a space, and filler up to `size`.
pub fn value(number: i64, size: usize) -> Bytes {
    let mut value = format!("{number} ").into_bytes();
    // Filler that compresses, but not to nothing.
    let mut state = number.cast_unsigned() | 1;
    while value.len() < size {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        value.push(b'a' + u8::try_from(state >> 60).unwrap_or_default());
    }
    value.into()
}

/// The number at the beginning of a record's value, as `batch` and Kafka's verifiable producer write it.
pub fn number(record: &Record) -> Result<i64> {
    let value = record.value.as_deref().context("the record has no value")?;
    let text = std::str::from_utf8(value)?;
    let digits = text.split(' ').next().unwrap_or(text);
    digits.parse().with_context(|| format!("no number in {text:?}"))
}

/// Fails unless the records are those numbered `numbers` by `batch`, each once, in order, unharmed.
pub fn expect(records: &[Record], numbers: Range<i64>, size: usize) -> Result<()> {
    ensure!(
        i64::try_from(records.len())? == numbers.end - numbers.start,
        "{} records, expected numbers {numbers:?}",
        records.len()
    );
    for (record, expected) in records.iter().zip(numbers) {
        if record.value.as_ref() != Some(&value(expected, size)) {
            bail!("offset {}: the value is not that of record {expected}", record.offset);
        }
    }
    Ok(())
}

/// Name of an error code, for messages.
pub fn error_name(code: i16) -> String {
    ResponseError::try_from_code(code)
        .map_or_else(|| format!("error {code}"), |error| format!("{error:?} ({code})"))
}
