//! Record batches that are not what they say: checksums, lengths, counts, formats, and compressed bytes that grow.

use anyhow::{Result, ensure};
use bytes::{BufMut, Bytes};
use kafka_protocol::records::Compression;
use millrace_tests::broker::unique;
use millrace_tests::suite::{self, Cost, Outcome};
use millrace_tests::wire::{self, Wire};

use crate::victim::Victim;

// Positions in the header of a batch.
const LENGTH: usize = 8;
const MAGIC: usize = 16;
const CRC: usize = 17;
const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const COUNT: usize = 57;
const RECORDS: usize = 61;

// Kafka's error codes.
const CORRUPT_MESSAGE: i16 = 2;
const MESSAGE_TOO_LARGE: i16 = 10;
const INVALID_RECORD: i16 = 87;

/// A valid batch with bytes put in at a position; the checksum is made right again where the change is below it.
fn changed(at: usize, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut batch = wire::batch(0..3, 50, Compression::None)?.to_vec();
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    if at >= ATTRIBUTES {
        seal(&mut batch);
    }
    Ok(batch)
}

/// Makes length and checksum of a batch right.
fn seal(batch: &mut [u8]) {
    let length = u32::try_from(batch.len() - LENGTH - 4).unwrap_or_default();
    (&mut batch[LENGTH..]).put_u32(length);
    let crc = crc32c::crc32c(&batch[ATTRIBUTES..]);
    (&mut batch[CRC..]).put_u32(crc);
}

struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    errors: &'static [i16],
}

