//! Every message at every version against encodings that are made from the schema alone.

use bytes::Bytes;

use crate::support::generated::{CODECS, SCHEMA};
use crate::support::random::Random;
use crate::support::sample::{Content, encoding};
use crate::support::{Failure, hex, schema};
use millrace_protocol::wire::DecodeError;

#[test]
fn valid_encodings_come_back_as_they_were() {
    let schema = schema::parse(SCHEMA);
    assert_eq!(CODECS.len(), schema.len());
    for codec in CODECS {
        for version in codec.versions() {
            let mut random = Random::new(version as u64);
            for content in
                [Content::Default].into_iter().chain([Content::Random, Content::Extreme].repeat(10))
            {
                let bytes = Bytes::from(encoding(&schema[codec.name], version, content, &mut random));
                let recoded = (codec.transcode)(bytes.clone(), version, version);
                assert_eq!(recoded.as_ref(), Ok(&bytes), "{} {version}: {}", codec.name, hex(&bytes));
            }
        }
    }
}

#[test]
fn defaults_are_the_schemas() {
    let schema = schema::parse(SCHEMA);
    for codec in CODECS {
        for version in codec.versions() {
            let expected = encoding(&schema[codec.name], version, Content::Default, &mut Random::new(0));
            // Records are null by default, which some requests may not send.
            let Ok(bytes) = (codec.default)(version) else {
                assert_eq!(codec.name, "FetchSnapshotResponse");
                continue;
            };
            assert_eq!(bytes, expected, "{} {version}", codec.name);
        }
    }
}

#[test]
fn cut_encodings_are_errors_and_versions_that_do_not_exist_too() {
    let schema = schema::parse(SCHEMA);
    for codec in CODECS {
        for version in codec.versions() {
            let mut random = Random::new(version as u64);
            let bytes = Bytes::from(encoding(&schema[codec.name], version, Content::Random, &mut random));
            for len in 0..bytes.len() {
                let cut = (codec.transcode)(bytes.slice(..len), version, version);
                assert!(matches!(cut, Err(Failure::Decode(_))), "{} {version}, {len} bytes", codec.name);
            }
        }
        for version in [i16::MIN, codec.min - 1, codec.max + 1, i16::MAX] {
            let refused = (codec.decode)(Bytes::new(), version);
            assert_eq!(refused, Err(DecodeError::UnsupportedVersion { message: codec.name, version }));
        }
    }
}
