//! The decoders of this crate, one family at a time, as functions that take any bytes: what fuzzing feeds.
//!
//! A family may answer what it likes, but it must come back, without a panic, and within its memory.

use bytes::Bytes;
use millrace_protocol::frame::{decode_request_header, decode_response_header};
use millrace_protocol::record::validate::{Rules, TimestampRules, one_batch, records};
use millrace_protocol::record::{
    BatchHeader, Builder, Codec as Compression, HEADER_BYTES, Producer, RecordIter, compression,
    split_batches, verify_crc,
};
use millrace_protocol::wire::Decoder;
use millrace_protocol::{ApiKey, record::control::EndTransaction};

use super::generated::{CODECS, SCHEMA};
use super::random::Random;
use super::sample::{Content, encoding};
use super::{Codec, schema};

/// A family of decoders.
pub(crate) struct Family {
    /// What failures call it.
    pub(crate) name: &'static str,
    /// Makes a valid input.
    pub(crate) seed: fn(&Samples, &mut Random) -> Vec<u8>,
    /// Decodes an input.
    pub(crate) run: fn(Bytes),
    /// Bytes of memory that an input of so many bytes may take.
    pub(crate) memory: fn(usize) -> usize,
}

/// Every family.
pub(crate) const FAMILIES: [Family; 5] = [
    Family { name: "messages", seed: message_seed, run: messages, memory: message_memory },
    Family { name: "frames", seed: frame_seed, run: frames, memory: message_memory },
    Family { name: "batches", seed: batch_seed, run: batches, memory: decompress_memory },
    Family { name: "records", seed: records_seed, run: plain_records, memory: |len| 4 * len + 1_024 },
    Family { name: "decompression", seed: decompress_seed, run: decompress, memory: decompress_memory },
];

/// What valid inputs are made from.
pub(crate) struct Samples {
    schema: std::collections::BTreeMap<String, schema::Message>,
}

impl Samples {
    /// Reads the schema.
    pub(crate) fn new() -> Self {
        Self { schema: schema::parse(SCHEMA) }
    }
}

/// What the decoder promises: sixteen bytes for each of the frame, and 64 KiB.
fn message_memory(len: usize) -> usize {
    16 * len + 65 * 1_024
}

/// Any message in any version: two bytes choose the message, one the version.
pub(crate) fn messages(input: Bytes) {
    if let Some((codec, version, bytes)) = chosen(input) {
        let _ = (codec.decode)(bytes, version);
    }
}

/// The message and the version that an input of that family chooses, and the bytes to decode.
pub(crate) fn chosen(input: Bytes) -> Option<(&'static Codec, i16, Bytes)> {
    let mut d = Decoder::new(input);
    let which = usize::from(d.u16().ok()?);
    let version = d.i8().ok()?.into();
    Some((&CODECS[which % CODECS.len()], version, d.take_remaining()))
}

/// A valid input of that family.
pub(crate) fn message_seed(samples: &Samples, random: &mut Random) -> Vec<u8> {
    let which = random.below(CODECS.len());
    let codec = &CODECS[which];
    let version = codec.min + random.below((codec.max - codec.min) as usize + 1) as i16;
    let content = *random.pick(&[Content::Random, Content::Random, Content::Extreme]);
    let mut input = (which as u16).to_be_bytes().to_vec();
    input.push(version as u8);
    input.extend(encoding(&samples.schema[codec.name], version, content, random));
    input
}

/// What arrives on a socket behind the length: the header of a request, then the request that it names.
pub(crate) fn frames(input: Bytes) {
    let mut d = Decoder::new(input.clone());
    if let Ok(header) = decode_request_header(&mut d)
        && let Some(key) = ApiKey::from_i16(header.api_key)
    {
        let name = format!("{key}Request");
        let codec = CODECS.iter().find(|codec| codec.name == name).expect("every API has a request");
        let _ = (codec.decode)(d.take_remaining(), header.api_version);
    }
    let mut d = Decoder::new(input);
    let _ = decode_response_header(&mut d, ApiKey::Fetch, 12);
}

