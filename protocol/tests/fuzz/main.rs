//! Every family of decoders against mutated valid inputs, for a bounded time: it comes back, does not panic, and stays
//! within its memory. `protocol/fuzz` feeds the same functions under coverage guidance.
//!
//! `MILLRACE_FUZZ_MS` is the time for each family (2 000 by default), `MILLRACE_FUZZ_SEED` where the random numbers
//! begin (1 by default): the same seed tries the same inputs in the same order.

mod counting_allocator;
#[path = "../support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use bytes::Bytes;
use support::families::{self, FAMILIES, Family, Samples};
use support::random::Random;
use support::{Failure, hex};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

fn fuzz(name: &str) {
    let family = FAMILIES.iter().find(|family| family.name == name).expect("a family");
    let samples = Samples::new();
    let mut random = Random::new(setting("MILLRACE_FUZZ_SEED", 1));
    let until = Instant::now() + Duration::from_millis(setting("MILLRACE_FUZZ_MS", 2_000));
    let mut inputs = 0;
    while Instant::now() < until {
        let seed = (family.seed)(&samples, &mut random);
        check(family, &seed);
        let other = (family.seed)(&samples, &mut random);
        for _ in 0..20 {
            check(family, &mutated(&seed, &other, &mut random));
            inputs += 1;
        }
    }
    eprintln!("{name}: {inputs} mutated inputs");
    assert!(inputs > 1_000, "only {inputs} inputs: too slow to mean anything");
}

fn check(family: &Family, input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    let (outcome, peak) =
        counting_allocator::peak_of(|| catch_unwind(AssertUnwindSafe(|| (family.run)(bytes))));
    assert!(outcome.is_ok(), "{}: panic on {}", family.name, hex(input));
    let allowed = (family.memory)(input.len());
    assert!(peak <= allowed, "{}: {peak} bytes, {allowed} allowed, on {}", family.name, hex(input));
}

/// `seed` with one to four things wrong.
fn mutated(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(7) {
            // Cut off.
            0 => bytes.truncate(at),
            // One bit.
            1 => {
                let bit = 1 << random.below(8);
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= bit);
            }
            // Any byte.
            2 => {
                let value = random.u64() as u8;
                bytes.get_mut(at).into_iter().for_each(|byte| *byte = value);
            }
            // A lying length, in each of the ways that lengths are written.
            3 | 4 => {
                let lies: [&[u8]; 10] = [
                    &[0x7f, 0xff, 0xff, 0xff],
                    &[0xff, 0xff, 0xff, 0xff],
                    &[0x80, 0x00, 0x00, 0x00],
                    &[0x00, 0x01, 0x00, 0x00],
                    &[0x7f, 0xff],
                    &[0xff, 0xfe],
                    &[0xff, 0xff, 0xff, 0xff, 0x0f],
                    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                    &[0x80, 0x80, 0x04],
                    &[0x00],
                ];
                let lie = random.pick(&lies);
                let end = (at + lie.len()).min(bytes.len());
                bytes.splice(at..end, lie.iter().copied());
            }
            // A piece of another input.
            5 if !other.is_empty() => {
                let from = random.below(other.len());
                let piece = &other[from..(from + 1 + random.below(60)).min(other.len())];
                let end = if random.one_in(2) { at } else { (at + piece.len()).min(bytes.len()) };
                bytes.splice(at..end, piece.iter().copied());
            }
            // A piece of itself, again.
            _ => {
                let piece = bytes[at..(at + 1 + random.below(60)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece.repeat(1 + random.below(8)));
            }
        }
    }
    bytes
}

#[test]
fn messages() {
    fuzz("messages");
}

/// Whatever a message was read from, it can be written, and what is then read is the same.
#[test]
fn messages_that_are_read_can_be_written() {
    let samples = Samples::new();
    let mut random = Random::new(setting("MILLRACE_FUZZ_SEED", 1));
    let until = Instant::now() + Duration::from_millis(setting("MILLRACE_FUZZ_MS", 2_000));
    let mut read = 0;
    while Instant::now() < until {
        let seed = families::message_seed(&samples, &mut random);
        let other = families::message_seed(&samples, &mut random);
        let input = mutated(&seed, &other, &mut random);
        let Some((codec, version, bytes)) = families::chosen(input.clone().into()) else { continue };
        let written = match (codec.transcode)(bytes, version, version) {
            Ok(written) => written,
            Err(Failure::Decode(_)) => continue,
            Err(Failure::Encode(error)) => panic!("{}: {error} after {}", codec.name, hex(&input)),
        };
        let again = (codec.transcode)(written.clone(), version, version);
        assert_eq!(again, Ok(written), "{} after {}", codec.name, hex(&input));
        read += 1;
    }
    assert!(read > 100, "only {read} inputs were read");
}

#[test]
fn frames() {
    fuzz("frames");
}

#[test]
fn batches() {
    fuzz("batches");
}

#[test]
fn records() {
    fuzz("records");
}

#[test]
fn decompression() {
    fuzz("decompression");
}
