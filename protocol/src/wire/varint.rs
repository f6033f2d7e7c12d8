//! Variable-length integers: seven bits a byte, low bits first, zigzag for signed ones.
//!
//! Reading is total: `None` for bytes that end early or run on for longer than the type allows.

/// Longest encoding of a 32-bit value, in bytes.
pub const MAX_BYTES_32: usize = 5;
/// Longest encoding of a 64-bit value, in bytes.
pub const MAX_BYTES_64: usize = 10;

/// An unsigned 32-bit varint at the start of `bytes`, and its length in bytes.
///
/// Like Kafka, drops the bits of a fifth byte that do not fit 32 bits.
#[inline]
pub fn read_u32(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut value = 0u32;
    for (place, &byte) in bytes.iter().take(MAX_BYTES_32).enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some((value, place + 1));
        }
    }
    None
}

/// An unsigned 64-bit varint at the start of `bytes`, and its length in bytes.
#[inline]
pub fn read_u64(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (place, &byte) in bytes.iter().take(MAX_BYTES_64).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some((value, place + 1));
        }
    }
    None
}

/// A zigzag 32-bit varint at the start of `bytes`, and its length in bytes.
#[inline]
pub fn read_i32(bytes: &[u8]) -> Option<(i32, usize)> {
    let (raw, len) = read_u32(bytes)?;
    Some(((raw >> 1) as i32 ^ -((raw & 1) as i32), len))
}

/// A zigzag 64-bit varint ("varlong") at the start of `bytes`, and its length in bytes.
#[inline]
pub fn read_i64(bytes: &[u8]) -> Option<(i64, usize)> {
    let (raw, len) = read_u64(bytes)?;
    Some(((raw >> 1) as i64 ^ -((raw & 1) as i64), len))
}

/// The bytes of `value` as an unsigned varint, and how many of them count.
#[inline]
pub fn encode_u64(mut value: u64) -> ([u8; MAX_BYTES_64], usize) {
    let mut bytes = [0; MAX_BYTES_64];
    let mut len = 0;
    for byte in &mut bytes {
        len += 1;
        if value < 0x80 {
            *byte = value as u8;
            break;
        }
        *byte = value as u8 | 0x80;
        value >>= 7;
    }
    (bytes, len)
}

/// `value` with its sign moved to the lowest bit, as a zigzag varint holds it.
#[inline]
pub fn zigzag_i32(value: i32) -> u32 {
    (value << 1 ^ value >> 31) as u32
}

/// `value` with its sign moved to the lowest bit, as a zigzag varlong holds it.
#[inline]
pub fn zigzag_i64(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// How many bytes `value` takes as an unsigned varint.
#[inline]
pub fn len_u64(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(value: u64) -> Vec<u8> {
        let (bytes, len) = encode_u64(value);
        bytes[..len].to_vec()
    }

    #[test]
    fn known_encodings() {
        for (value, bytes) in [(0, vec![0]), (127, vec![0x7f]), (128, vec![0x80, 1]), (300, vec![0xac, 2])] {
            assert_eq!(encoded(value), bytes);
            assert_eq!(read_u32(&bytes), Some((value as u32, bytes.len())));
        }
        assert_eq!(encoded(u64::MAX).len(), MAX_BYTES_64);
        assert_eq!(read_i32(&[1]), Some((-1, 1)));
        assert_eq!(read_i64(&[3]), Some((-2, 1)));
    }

    #[test]
    fn endless_and_cut_varints_are_refused() {
        assert_eq!(read_u32(&[]), None);
        assert_eq!(read_u32(&[0x80; 4]), None);
        assert_eq!(read_u32(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]), None);
        assert_eq!(read_u64(&[0xff; 11]), None);
        assert_eq!(read_u64(&[0xff; 9]), None);
    }

    proptest! {
        #[test]
        fn values_round_trip(value: u64) {
            let bytes = encoded(value);
            prop_assert_eq!(bytes.len(), len_u64(value));
            prop_assert_eq!(read_u64(&bytes), Some((value, bytes.len())));
            let bytes = encoded(zigzag_i64(value as i64));
            prop_assert_eq!(read_i64(&bytes), Some((value as i64, bytes.len())));
            let bytes = encoded(zigzag_i32(value as i32).into());
            prop_assert_eq!(read_i32(&bytes), Some((value as i32, bytes.len())));
        }
    }
}
