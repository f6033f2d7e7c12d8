//! Record batches against Apache Kafka's own code, both ways, with every codec.

use std::fmt::Write;

use bytes::Bytes;
use millrace_protocol::record::control::EndTransaction;
use millrace_protocol::record::{
    BatchHeader, Builder, Codec, Producer, RecordIter, TimestampType, set_base_offset, set_leader_epoch,
    set_max_timestamp_log_append, split_batches, verify_crc,
};

use crate::java_oracle::ask;
use crate::support::hex;
use crate::support::random::Random;

struct Record {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn random_records(random: &mut Random) -> Vec<Record> {
    let count = 1 + random.below(20);
    (0..count)
        .map(|_| {
            let mut bytes = |most| {
                let len = random.below(most);
                // Half of it compressible.
                if random.one_in(2) { random.bytes(len) } else { vec![b'x'; len] }
            };
            let (key, value) = (bytes(20), bytes(5_000));
            let headers =
                (0..value.len() % 3).map(|at| (format!("name{at}").into_bytes(), Some(bytes(9)))).collect();
            Record {
                timestamp: 1_700_000_000_000 + (random.below(2_000) as i64 - 1_000),
                key: (!random.one_in(4)).then_some(key),
                value: (!random.one_in(8)).then_some(value),
                headers,
            }
        })
        .collect()
}

fn built(codec: Codec, producer: Producer, transactional: bool, records: &[Record]) -> Bytes {
    let mut builder = Builder::new(codec).producer(producer);
    if transactional {
        builder = builder.transactional();
    }
    for record in records {
        let headers: Vec<_> =
            record.headers.iter().map(|(key, value)| (key.as_slice(), value.as_deref())).collect();
        builder.push(record.timestamp, record.key.as_deref(), record.value.as_deref(), &headers);
    }
    builder.build()
}

fn text(bytes: Option<&[u8]>) -> String {
    bytes.map_or("-".to_owned(), hex)
}

fn question(codec: Codec, producer: Producer, transactional: bool, records: &[Record]) -> String {
    let Producer { id, epoch, base_sequence } = producer;
    let mut line = format!("write {codec} {id} {epoch} {base_sequence} {transactional}");
    for record in records {
        let (key, value) = (text(record.key.as_deref()), text(record.value.as_deref()));
        let _ = write!(line, " {}/{key}/{value}", record.timestamp);
        for (key, value) in &record.headers {
            let _ = write!(line, "/{}={}", hex(key), text(value.as_deref()));
        }
    }
    line
}

/// What the oracle says of a batch, said by us.
fn described(bytes: Bytes) -> String {
    let mut out = String::new();
    for batch in split_batches(bytes) {
        let (header, batch) = batch.expect("a whole batch");
        verify_crc(&batch).expect("a good CRC");
        let BatchHeader { base_offset, partition_leader_epoch, max_timestamp, .. } = header;
        let BatchHeader { producer_id, producer_epoch, base_sequence, .. } = header;
        let _ = write!(
            out,
            "batch {base_offset} {} {} {partition_leader_epoch} {max_timestamp} {producer_id} {producer_epoch} \
             {base_sequence} {} {} {} {} {}",
            header.last_offset(),
            header.size(),
            header.last_sequence(),
            header.compression().expect("a codec"),
            header.is_transactional(),
            header.is_control(),
            header.timestamp_type() == TimestampType::LogAppendTime,
        );
        for record in RecordIter::of_batch(&batch, 1 << 20).expect("records") {
            let record = record.expect("a good record");
            let (key, value) = (text(record.key.as_deref()), text(record.value.as_deref()));
            let _ = write!(out, " record {} {} {key} {value}", record.offset, record.timestamp);
            for header in record.headers() {
                let _ = write!(out, " header {} {}", hex(&header.key), text(header.value.as_deref()));
            }
        }
    }
    out
}

#[test]
fn batches_are_written_and_read_as_kafka_does() {
    let mut random = Random::new(3);
    let mut cases = Vec::new();
    let mut questions = Vec::new();
    for codec in Codec::ALL {
        for round in 0..6 {
            let records = random_records(&mut random);
            let producer = match round % 3 {
                0 => Producer { id: -1, epoch: -1, base_sequence: -1 },
                1 => Producer { id: 77, epoch: 3, base_sequence: i32::MAX - 4 },
                _ => Producer { id: i64::MAX, epoch: i16::MAX, base_sequence: 0 },
            };
            let transactional = round % 3 == 2;
            let batch = built(codec, producer, transactional, &records);
            questions.push(question(codec, producer, transactional, &records));
            questions.push(format!("read {}", hex(&batch)));
            let mut kept = batch.to_vec();
            set_base_offset(&mut kept, 1 << 33);
            set_leader_epoch(&mut kept, 5);
            set_max_timestamp_log_append(&mut kept, 1_800_000_000_000);
            questions.push(format!("read {}", hex(&kept)));
            cases.push((codec, batch, Bytes::from(kept)));
        }
    }
    let Some(answers) = ask("records", &questions) else { return };
    for ((codec, batch, kept), answers) in cases.into_iter().zip(answers.chunks(3)) {
        let [written, read, read_kept] = answers else { panic!("three answers for each case") };
        assert_eq!(read.as_ref(), Ok(&described(batch.clone())));
        assert_eq!(read_kept.as_ref(), Ok(&described(kept)));
        let theirs = unhex(written.as_ref().expect("a batch"));
        if codec == Codec::None {
            assert_eq!(theirs, batch);
        }
        // Compressed bytes may differ; what they hold may not.
        let body =
            |bytes: Bytes| described(bytes).split_once(" record").map(|(_, records)| records.to_owned());
        assert_eq!(body(theirs), body(batch), "{codec}");
    }
}

#[test]
fn transaction_markers_are_kafkas() {
    let questions =
        ["marker commit 4 1 99 12".to_owned(), "marker abort 9223372036854775807 0 -1 2147483647".to_owned()];
    let Some(answers) = ask("markers", &questions) else { return };
    let commit = EndTransaction { committed: true, coordinator_epoch: 12 }.batch(4, 1, 99);
    assert_eq!(answers[0].as_deref(), Ok(hex(&commit).as_str()));
    let abort = EndTransaction { committed: false, coordinator_epoch: i32::MAX }.batch(i64::MAX, 0, -1);
    assert_eq!(answers[1].as_deref(), Ok(hex(&abort).as_str()));
}

fn unhex(text: &str) -> Bytes {
    let digits = text.as_bytes().chunks(2);
    let byte =
        |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal");
    digits.map(byte).collect()
}