fn frame_seed(samples: &Samples, random: &mut Random) -> Vec<u8> {
    let keys: Vec<ApiKey> = ApiKey::all().collect();
    let key = *random.pick(&keys);
    let (min, max) = key.valid_versions();
    let version = min + random.below((max - min) as usize + 1) as i16;
    let mut input = (key as i16).to_be_bytes().to_vec();
    input.extend(version.to_be_bytes());
    input.extend(7i32.to_be_bytes());
    input.extend([0, 2, b'm', b'e']);
    if key.flexible(version) {
        input.extend([1, 5, 1, 0]);
    }
    input.extend(encoding(&samples.schema[&format!("{key}Request")], version, Content::Random, random));
    input
}

/// What a Produce request carries: batches, their checksums, and what is in them.
pub(crate) fn batches(input: Bytes) {
    let limit = limit(input.len());
    let timestamps = TimestampRules { earliest_ms: 0, latest_ms: i64::MAX };
    let rules =
        Rules { version: 9, max_batch_bytes: 1 << 20, timestamps: Some(timestamps), keys_required: true };
    if let Ok((_, batch)) = one_batch(input.clone(), &rules) {
        let _ = records(&batch, &rules, limit);
    }
    for (_, batch) in split_batches(input).flatten() {
        // Most mutations break the CRC, and what lies behind it is to be reached all the same.
        let _ = verify_crc(&batch);
        for record in RecordIter::of_batch(&batch, limit).into_iter().flatten().flatten() {
            let _ = (record.headers().count(), EndTransaction::of(&record));
        }
    }
}

fn batch_seed(_: &Samples, random: &mut Random) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..=random.below(2) {
        let codec = *random.pick(&Compression::ALL);
        input.extend(batch(codec, random));
    }
    input
}

fn batch(codec: Compression, random: &mut Random) -> Bytes {
    let mut builder = Builder::new(codec).producer(Producer { id: 1, epoch: 0, base_sequence: 0 });
    for _ in 0..=random.below(6) {
        let len = random.below(300);
        let value = if random.one_in(2) { random.bytes(len) } else { vec![7; len] };
        let headers: &[(&[u8], Option<&[u8]>)] = &[(b"name", Some(b"value")), (b"", None)];
        let key = random.one_in(2).then_some(b"key".as_slice());
        builder.push(random.u64() as i64 >> 20, key, Some(&value), &headers[..random.below(3)]);
    }
    builder.build()
}

/// Records behind a header of their own, without the checks of a batch.
pub(crate) fn plain_records(input: Bytes) {
    let Ok(header) = BatchHeader::read(&input) else { return };
    for record in RecordIter::new(&header, input.slice(HEADER_BYTES..)).flatten() {
        let _ = record.headers().count();
    }
}

fn records_seed(_: &Samples, random: &mut Random) -> Vec<u8> {
    batch(Compression::None, random).to_vec()
}

/// Compressed bytes: the first byte chooses the codec.
pub(crate) fn decompress(mut input: Bytes) {
    let Some(&which) = input.first() else { return };
    let compressed = input.split_off(1);
    let codec = Compression::ALL[usize::from(which) % Compression::ALL.len()];
    let limit_bytes = limit(compressed.len());
    if let Ok(bytes) = compression::decompress(codec, &compressed, limit_bytes) {
        assert!(bytes.len() <= limit_bytes || codec == Compression::None);
    }
}

fn decompress_seed(_: &Samples, random: &mut Random) -> Vec<u8> {
    let codec = *random.pick(&Compression::ALL);
    let len = random.below(400);
    let bytes = random.bytes(len).repeat(1 + random.below(100));
    let mut input = vec![codec.id()];
    input.extend(compression::compress(codec, &bytes));
    input
}

/// How much the tests let bytes expand.
fn limit(len: usize) -> usize {
    16 * len + 64 * 1_024
}

/// The output may be twice its limit while it grows; gzip brings tables of its own.
fn decompress_memory(len: usize) -> usize {
    3 * limit(len) + 128 * 1_024
}
