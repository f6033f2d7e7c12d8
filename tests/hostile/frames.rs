//! Frames: lengths that are negative, tiny, huge or over the limit, headers that are cut off, any key and version.

use anyhow::ensure;
use bytes::BufMut;
use millrace_tests::suite::{self, Cost, Outcome};

use crate::victim::{Noise, Reaction, Victim, framed};

/// The default of `socket.request.max.bytes`.
const LIMIT_BYTES: i32 = 100 * 1024 * 1024;

#[test]
fn lengths_that_no_frame_has() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        for length in [-1, i32::MIN, i32::MIN + 1, i32::MAX, LIMIT_BYTES + 1, 0, 1, 3, 7] {
            let mut bytes = length.to_be_bytes().to_vec();
            bytes.extend_from_slice(&[0; 64]);
            victim.expect_close(&bytes)?;
            victim.check(&format!("length {length}"))?;
        }
        Ok(())
    })
}

#[test]
fn headers_that_are_cut_off() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        // Metadata, version 12: a flexible header with client id and tagged fields.
        let whole = [0, 3, 0, 12, 0, 0, 0, 7, 0, 2, b'i', b'd', 0];
        for end in 0..whole.len() {
            victim.attack(&framed(&whole[..end]))?;
        }
        // A client id that is longer than the frame, or has a negative length other than -1, or is not UTF-8.
        for id in [&[0x7f, 0xff][..], &[0x80, 0x00], &[0xff, 0xfe], &[0, 2, 0xff, 0xff, 0]] {
            victim.attack(&framed(&[&whole[..8], id].concat()))?;
        }
        victim.check("cut off headers")
    })
}

/// Each key and version, known or not, with an empty body, with the beginning of one, and with noise.
#[test]
fn any_key_and_version() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        let mut noise = Noise(1);
        for key in -1..=100_i16 {
            for version in -1..=20_i16 {
                for body in [vec![], vec![0, 0, 0], noise.bytes(64)] {
                    let mut payload = Vec::new();
                    payload.put_i16(key);
                    payload.put_i16(version);
                    payload.put_i32(7);
                    payload.put_i16(-1);
                    payload.extend(body);
                    let reaction = victim.attack(&framed(&payload))?;
                    if let Reaction::Answered(answer) = &reaction {
                        ensure!(
                            answer.starts_with(&[0, 0, 0, 7]),
                            "odd answer to {key} v{version}: {answer:?}"
                        );
                    }
                    let known = matches!(key, 0..=3 | 8..=92);
                    ensure!(
                        known || reaction == Reaction::Closed,
                        "key {key} does not exist, but was answered"
                    );
                }
            }
            if key % 10 == 0 {
                victim.check(&format!("keys up to {key}"))?;
            }
        }
        victim.check("all keys")
    })
}

/// A client that is newer than the broker learns what it may use: ApiVersions of any version is answered in version 0.
#[test]
fn api_versions_of_the_future() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        for version in [50, i16::MAX] {
            let mut payload = vec![0, 18];
            payload.put_i16(version);
            payload.extend([0, 0, 0, 7, 0xff, 0xff, 0]);
            let answer = victim.ask(&framed(&payload))?;
            // Correlation id, UNSUPPORTED_VERSION, and a list that names ApiVersions' own range.
            ensure!(
                answer.starts_with(&[0, 0, 0, 7, 0, 35]),
                "odd answer to ApiVersions v{version}: {answer:?}"
            );
            ensure!(answer.windows(4).any(|four| four == [0, 18, 0, 0]), "ApiVersions is not in {answer:?}");
        }
        victim.check("ApiVersions of the future")
    })
}

/// Noise instead of frames, and noise in frames of the right length.
#[test]
fn noise() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        let mut noise = Noise(2);
        for size in 0..300 {
            let bytes = noise.bytes(size);
            victim.attack(&bytes)?;
            victim.attack(&framed(&bytes))?;
        }
        victim.attack(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        // The beginning of a TLS handshake.
        victim.attack(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])?;
        victim.check("noise")
    })
}
