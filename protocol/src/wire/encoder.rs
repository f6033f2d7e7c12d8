//! [`Encoder`]: writes the protocol's types into a chain of chunks; record batches join the chain uncopied.
//!
//! Invariant 1: `inserts` is ordered by position, and no insert lies inside a tagged field.

use bytes::{Bytes, BytesMut};

use super::{EncodeError, STR_MAX_BYTES, varint};
use crate::{Records, Uuid};

/// Record chunks shorter than this are copied: a chunk of its own costs an I/O vector and a reference count.
const CHAIN_FROM_BYTES: usize = 256;

/// Writes values one after the other.
#[derive(Debug, Default)]
pub struct Encoder {
    /// Everything but the chained chunks.
    buf: BytesMut,
    /// Chunks, and the position in `buf` that each comes before.
    inserts: Vec<(usize, Bytes)>,
    inserted_bytes: usize,
}

/// Where the content of a tagged field begins.
#[derive(Debug)]
#[must_use = "a tagged field is closed with `end_tag`"]
pub struct TagStart(usize);

impl Encoder {
    /// An empty encoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty encoder with room for `bytes` bytes beside the record batches.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { buf: BytesMut::with_capacity(bytes), ..Self::default() }
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.buf.len() + self.inserted_bytes
    }

    /// True when nothing is written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was written, as chunks in order.
    pub fn finish(self) -> Vec<Bytes> {
        let mut buf = self.buf.freeze();
        let mut chunks = Vec::with_capacity(2 * self.inserts.len() + 1);
        let mut taken = 0;
        for (position, insert) in self.inserts {
            let before = buf.split_to(position - taken);
            taken = position;
            chunks.extend((!before.is_empty()).then_some(before));
            chunks.push(insert);
        }
        chunks.extend((!buf.is_empty()).then_some(buf));
        chunks
    }

    /// What was written, in one piece: copies when there are chained chunks.
    pub fn into_bytes(self) -> Bytes {
        Records::from(self.finish()).into_bytes()
    }

    /// Overwrites the four bytes at `position` with `value`: lengths that are known when all else is written.
    ///
    /// # Panics
    /// Unless four bytes were written at `position` and no chunk was chained before them.
    pub fn patch_i32(&mut self, position: usize, value: i32) {
        assert!(self.inserts.first().is_none_or(|(first, _)| position + 4 <= *first));
        self.buf[position..position + 4].copy_from_slice(&value.to_be_bytes());
    }

    /// Bytes as they are, without a length.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// A boolean.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.raw(&[value.into()]);
    }

    /// A signed byte.
    #[inline]
    pub fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    /// A signed 16-bit number.
    #[inline]
    pub fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned 16-bit number.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    /// A signed 32-bit number.
    #[inline]
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned 32-bit number.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// A signed 64-bit number.
    #[inline]
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// A 64-bit floating-point number.
    #[inline]
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_be_bytes());
    }

    /// A 16-byte identifier.
    #[inline]
    pub fn uuid(&mut self, value: Uuid) {
        self.raw(value.as_bytes());
    }

    /// An unsigned varint.
    #[inline]
    pub fn uvarint(&mut self, value: u32) {
        let (bytes, len) = varint::encode_u64(value.into());
        self.raw(&bytes[..len]);
    }

    /// A length of the flexible encoding, or the `i32` of the other.
    fn long_len(&mut self, len: Option<usize>, flexible: bool) -> Result<(), EncodeError> {
        let limit = i32::MAX as usize;
        if let Some(length) = len.filter(|&len| len > limit) {
            return Err(EncodeError::TooLong { length, limit });
        }
        if flexible {
            self.uvarint(len.map_or(0, |len| len as u32 + 1));
        } else {
            self.i32(len.map_or(-1, |len| len as i32));
        }
        Ok(())
    }

    /// Text or null.
    #[inline]
    pub fn nullable_str(&mut self, text: Option<&str>, flexible: bool) -> Result<(), EncodeError> {
        let len = text.map(str::len);
        if let Some(length) = len.filter(|&len| len > STR_MAX_BYTES) {
            return Err(EncodeError::TooLong { length, limit: STR_MAX_BYTES });
        }
        if flexible {
            self.uvarint(len.map_or(0, |len| len as u32 + 1));
        } else {
            self.i16(len.map_or(-1, |len| len as i16));
        }
        self.raw(text.unwrap_or_default().as_bytes());
        Ok(())
    }

    /// Text.
    #[inline]
    pub fn str(&mut self, text: &str, flexible: bool) -> Result<(), EncodeError> {
        self.nullable_str(Some(text), flexible)
    }

    /// Bytes or null.
    #[inline]
    pub fn nullable_bytes(&mut self, bytes: Option<&Bytes>, flexible: bool) -> Result<(), EncodeError> {
        self.long_len(bytes.map(Bytes::len), flexible)?;
        self.raw(bytes.map(Bytes::as_ref).unwrap_or_default());
        Ok(())
    }

    /// Bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &Bytes, flexible: bool) -> Result<(), EncodeError> {
        self.nullable_bytes(Some(bytes), flexible)
    }

    /// Record batches or null, chained without copying.
    pub fn nullable_records(&mut self, records: Option<&Records>, flexible: bool) -> Result<(), EncodeError> {
        self.long_len(records.map(Records::len), flexible)?;
        for chunk in records.iter().flat_map(|records| records.chunks()) {
            if chunk.len() < CHAIN_FROM_BYTES {
                self.raw(chunk);
            } else {
                self.inserts.push((self.buf.len(), chunk.clone()));
                self.inserted_bytes += chunk.len();
            }
        }
        Ok(())
    }

    /// The element count of an array, or null.
    #[inline]
    pub fn nullable_array_len(&mut self, len: Option<usize>, flexible: bool) -> Result<(), EncodeError> {
        self.long_len(len, flexible)
    }

    /// The element count of an array.
    #[inline]
    pub fn array_len(&mut self, len: usize, flexible: bool) -> Result<(), EncodeError> {
        self.long_len(Some(len), flexible)
    }

    /// Whether a nullable structure follows.
    #[inline]
    pub fn present(&mut self, present: bool) {
        self.i8(if present { 1 } else { -1 });
    }

    /// Whether a nullable structure follows inside a tagged field.
    #[inline]
    pub fn present_tagged(&mut self, present: bool) {
        self.uvarint(present.into());
    }

    /// Begins tagged field `number`; its content follows.
    pub fn begin_tag(&mut self, number: u32) -> TagStart {
        self.uvarint(number);
        TagStart(self.buf.len())
    }

    /// Ends a tagged field: its size goes in front of its content.
    pub fn end_tag(&mut self, start: TagStart) {
        let TagStart(start) = start;
        assert!(self.inserts.last().is_none_or(|(last, _)| *last <= start), "records in a tagged field");
        let end = self.buf.len();
        let (size, size_len) = varint::encode_u64((end - start) as u64);
        self.raw(&size[..size_len]);
        self.buf[start..].rotate_right(size_len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_chained_in_order_and_not_copied() {
        let long = Bytes::from(vec![7; CHAIN_FROM_BYTES]);
        let short = Bytes::from_static(b"short");
        let mut e = Encoder::new();
        e.i32(0);
        e.nullable_records(Some(&Records::from(vec![long.clone(), short, long.clone()])), true)
            .expect("fits");
        e.i8(1);
        e.patch_i32(0, 9);
        let len = e.len();
        let chunks = e.finish();
        assert_eq!(chunks.len(), 5);
        assert_eq!(chunks[1].as_ptr(), long.as_ptr());
        assert_eq!(chunks[3].as_ptr(), long.as_ptr());
        assert_eq!(chunks[0], [0, 0, 0, 9, 0x86, 4].as_slice());
        assert_eq!(chunks[2], "short");
        assert_eq!(chunks[4], [1].as_slice());
        assert_eq!(len, chunks.iter().map(Bytes::len).sum::<usize>());
    }

    #[test]
    fn tagged_fields_get_their_size_in_front() {
        let mut e = Encoder::new();
        let tag = e.begin_tag(3);
        e.raw(&[9; 200]);
        e.end_tag(tag);
        let bytes = e.into_bytes();
        assert_eq!(bytes[..4], [3, 0xc8, 1, 9]);
        assert_eq!(bytes.len(), 203);
    }

    #[test]
    fn text_over_the_limit_is_an_error() {
        let text = "a".repeat(STR_MAX_BYTES + 1);
        let refused = Err(EncodeError::TooLong { length: STR_MAX_BYTES + 1, limit: STR_MAX_BYTES });
        assert_eq!(Encoder::new().str(&text, true), refused);
        assert_eq!(Encoder::new().str(&text, false), refused);
        assert_eq!(Encoder::new().str(&text[1..], false), Ok(()));
    }
}
