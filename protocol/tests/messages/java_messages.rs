//! Every message against Apache Kafka's own code: defaults, and random contents carried from each version into each.

use bytes::Bytes;
use millrace_protocol::frame::{
    RequestHeader, decode_request_header, decode_response_header, encode_request_header,
};
use millrace_protocol::wire::{Decoder, Encoder};
use millrace_protocol::{ApiKey, ErrorCode, Listener, Uuid};

use crate::java_oracle::ask;
use crate::support::generated::{CODECS, SCHEMA};
use crate::support::random::Random;
use crate::support::sample::{Content, encoding};
use crate::support::{hex, schema};

#[test]
fn error_codes_and_identifiers_are_kafkas() {
    let ids = [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0011_2233_4455_6677];
    let mut questions = vec!["errors".to_owned()];
    questions.extend(ids.iter().map(|id| format!("uuid {id:032x}")));
    let Some(answers) = ask("facts", &questions) else { return };
    let codes: Vec<String> = ErrorCode::ALL
        .iter()
        .map(|code| format!("{}={}={}", code.code(), code.name(), code.is_retriable()))
        .collect();
    assert_eq!(answers[0].as_deref(), Ok(codes.join(" ").as_str()));
    for (id, answer) in ids.iter().zip(&answers[1..]) {
        assert_eq!(answer.as_deref(), Ok(Uuid::from_u128(*id).to_string().as_str()));
    }
}

#[test]
fn apis_and_their_headers_are_kafkas() {
    let Some(answers) = ask("apis", &["apis".to_owned()]) else { return };
    let ours = ApiKey::all().map(|key| {
        let (oldest, latest_stable) = key.versions();
        let (_, latest) = key.valid_versions();
        let served = |listener| key.listeners().contains(&listener);
        let (broker, controller) = (served(Listener::Broker), served(Listener::Controller));
        let number = key as i16;
        let mut api = format!("{number}={key}={oldest}={latest_stable}={latest}={broker}={controller}");
        for version in oldest..=latest {
            api += &format!(
                "={}{}",
                request_header_version(key, version),
                response_header_version(key, version)
            );
        }
        api
    });
    assert_eq!(answers[0].as_deref(), Ok(ours.collect::<Vec<_>>().join(" ").as_str()));
}

/// Kafka counts the versions of headers: 2 is the flexible one of requests.
fn request_header_version(key: ApiKey, version: i16) -> u8 {
    let header =
        RequestHeader { api_key: key as i16, api_version: version, correlation_id: 1, client_id: None };
    let mut e = Encoder::new();
    encode_request_header(&header, &mut e).expect("a header");
    let bytes = e.into_bytes();
    let flexible = bytes.len() == 11;
    let mut d = Decoder::new(bytes);
    assert_eq!(decode_request_header(&mut d), Ok(header));
    assert_eq!(d.finish(), Ok(()));
    1 + u8::from(flexible)
}

/// 1 is the flexible one of responses.
fn response_header_version(key: ApiKey, version: i16) -> u8 {
    let mut d = Decoder::new(Bytes::from_static(&[0, 0, 0, 9, 0]));
    assert_eq!(decode_response_header(&mut d, key, version), Ok(9));
    u8::from(d.remaining() == 0)
}

#[test]
fn defaults_are_kafkas() {
    let cases: Vec<_> =
        CODECS.iter().flat_map(|codec| codec.versions().map(move |version| (codec, version))).collect();
    let questions: Vec<String> =
        cases.iter().map(|(codec, version)| format!("default {} {version}", codec.name)).collect();
    let Some(answers) = ask("defaults", &questions) else { return };
    for ((codec, version), answer) in cases.into_iter().zip(answers) {
        let ours = (codec.default)(version).map(|bytes| hex(&bytes));
        // Where a default cannot be written, Kafka fails in ways of its own.
        assert_eq!(ours.clone().ok(), answer.clone().ok(), "{} {version}: {ours:?}, {answer:?}", codec.name);
    }
}

#[test]
fn contents_carried_between_versions_are_kafkas() {
    let schema = schema::parse(SCHEMA);
    let mut cases = Vec::new();
    for codec in CODECS {
        for (from, to) in codec.versions().flat_map(|from| codec.versions().map(move |to| (from, to))) {
            let mut random = Random::new((from as u64) << 16 | to as u64);
            let contents = if from == to {
                vec![Content::Random, Content::Random, Content::Extreme, Content::Extreme]
            } else {
                // Defaults are what most older versions can carry.
                vec![Content::Default, Content::Random, Content::Extreme]
            };
            for content in contents {
                let bytes = encoding(&schema[codec.name], from, content, &mut random);
                cases.push((codec, from, to, Bytes::from(bytes)));
            }
        }
    }
    let question = |(codec, from, to, bytes): &(&crate::support::Codec, i16, i16, Bytes)| {
        format!("recode {} {from} {to} {}", codec.name, hex(bytes))
    };
    let questions: Vec<String> = cases.iter().map(question).collect();
    let Some(answers) = ask("recode", &questions) else { return };
    let mut carried = 0;
    for ((codec, from, to, bytes), answer) in cases.into_iter().zip(answers) {
        let ours = (codec.transcode)(bytes.clone(), from, to);
        let shown = ours.as_ref().map(|bytes| hex(bytes));
        let same = shown.as_ref().ok() == answer.as_ref().ok();
        assert!(same, "{} {from} to {to} of {}:\n{shown:?}\n{answer:?}", codec.name, hex(&bytes));
        carried += usize::from(ours.is_ok() && from != to);
    }
    assert!(carried > 2_000, "{carried} carried between versions");
}