fn cases() -> Result<Vec<Case>> {
    let valid = wire::batch(0..3, 50, Compression::None)?.to_vec();
    let case = |name, bytes, errors| Case { name, bytes, errors };
    let mut flipped = valid.clone();
    flipped[RECORDS + 10] ^= 1;
    let mut trailing = valid.clone();
    trailing.extend([0; 30]);
    let mut longer = valid.clone();
    longer.extend([0; 30]);
    seal(&mut longer);
    Ok(vec![
        case("a wrong checksum", changed(CRC, &[1, 2, 3, 4])?, &[CORRUPT_MESSAGE]),
        case("a flipped bit in a record", flipped, &[CORRUPT_MESSAGE]),
        case("half a batch", valid[..valid.len() / 2].to_vec(), &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("half a header", valid[..30].to_vec(), &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("no batch", Vec::new(), &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("a length of 0", changed(LENGTH, &[0; 4])?, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("a negative length", changed(LENGTH, &[0xff; 4])?, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case(
            "a huge length",
            changed(LENGTH, &[0x7f, 0xff, 0xff, 0xff])?,
            &[CORRUPT_MESSAGE, INVALID_RECORD],
        ),
        case("bytes behind the batch", trailing, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("bytes behind the records", longer, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("two batches", [valid.clone(), valid.clone()].concat(), &[INVALID_RECORD]),
        case("magic 0", changed(MAGIC, &[0])?, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("magic 1", changed(MAGIC, &[1])?, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("magic 3", changed(MAGIC, &[3])?, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("magic -1", changed(MAGIC, &[0xff])?, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("a control batch", changed(ATTRIBUTES, &[0, 0x20])?, &[INVALID_RECORD]),
        case(
            "more records than there are",
            changed(COUNT, &[0, 0, 0, 4])?,
            &[CORRUPT_MESSAGE, INVALID_RECORD],
        ),
        case(
            "fewer records than there are",
            changed(COUNT, &[0, 0, 0, 2])?,
            &[CORRUPT_MESSAGE, INVALID_RECORD],
        ),
        case("no records", changed(COUNT, &[0; 4])?, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("a negative count", changed(COUNT, &[0xff; 4])?, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case("a huge count", changed(COUNT, &[0x7f, 0xff, 0xff, 0xff])?, &[CORRUPT_MESSAGE, INVALID_RECORD]),
        case(
            "a wrong last offset",
            changed(LAST_OFFSET_DELTA, &[0, 0, 0, 9])?,
            &[CORRUPT_MESSAGE, INVALID_RECORD],
        ),
        case(
            "a negative last offset",
            changed(LAST_OFFSET_DELTA, &[0xff; 4])?,
            &[CORRUPT_MESSAGE, INVALID_RECORD],
        ),
        case(
            "a huge record",
            changed(RECORDS, &[0xfe, 0xff, 0xff, 0xff, 0x0f])?,
            &[CORRUPT_MESSAGE, INVALID_RECORD],
        ),
    ])
}

#[test]
fn batches_that_are_refused() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        let topic = unique("refused");
        let mut client = victim.client()?;
        client.create_topic(&topic, 1, &[])?;
        for case in cases()? {
            let answer = client.produce(&topic, 0, case.bytes.into())?;
            ensure!(
                case.errors.contains(&answer.error),
                "{} was answered with {}",
                case.name,
                wire::error_name(answer.error)
            );
            ensure!(client.read_all(&topic, 0, 0)?.is_empty(), "{} left records behind", case.name);
        }
        victim.check("batches that are refused")
    })
}

#[test]
fn batches_that_are_too_large() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        let topic = unique("large");
        let mut client = victim.client()?;
        client.create_topic(&topic, 1, &[])?;
        for size in [1_048_588, 4 * 1024 * 1024, 20 * 1024 * 1024] {
            let answer = client.produce(&topic, 0, wire::batch(0..1, size, Compression::None)?)?;
            ensure!(answer.error == MESSAGE_TOO_LARGE, "{size} bytes: {}", wire::error_name(answer.error));
        }
        ensure!(client.read_all(&topic, 0, 0)?.is_empty(), "a batch that is too large left records behind");
        victim.check("batches that are too large")
    })
}

/// A batch of one record whose value is a gigabyte of zeros, in a few hundred kilobytes.
fn bomb(codec: u8, compressed: &[u8]) -> Vec<u8> {
    let mut batch = changed(ATTRIBUTES, &[0, codec]).unwrap_or_default();
    batch.truncate(RECORDS);
    batch.extend_from_slice(compressed);
    (&mut batch[LAST_OFFSET_DELTA..]).put_u32(0);
    (&mut batch[COUNT..]).put_u32(1);
    seal(&mut batch);
    batch
}

/// Whether a bomb is stored (nothing looks inside) or refused: neither it nor its readers may cost the node memory.
#[test]
fn decompression_bombs() -> Outcome {
    suite::run(Cost::Light, || {
        const BOMB_BYTES: usize = 1024 * 1024 * 1024;
        let mut victim = Victim::start()?;
        let mut client = victim.client()?;
        for (name, codec, compressed) in [
            ("gzip", 1, compress_gzip(BOMB_BYTES)?),
            ("zstd", 4, compress_zstd(BOMB_BYTES)?),
            ("snappy that announces 4 GiB", 2, vec![0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]),
            ("lz4 without a frame", 3, vec![0; 100]),
            ("gzip without a header", 1, vec![0; 100]),
            ("codec 5", 5, vec![0; 100]),
            ("codec 7", 7, vec![0; 100]),
        ] {
            let topic = unique("bomb");
            // What must look inside a batch: log append times need not, compression to another codec must.
            client.create_topic(&topic, 1, &[("message.timestamp.type", "LogAppendTime")])?;
            let answer = client.produce(&topic, 0, bomb(codec, &compressed).into())?;
            let fetched = client.fetch(&topic, 0, 0, 1_000_000)?;
            ensure!(fetched.error == 0, "fetch after {name}: {}", wire::error_name(fetched.error));
            let stored = !fetched.batches.is_empty();
            ensure!(stored == (answer.error == 0), "{name}: answer {answer:?}, stored: {stored}");
            victim.check(name)?;
        }
        Ok(())
    })
}

fn compress_gzip(size: usize) -> Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    write_zeros(&mut encoder, size)?;
    Ok(encoder.finish()?)
}

fn compress_zstd(size: usize) -> Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3)?;
    write_zeros(&mut encoder, size)?;
    Ok(encoder.finish()?)
}

fn write_zeros(writer: &mut impl std::io::Write, size: usize) -> Result<()> {
    let chunk = vec![0; 1024 * 1024];
    for _ in 0..size / chunk.len() {
        writer.write_all(&chunk)?;
    }
    Ok(())
}

/// Sequence numbers and producer ids that were never given out, or lie.
#[test]
fn producers_that_lie() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        let topic = unique("producers");
        let mut client = victim.client()?;
        client.create_topic(&topic, 1, &[])?;
        let send = |client: &mut Wire, producer: (i64, i16, i32)| -> Result<i16> {
            let batch: Bytes = wire::encode(0..3, 50, Compression::None, producer)?;
            Ok(client.produce(&topic, 0, batch)?.error)
        };
        ensure!(send(&mut client, (77, 0, 0))? == 0, "the first batch of a producer");
        ensure!(send(&mut client, (77, 0, 0))? == 0, "the same batch again is acknowledged, not stored");
        let out_of_order = send(&mut client, (77, 0, 9))?;
        ensure!(out_of_order == 45, "a gap in the sequence: {}", wire::error_name(out_of_order));
        ensure!(client.read_all(&topic, 0, 0)?.len() == 3, "a duplicate was stored");
        for odd in [(77, -5, 3), (-2, 0, 0), (i64::MIN, i16::MIN, i32::MIN), (78, i16::MAX, i32::MAX)] {
            send(&mut client, odd)?;
        }
        client.read_all(&topic, 0, 0)?;
        victim.check("producers that lie")
    })
}
