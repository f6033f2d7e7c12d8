//! Tests of [`super`]: each way in which a producer's records can be wrong, and the code that answers it.

use super::super::header::{CONTROL, LOG_APPEND_TIME};
use super::super::patch::set_crc;
use super::super::{Builder, Producer};
use super::*;

const RULES: Rules = Rules {
    version: 13,
    max_batch_bytes: 1_000,
    timestamps: Some(TimestampRules { earliest_ms: 500, latest_ms: 1_500 }),
    keys_required: false,
};

fn builder(codec: Codec) -> Builder {
    let mut builder = Builder::new(codec).producer(Producer { id: 1, epoch: 0, base_sequence: 0 });
    builder.push(1_000, Some(b"k"), Some(b"v"), &[]);
    builder.push(1_001, None, Some(b"w"), &[]);
    builder
}

fn good() -> Bytes {
    builder(Codec::None).build()
}

/// A good batch with another header, and a CRC that fits.
fn with(change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let mut batch = good().to_vec();
    let mut header = BatchHeader::read(&batch).expect("a header");
    change(&mut header);
    batch[..61].copy_from_slice(&header.to_bytes());
    set_crc(&mut batch);
    batch.into()
}

fn refusal(bytes: impl Into<Bytes>) -> Refusal {
    one_batch(bytes.into(), &RULES).expect_err("refused")
}

#[test]
fn good_batches_pass_with_every_codec() {
    for codec in Codec::ALL {
        let batch = builder(codec).build();
        let (header, kept) = one_batch(batch.clone(), &RULES).expect("a good batch");
        assert_eq!((header.record_count, &kept), (2, &batch));
        assert_eq!(records(&kept, &RULES, 1_000), Ok(()));
    }
}

#[test]
fn one_whole_batch_is_wanted() {
    assert_eq!(refusal(Bytes::new()), Refusal::NoBatch);
    assert_eq!(refusal(good().slice(..good().len() - 1)), Refusal::NoBatch);
    assert_eq!(refusal([good(), good()].concat()), Refusal::MoreThanOneBatch);
    let and_a_cut_one = [good(), good().slice(..70)].concat();
    assert_eq!(one_batch(and_a_cut_one.into(), &RULES).map(|(_, batch)| batch), Ok(good()));
    assert_eq!(Refusal::NoBatch.error_code(), ErrorCode::InvalidRecord);
}

#[test]
fn headers_that_no_producer_may_send() {
    let cases: [(Bytes, ErrorCode); 13] = [
        (with(|header| header.base_offset = 1), ErrorCode::InvalidRecord),
        (with(|header| header.magic = 1), ErrorCode::InvalidRecord),
        (with(|header| header.magic = 0), ErrorCode::InvalidRecord),
        (with(|header| header.magic = 3), ErrorCode::CorruptMessage),
        (with(|header| header.batch_length = 48), ErrorCode::CorruptMessage),
        (with(|header| header.record_count = 3), ErrorCode::InvalidRecord),
        (with(|header| header.last_offset_delta = 2), ErrorCode::InvalidRecord),
        (with(|header| (header.record_count, header.last_offset_delta) = (0, -1)), ErrorCode::InvalidRecord),
        (
            with(|header| (header.record_count, header.last_offset_delta) = (i32::MIN, i32::MAX)),
            ErrorCode::InvalidRecord,
        ),
        (with(|header| header.attributes |= CONTROL), ErrorCode::InvalidRecord),
        (with(|header| header.base_sequence = -1), ErrorCode::InvalidRecord),
        (with(|header| header.attributes |= LOG_APPEND_TIME), ErrorCode::InvalidTimestamp),
        (with(|header| header.attributes |= 5), ErrorCode::UnsupportedCompressionType),
    ];
    for (at, (batch, code)) in cases.into_iter().enumerate() {
        assert_eq!(refusal(batch).error_code(), code, "case {at}");
    }
}

#[test]
fn crc_size_and_old_versions() {
    let mut corrupt = good().to_vec();
    *corrupt.last_mut().expect("bytes") ^= 1;
    assert_eq!(refusal(corrupt).error_code(), ErrorCode::CorruptMessage);
    let small = Rules { max_batch_bytes: 70, ..RULES };
    let refused = one_batch(good(), &small).expect_err("too large");
    assert_eq!(refused.error_code(), ErrorCode::MessageTooLarge);
    let old = Rules { version: 6, ..RULES };
    let refused = one_batch(builder(Codec::Zstd).build(), &old).expect_err("zstd");
    assert_eq!(refused, Refusal::ZstdTooEarly(6));
    assert!(one_batch(builder(Codec::Lz4).build(), &old).is_ok());
}

#[test]
fn timestamps_out_of_bounds() {
    assert_eq!(refusal(with(|header| header.max_timestamp = 1_501)), Refusal::Timestamp(1_501));
    let early = with(|header| header.base_timestamp = 100);
    let (_, batch) = one_batch(early, &RULES).expect("the header cannot tell");
    assert_eq!(records(&batch, &RULES, 1_000), Err(Refusal::Timestamp(100)));
    let own_time = Rules { timestamps: None, ..RULES };
    assert!(one_batch(with(|header| header.max_timestamp = i64::MAX), &own_time).is_ok());
    let none = with(|header| (header.base_timestamp, header.max_timestamp) = (-1, -1));
    assert!(one_batch(none, &RULES).is_ok(), "no timestamp is always allowed");
}

#[test]
fn records_that_are_wrong_inside() {
    let compacted = Rules { keys_required: true, ..RULES };
    assert_eq!(records(&good(), &compacted, 1_000), Err(Refusal::NoKey { index: 1 }));
    let too_many = with(|header| (header.record_count, header.last_offset_delta) = (3, 2));
    let (_, batch) = one_batch(too_many, &RULES).expect("the header cannot tell");
    let refused = records(&batch, &RULES, 1_000).expect_err("a record is missing");
    assert_eq!(refused.error_code(), ErrorCode::InvalidRecord);
    let (_, batch) = one_batch(builder(Codec::Gzip).build(), &RULES).expect("a good batch");
    assert!(matches!(records(&batch, &RULES, 5), Err(Refusal::Record(RecordError::DecompressLimit { .. }))));
}

#[test]
fn lengths_that_lie_are_found_without_a_look_at_the_records() {
    let check = |batch: &[u8]| {
        let header = BatchHeader::read(batch).expect("a header");
        lengths(&header, batch).map_err(|refusal| refusal.error_code())
    };
    assert_eq!(check(&good()), Ok(()));
    for count in [i32::MIN, -1, 0, 1, 3, i32::MAX] {
        let lying = with(|header| header.record_count = count);
        assert_eq!(check(&lying), Err(ErrorCode::InvalidRecord), "{count} records");
    }
    for length in [[0xff; 5], [0xfe, 0xff, 0xff, 0xff, 0x0f], [0x01, 0, 0, 0, 0], [0, 0, 0, 0, 0]] {
        let mut lying = good().to_vec();
        lying[HEADER_BYTES..HEADER_BYTES + 5].copy_from_slice(&length);
        assert_eq!(check(&lying), Err(ErrorCode::InvalidRecord), "{length:?}");
    }
}
