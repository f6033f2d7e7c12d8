//! Bytes of records: those that Kafka 4.4 writes, and what is refused.

use bytes::Bytes;
use protocol::messages::group_metadata_value::{GroupMetadataValue, MemberMetadata};
use protocol::messages::offset_commit_value::OffsetCommitValue;
use protocol::{Str, Uuid};

use super::super::{Record, RecordError};

fn bytes(hex: &str) -> Bytes {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex");
    digits.chunks(2).map(pair).collect()
}

#[track_caller]
fn check(record: &Record, key: &str, value: Option<&str>) {
    let (key, value) = (bytes(key), value.map(bytes));
    assert_eq!(record.encode().expect("it encodes"), (key.clone(), value.clone()));
    assert_eq!(Record::decode(Some(key), value).expect("it decodes").as_ref(), Some(record));
}

fn offset(value: Option<OffsetCommitValue>) -> Record {
    Record::Offset { group_id: "grp".into(), topic: "top".into(), partition: 258, value }
}

const OFFSET_KEY: &str = "0001 0003 677270 0003 746f70 00000102";

#[test]
fn an_offset_is_written_as_version_4_with_the_topic_id_tagged() {
    let value = OffsetCommitValue {
        offset: 42,
        leader_epoch: 7,
        metadata: "hi".into(),
        commit_timestamp: 0x0102,
        expire_timestamp: -1,
        topic_id: Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
    };
    let expected = "0004 000000000000002a 00000007 03 6869 0000000000000102
         01 00 10 00112233445566778899aabbccddeeff";
    check(&offset(Some(value)), OFFSET_KEY, Some(expected));
    let without_id = OffsetCommitValue { offset: 1, leader_epoch: -1, ..Default::default() };
    check(
        &offset(Some(without_id)),
        OFFSET_KEY,
        Some("0004 0000000000000001 ffffffff 01 0000000000000000 00"),
    );
}

#[test]
fn an_offset_with_a_retention_of_its_own_is_written_as_version_1() {
    let value =
        OffsetCommitValue { offset: 1, commit_timestamp: 2, expire_timestamp: 3, ..Default::default() };
    let expected = "0001 0000000000000001 0000 0000000000000002 0000000000000003";
    let value = OffsetCommitValue { leader_epoch: -1, ..value };
    check(&offset(Some(value)), OFFSET_KEY, Some(expected));
}

#[test]
fn a_tombstone_has_no_value() {
    check(&offset(None), OFFSET_KEY, None);
    check(&Record::GroupMetadata { group_id: "grp".into(), value: None }, "0002 0003 677270", None);
}

#[test]
fn group_metadata_is_written_as_version_3() {
    let member = MemberMetadata {
        member_id: "m".into(),
        group_instance_id: Some("i".into()),
        client_id: "c".into(),
        client_host: "/h".into(),
        rebalance_timeout: 5,
        session_timeout: 6,
        subscription: Bytes::from_static(b"s"),
        assignment: Bytes::from_static(b"as"),
    };
    let value = GroupMetadataValue {
        protocol_type: "consumer".into(),
        generation: 9,
        protocol: Some("range".into()),
        leader: Some("m".into()),
        current_state_timestamp: 4,
        members: vec![member],
    };
    let expected = "0003 0008 636f6e73756d6572 00000009 0005 72616e6765 0001 6d 0000000000000004 00000001
         0001 6d 0001 69 0001 63 0002 2f68 00000005 00000006 00000001 73 00000002 6173";
    check(
        &Record::GroupMetadata { group_id: "grp".into(), value: Some(value) },
        "0002 0003 677270",
        Some(expected),
    );
}

#[test]
fn an_empty_group_has_neither_protocol_nor_leader() {
    let value =
        GroupMetadataValue { protocol: None, leader: None, current_state_timestamp: 4, ..Default::default() };
    let expected = "0003 0000 00000000 ffff ffff 0000000000000004 00000000";
    check(
        &Record::GroupMetadata { group_id: "grp".into(), value: Some(value) },
        "0002 0003 677270",
        Some(expected),
    );
}

#[test]
fn old_versions_are_read() {
    // Version 0 of group metadata knows neither timestamps nor rebalance timeouts nor instance ids.
    let value = "0000 0008 636f6e73756d6572 00000009 0005 72616e6765 0001 6d 00000001
         0001 6d 0001 63 0002 2f68 00000006 00000001 73 00000002 6173";
    let record = Record::decode(Some(bytes("0002 0003 677270")), Some(bytes(value))).expect("it decodes");
    let Some(Record::GroupMetadata { value: Some(value), .. }) = record else { panic!("{record:?}") };
    assert_eq!((value.current_state_timestamp, value.members[0].rebalance_timeout), (-1, -1));
    assert_eq!(value.members[0].group_instance_id, None::<Str>);

    let value = "0000 0000000000000001 0000 0000000000000002";
    let record = Record::decode(Some(bytes("0000 0003 677270 0003 746f70 00000102")), Some(bytes(value)));
    let Ok(Some(Record::Offset { value: Some(value), .. })) = record else { panic!("{record:?}") };
    assert_eq!((value.offset, value.leader_epoch, value.expire_timestamp), (1, -1, -1));
}

#[test]
fn other_keys_are_left_alone_and_broken_ones_refused() {
    // Type 3: metadata of a group of the new consumer protocol.
    assert_eq!(Record::decode(Some(bytes("0003 0003 677270")), None).expect("readable"), None);
    assert!(matches!(Record::decode(None, None), Err(RecordError::NoKey)));
    assert!(matches!(Record::decode(Some(bytes("0002 0009 6772")), None), Err(RecordError::Malformed(_))));
    let version = Record::decode(Some(bytes("0002 0003 677270")), Some(bytes("0005 00")));
    assert!(matches!(version, Err(RecordError::ValueVersion { key_type: 2, version: 5 })));
}
