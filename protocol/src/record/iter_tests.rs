//! Tests of [`RecordIter`]: what was built is read back, what contradicts itself is an error.

use proptest::prelude::*;

use super::super::{Builder, set_base_offset, set_max_timestamp_log_append};
use super::*;

/// Timestamp, key, value.
type Sample<'a> = (i64, Option<&'a [u8]>, Option<&'a [u8]>);

fn batch(records: &[Sample<'_>]) -> Bytes {
    let mut builder = Builder::new(Codec::None);
    for (timestamp, key, value) in records {
        builder.push(*timestamp, *key, *value, &[(b"h", Some(b"1")), (b"", None)]);
    }
    builder.build()
}

fn outcome(header: &BatchHeader, body: &[u8]) -> Vec<Result<Record, RecordError>> {
    RecordIter::new(header, Bytes::copy_from_slice(body)).collect()
}

#[test]
fn records_are_read_back_with_offsets_times_and_headers() {
    let mut bytes = batch(&[(100, Some(b"k"), Some(b"v")), (90, None, None)]).to_vec();
    set_base_offset(&mut bytes, 1_000);
    let read = |bytes: &[u8]| -> Vec<Record> {
        let records = RecordIter::of_batch(&Bytes::copy_from_slice(bytes), 0).expect("a batch");
        records.collect::<Result<_, _>>().expect("valid records")
    };
    let records = read(&bytes);
    assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), [1_000, 1_001]);
    assert_eq!(records.iter().map(|record| record.timestamp).collect::<Vec<_>>(), [100, 90]);
    assert_eq!(records[0].key.as_deref(), Some(b"k".as_slice()));
    assert_eq!((&records[1].key, &records[1].value), (&None, &None));
    let headers: Vec<_> = records[0].headers().collect();
    assert_eq!(headers[0], RecordHeader { key: "h".into(), value: Some("1".into()) });
    assert_eq!(headers[1], RecordHeader { key: Bytes::new(), value: None });
    set_max_timestamp_log_append(&mut bytes, 7);
    assert!(read(&bytes).iter().all(|record| record.timestamp == 7));
}

#[test]
fn counts_that_the_bytes_contradict_are_errors() {
    let bytes = batch(&[(1, None, Some(b"a")), (1, None, Some(b"b"))]);
    let header = BatchHeader::read(&bytes).expect("a header");
    let body = &bytes[HEADER_BYTES..];
    for (count, good) in [(0, 0), (1, 1), (3, 2), (i32::MAX, 2), (-1, 0), (i32::MIN, 0)] {
        let outcome = outcome(&BatchHeader { record_count: count, ..header }, body);
        assert_eq!(outcome.iter().filter(|item| item.is_ok()).count(), good, "count {count}");
        assert!(outcome.last().is_some_and(Result::is_err), "count {count}");
    }
}

#[test]
fn impossible_records_are_errors() {
    let header = BatchHeader::read(&batch(&[(1, None, None)])).expect("a header");
    // length, attributes, timestamp delta, offset delta, key, value, headers
    let good = [14u8, 0, 0, 0, 1, 1, 2, 0];
    let bad: [&[u8]; 9] = [
        &[],
        &[1],                                                                    // length -1
        &[100, 0, 0, 0, 1, 1, 0],                                                // length behind the end
        &[12, 0, 0, 0, 3, 1, 0],                                                 // key of -2 bytes
        &[12, 0, 0, 0, 20, 1, 0],                                                // key behind the end
        &[12, 0, 0, 0, 1, 1, 1],                                                 // -1 headers
        &[12, 0, 0, 0, 1, 1, 2],                                                 // one header, none there
        &[14, 0, 0, 0, 1, 1, 0, 0],                                              // a byte too many
        &[20, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1], // endless varlong
    ];
    assert!(outcome(&header, &good)[0].is_err(), "a header of one byte");
    assert!(outcome(&header, &[12, 0, 0, 0, 1, 1, 0])[0].is_ok());
    for bytes in bad {
        let outcome = outcome(&header, bytes);
        assert_eq!(outcome.len(), 1, "{bytes:?}");
        assert!(matches!(outcome[0], Err(RecordError::Record { index: 0, .. })), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_end_in_finitely_many_items(body: Vec<u8>, count: i32) {
        let header = BatchHeader::read(&batch(&[(1, None, None)])).expect("a header");
        let items = outcome(&BatchHeader { record_count: count, ..header }, &body);
        prop_assert!(items.len() <= body.len() + 1);
    }
}
