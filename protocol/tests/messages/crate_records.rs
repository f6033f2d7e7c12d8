//! Record batches against the `kafka-protocol` crate, both ways, with every codec.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use millrace_protocol::record::{Builder, Codec, Producer, RecordIter, verify_crc};

const COMPRESSIONS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn records() -> Vec<Record> {
    (0..300)
        .map(|at| Record {
            transactional: true,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: -1,
            producer_id: 9,
            producer_epoch: 2,
            timestamp_type: TimestampType::Creation,
            offset: at,
            sequence: 100 + at as i32,
            timestamp: 1_000 + at,
            key: (at % 3 > 0).then(|| Bytes::from(format!("key {at}"))),
            value: (at % 5 > 0).then(|| Bytes::from("value ".repeat(at as usize))),
            headers: (0..at % 3)
                .map(|header| {
                    let value = (header > 0).then(|| Bytes::from_static(b"of a header"));
                    (StrBytes::from_string(format!("header {header}")), value)
                })
                .collect(),
        })
        .collect()
}

#[test]
fn batches_are_written_and_read_as_the_crate_does() {
    let records = records();
    for (codec, compression) in Codec::ALL.into_iter().zip(COMPRESSIONS) {
        let mut theirs = BytesMut::new();
        let options = RecordEncodeOptions { version: 2, compression };
        RecordBatchEncoder::encode(&mut theirs, &records, &options).expect("records");
        let theirs = theirs.freeze();
        let producer = Producer { id: 9, epoch: 2, base_sequence: 100 };
        let mut builder = Builder::new(codec).producer(producer).transactional();
        for record in &records {
            let headers: Vec<_> =
                record.headers.iter().map(|(key, value)| (key.as_bytes(), value.as_deref())).collect();
            builder.push(record.timestamp, record.key.as_deref(), record.value.as_deref(), &headers);
        }
        let ours = builder.build();
        if codec == Codec::None {
            assert_eq!(ours, theirs);
        }
        assert_eq!(
            RecordBatchDecoder::decode(&mut ours.clone()).expect("our batch").records,
            records,
            "{codec}"
        );
        assert_eq!(verify_crc(&theirs), Ok(()), "{codec}");
        let read: Vec<_> = RecordIter::of_batch(&theirs, 1 << 20).expect("their batch").collect();
        assert_eq!(read.len(), records.len());
        for (read, record) in read.into_iter().zip(&records) {
            let read = read.expect("a record");
            assert_eq!((read.offset, read.timestamp), (record.offset, record.timestamp), "{codec}");
            assert_eq!((&read.key, &read.value), (&record.key, &record.value), "{codec}");
            let headers: Vec<_> = read.headers().map(|header| (header.key, header.value)).collect();
            let expected =
                record.headers.iter().map(|(key, value)| (key.clone().into_bytes(), value.clone()));
            assert_eq!(headers, expected.collect::<Vec<_>>(), "{codec}");
        }
    }
}
