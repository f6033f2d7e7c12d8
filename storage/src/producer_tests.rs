//! Tests of the producer state against the rules of KIP-98.

use super::*;

fn batch(producer_epoch: i16, base_sequence: i32, records: i32, base_offset: i64) -> BatchHeader {
    crate::test_batches::header(7, producer_epoch, base_sequence, records, base_offset)
}

fn with(batches: &[BatchHeader]) -> Producers {
    let mut producers = Producers::default();
    for header in batches {
        assert_eq!(producers.check(header), ProducerCheck::New);
        producers.apply(header, i64::MAX);
    }
    producers
}

#[test]
fn the_last_five_batches_are_duplicates_and_older_ones_out_of_order() {
    let batches: Vec<_> = (0..7).map(|n| batch(0, n * 3, 3, i64::from(n) * 3)).collect();
    let producers = with(&batches);
    for (n, header) in batches.iter().enumerate() {
        let expected = match n {
            0 | 1 => ProducerCheck::OutOfOrder { last_sequence: 20 },
            _ => ProducerCheck::Duplicate {
                base_offset: header.base_offset,
                last_offset: header.base_offset + 2,
                timestamp: header.max_timestamp,
            },
        };
        assert_eq!(producers.check(header), expected, "batch {n}");
    }
    assert_eq!(producers.check(&batch(0, 21, 1, 0)), ProducerCheck::New);
    assert_eq!(producers.check(&batch(0, 22, 1, 0)), ProducerCheck::OutOfOrder { last_sequence: 20 });
    assert_eq!(producers.check(&batch(0, 18, 2, 0)), ProducerCheck::OutOfOrder { last_sequence: 20 });
}

#[test]
fn an_unknown_producer_may_begin_anywhere() {
    assert_eq!(Producers::default().check(&batch(3, 500, 2, 0)), ProducerCheck::New);
}

#[test]
fn producer_epochs_fence_and_begin_at_zero() {
    let mut producers = with(&[batch(4, 0, 10, 0)]);
    assert_eq!(producers.check(&batch(3, 10, 1, 10)), ProducerCheck::Fenced { producer_epoch: 4 });
    assert_eq!(producers.check(&batch(5, 10, 1, 10)), ProducerCheck::OutOfOrder { last_sequence: -1 });
    assert_eq!(producers.check(&batch(5, 0, 1, 10)), ProducerCheck::New);
    producers.apply(&batch(5, 0, 1, 10), i64::MAX);
    assert_eq!(producers.check(&batch(4, 0, 10, 0)), ProducerCheck::Fenced { producer_epoch: 5 });
    assert_eq!(producers.check(&batch(5, 1, 1, 11)), ProducerCheck::New);
}

#[test]
fn sequences_go_round() {
    let producers = with(&[batch(0, i32::MAX - 1, 2, 0)]);
    assert_eq!(producers.check(&batch(0, 0, 5, 2)), ProducerCheck::New);
    assert_eq!(producers.check(&batch(0, 1, 5, 2)), ProducerCheck::OutOfOrder { last_sequence: i32::MAX });
    let across = with(&[batch(0, i32::MAX, 3, 0)]);
    assert_eq!(across.check(&batch(0, 2, 1, 3)), ProducerCheck::New);
    assert!(matches!(
        across.check(&batch(0, i32::MAX, 3, 0)),
        ProducerCheck::Duplicate { base_offset: 0, .. }
    ));
}

#[test]
fn silent_producers_expire() {
    let header = batch(0, 0, 1, 0);
    let mut producers = with(&[header]);
    producers.expire(header.max_timestamp + 99, 100);
    assert!(!producers.is_empty());
    producers.expire(header.max_timestamp + 100, 100);
    assert!(producers.is_empty());
}

#[test]
fn a_snapshot_is_exact_as_of_any_unsettled_offset() {
    let mut headers: Vec<_> = (0..9).map(|n| batch(0, n * 2, 2, i64::from(n) * 2)).collect();
    headers.extend((0..4).map(|n| batch(1, n * 2, 2, 18 + i64::from(n) * 2)));
    for settled in 0..=13 {
        let settled_offset = settled * 2;
        let mut all = Producers::default();
        headers.iter().for_each(|header| all.apply(header, settled_offset));
        for end in settled..=13 {
            let mut exact = Producers::default();
            headers.iter().take(end as usize).for_each(|header| exact.apply(header, i64::MAX));
            assert_eq!(
                Producers::from_snapshot(all.to_snapshot(end * 2)),
                exact,
                "settled {settled}, end {end}"
            );
        }
    }
}
