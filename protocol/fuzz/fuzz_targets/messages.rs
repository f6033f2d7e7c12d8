//! Feeds `families::messages` with bytes that reach new code.
#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|input: &[u8]| support::families::messages(bytes::Bytes::copy_from_slice(input)));
