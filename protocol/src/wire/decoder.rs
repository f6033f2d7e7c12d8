//! [`Decoder`]: reads the protocol's types from the bytes of one frame, without copying text or bytes.
//!
//! Invariants:
//! 1. `position` never passes the end of the bytes; no input panics.
//! 2. An array is allocated only when the bytes that are left could hold that many elements, and only within the
//!    allocation limit, so what a message takes in memory is bounded before it is taken.

use bytes::Bytes;

use super::{DecodeError, STR_MAX_BYTES, varint};
use crate::{Records, Str, Uuid};

/// Memory a message may take per byte of its frame: an array of one-letter names, the widest that means something,
/// needs 48 bytes for each three.
const ALLOCATION_PER_FRAME_BYTE: usize = 16;
/// Memory any message may take, so that short frames need no thought.
const ALLOCATION_FLOOR_BYTES: usize = 64 * 1024;

/// Reads values one after the other from the bytes of one frame.
#[derive(Debug)]
pub struct Decoder {
    bytes: Bytes,
    position: usize,
    allocated_bytes: usize,
    allocation_limit_bytes: usize,
}

/// The head of a tagged field: its number, and where its content must end.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    /// The number that names the field.
    pub number: u32,
    end: usize,
}

impl Decoder {
    /// Reads `bytes`; arrays may take 16 bytes of memory per byte of `bytes`, plus 64 KiB.
    pub fn new(bytes: Bytes) -> Self {
        let limit =
            bytes.len().saturating_mul(ALLOCATION_PER_FRAME_BYTE).saturating_add(ALLOCATION_FLOOR_BYTES);
        Self::with_allocation_limit(bytes, limit)
    }

    /// Reads `bytes`; arrays may take `limit_bytes` of memory in total.
    pub fn with_allocation_limit(bytes: Bytes, limit_bytes: usize) -> Self {
        Self { bytes, position: 0, allocated_bytes: 0, allocation_limit_bytes: limit_bytes }
    }

    /// Memory that the arrays read so far take, in bytes, beside the frame itself.
    pub fn allocated_bytes(&self) -> usize {
        self.allocated_bytes
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The bytes not read yet, which are then read.
    pub fn take_remaining(&mut self) -> Bytes {
        let rest = self.bytes.slice(self.position..);
        self.position = self.bytes.len();
        rest
    }

    /// An error unless everything is read.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(DecodeError::TrailingBytes { position: self.position, left }),
        }
    }

    #[inline]
    fn tail(&self) -> &[u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    #[cold]
    fn unexpected_end(&self, wanted: usize) -> DecodeError {
        DecodeError::UnexpectedEnd { position: self.position, wanted, left: self.remaining() }
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.tail().first_chunk::<N>() {
            Some(chunk) => {
                let chunk = *chunk;
                self.position += N;
                Ok(chunk)
            }
            None => Err(self.unexpected_end(N)),
        }
    }

    /// `len` bytes, shared with the frame.
    #[inline]
    pub fn slice(&mut self, len: usize) -> Result<Bytes, DecodeError> {
        if len > self.remaining() {
            return Err(self.unexpected_end(len));
        }
        let slice = self.bytes.slice(self.position..self.position + len);
        self.position += len;
        Ok(slice)
    }

    /// A boolean: any byte but zero is true.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.take::<1>()? != [0])
    }

    /// A signed byte.
    #[inline]
    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        self.take().map(i8::from_be_bytes)
    }

    /// A signed 16-bit number.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        self.take().map(i16::from_be_bytes)
    }

    /// An unsigned 16-bit number.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.take().map(u16::from_be_bytes)
    }

    /// A signed 32-bit number.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.take().map(i32::from_be_bytes)
    }

    /// An unsigned 32-bit number.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.take().map(u32::from_be_bytes)
    }

    /// A signed 64-bit number.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.take().map(i64::from_be_bytes)
    }

    /// A 64-bit floating-point number.
    #[inline]
    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        self.take().map(f64::from_be_bytes)
    }

    /// A 16-byte identifier.
    #[inline]
    pub fn uuid(&mut self) -> Result<Uuid, DecodeError> {
        self.take().map(Uuid::from_bytes)
    }

    /// An unsigned varint of at most 32 bits.
    #[inline]
    pub fn uvarint(&mut self) -> Result<u32, DecodeError> {
        match varint::read_u32(self.tail()) {
            Some((value, len)) => {
                self.position += len;
                Ok(value)
            }
            None if self.remaining() < varint::MAX_BYTES_32 => Err(self.unexpected_end(self.remaining() + 1)),
            None => Err(DecodeError::VarintTooLong { position: self.position }),
        }
    }

    /// A length of the flexible encoding: one higher than the value, 0 for null.
    #[inline]
    fn compact_len(&mut self) -> Result<Option<usize>, DecodeError> {
        Ok(self.uvarint()?.checked_sub(1).map(|len| len as usize))
    }

    #[inline]
    fn len_from(&self, len: i64) -> Result<Option<usize>, DecodeError> {
        match usize::try_from(len) {
            Ok(len) => Ok(Some(len)),
            Err(_) if len == -1 => Ok(None),
            Err(_) => Err(DecodeError::InvalidLength { position: self.position, length: len }),
        }
    }

    /// Length of text: an `i16`, or compact.
    #[inline]
    fn str_len(&mut self, flexible: bool) -> Result<Option<usize>, DecodeError> {
        if !flexible {
            let len = self.i16()?;
            return self.len_from(len.into());
        }
        match self.compact_len()? {
            Some(len) if len > STR_MAX_BYTES => {
                Err(DecodeError::InvalidLength { position: self.position, length: len as i64 })
            }
            len => Ok(len),
        }
    }

    /// Length of bytes or an array: an `i32`, or compact.
    #[inline]
    fn long_len(&mut self, flexible: bool) -> Result<Option<usize>, DecodeError> {
        if flexible {
            return self.compact_len();
        }
        let len = self.i32()?;
        self.len_from(len.into())
    }

    #[inline]
    fn not_null<T>(&self, value: Option<T>) -> Result<T, DecodeError> {
        value.ok_or(DecodeError::UnexpectedNull { position: self.position })
    }

    /// Text or null.
    #[inline]
    pub fn nullable_str(&mut self, flexible: bool) -> Result<Option<Str>, DecodeError> {
        let Some(len) = self.str_len(flexible)? else { return Ok(None) };
        let position = self.position;
        let text = Str::from_utf8(self.slice(len)?);
        text.map(Some).ok_or(DecodeError::InvalidUtf8 { position })
    }

    /// Text.
    #[inline]
    pub fn str(&mut self, flexible: bool) -> Result<Str, DecodeError> {
        let text = self.nullable_str(flexible)?;
        self.not_null(text)
    }

    /// Bytes or null, shared with the frame.
    #[inline]
    pub fn nullable_bytes(&mut self, flexible: bool) -> Result<Option<Bytes>, DecodeError> {
        match self.long_len(flexible)? {
            Some(len) => self.slice(len).map(Some),
            None => Ok(None),
        }
    }

    /// Bytes, shared with the frame.
    #[inline]
    pub fn bytes(&mut self, flexible: bool) -> Result<Bytes, DecodeError> {
        let bytes = self.nullable_bytes(flexible)?;
        self.not_null(bytes)
    }

    /// Record batches or null, shared with the frame.
    #[inline]
    pub fn nullable_records(&mut self, flexible: bool) -> Result<Option<Records>, DecodeError> {
        Ok(self.nullable_bytes(flexible)?.map(Records::from))
    }

    /// Record batches, shared with the frame.
    #[inline]
    pub fn records(&mut self, flexible: bool) -> Result<Records, DecodeError> {
        self.bytes(flexible).map(Records::from)
    }

    /// An array or null. Each element takes at least `element_bytes_min` bytes (1 or more) of the frame.
    pub fn nullable_array<T>(
        &mut self,
        flexible: bool,
        version: i16,
        element_bytes_min: usize,
        element: fn(&mut Self, i16) -> Result<T, DecodeError>,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(count) = self.long_len(flexible)? else { return Ok(None) };
        self.charge(count, element_bytes_min, size_of::<T>())?;
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(element(self, version)?);
        }
        Ok(Some(elements))
    }

    /// An array. Each element takes at least `element_bytes_min` bytes (1 or more) of the frame.
    pub fn array<T>(
        &mut self,
        flexible: bool,
        version: i16,
        element_bytes_min: usize,
        element: fn(&mut Self, i16) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let elements = self.nullable_array(flexible, version, element_bytes_min, element)?;
        self.not_null(elements)
    }

    /// An array of texts, or null.
    pub fn nullable_str_array(&mut self, flexible: bool) -> Result<Option<Vec<Str>>, DecodeError> {
        match flexible {
            true => self.nullable_array(true, 0, 1, |d, _| d.str(true)),
            false => self.nullable_array(false, 0, 2, |d, _| d.str(false)),
        }
    }

    /// An array of texts.
    pub fn str_array(&mut self, flexible: bool) -> Result<Vec<Str>, DecodeError> {
        let texts = self.nullable_str_array(flexible)?;
        self.not_null(texts)
    }

    /// Refuses an array that the frame cannot hold (invariant 2), else counts its memory.
    fn charge(
        &mut self,
        count: usize,
        wire_bytes_min: usize,
        memory_bytes: usize,
    ) -> Result<(), DecodeError> {
        assert!(wire_bytes_min > 0, "an element that takes no bytes cannot be bounded");
        let left = self.remaining();
        if count > left / wire_bytes_min {
            return Err(DecodeError::TooManyElements { position: self.position, count, left });
        }
        let wanted = count.saturating_mul(memory_bytes);
        let left = self.allocation_limit_bytes - self.allocated_bytes;
        if wanted > left {
            return Err(DecodeError::AllocationLimit { position: self.position, wanted, left });
        }
        self.allocated_bytes += wanted;
        Ok(())
    }

    /// Whether a nullable structure follows; null is a negative byte.
    #[inline]
    pub fn is_present(&mut self) -> Result<bool, DecodeError> {
        Ok(self.i8()? >= 0)
    }

    /// Whether a nullable structure follows inside a tagged field; null is a varint of zero there.
    #[inline]
    pub fn is_present_tagged(&mut self) -> Result<bool, DecodeError> {
        Ok(self.uvarint()? != 0)
    }

    /// The number of tagged fields that follow.
    #[inline]
    pub fn tag_count(&mut self) -> Result<u32, DecodeError> {
        let count = self.uvarint()?;
        let left = self.remaining();
        // A tagged field takes two bytes at least: its number and its size.
        if count as usize > left / 2 {
            return Err(DecodeError::TooManyElements {
                position: self.position,
                count: count as usize,
                left,
            });
        }
        Ok(count)
    }

    /// The head of the next tagged field.
    pub fn tag(&mut self) -> Result<Tag, DecodeError> {
        let number = self.uvarint()?;
        let size = self.uvarint()? as usize;
        if size > self.remaining() {
            return Err(self.unexpected_end(size));
        }
        Ok(Tag { number, end: self.position + size })
    }

    /// Skips the content of a tagged field that the message does not know.
    pub fn skip_tag(&mut self, tag: Tag) {
        self.position = tag.end.clamp(self.position, self.bytes.len());
    }

    /// An error unless the content of a tagged field ended where it said.
    pub fn end_tag(&mut self, tag: Tag) -> Result<(), DecodeError> {
        if self.position == tag.end {
            return Ok(());
        }
        Err(DecodeError::TagSize { position: self.position, end: tag.end })
    }

    /// Skips the tagged fields of a structure that knows none.
    #[inline]
    pub fn skip_tags(&mut self) -> Result<(), DecodeError> {
        for _ in 0..self.tag_count()? {
            let tag = self.tag()?;
            self.skip_tag(tag);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder(bytes: &[u8]) -> Decoder {
        Decoder::new(Bytes::copy_from_slice(bytes))
    }

    fn i32s(d: &mut Decoder, flexible: bool) -> Result<Option<Vec<i32>>, DecodeError> {
        d.nullable_array(flexible, 0, 4, |d, _| d.i32())
    }

    #[test]
    fn lengths_and_nulls_of_both_encodings() {
        assert_eq!(decoder(&[0, 2, b'h', b'i']).str(false).expect("text"), "hi");
        assert_eq!(decoder(&[3, b'h', b'i']).str(true).expect("text"), "hi");
        assert_eq!(decoder(&[0xff, 0xff]).nullable_str(false), Ok(None));
        assert_eq!(decoder(&[0]).nullable_str(true), Ok(None));
        assert_eq!(decoder(&[0]).str(true), Err(DecodeError::UnexpectedNull { position: 1 }));
        assert_eq!(decoder(&[0, 0, 0, 1, 0, 0, 0, 7]).array(false, 0, 4, |d, _| d.i32()), Ok(vec![7]));
        assert_eq!(i32s(&mut decoder(&[0xff; 4]), false), Ok(None));
        assert_eq!(i32s(&mut decoder(&[1]), true), Ok(Some(Vec::new())));
    }

    #[test]
    fn lying_lengths_are_refused_before_anything_is_allocated() {
        let huge = [0x7f, 0xff, 0xff, 0xff];
        assert!(matches!(i32s(&mut decoder(&huge), false), Err(DecodeError::TooManyElements { .. })));
        let huge = [0xff, 0xff, 0xff, 0xff, 0x0f];
        assert!(matches!(i32s(&mut decoder(&huge), true), Err(DecodeError::TooManyElements { .. })));
        assert!(matches!(decoder(&huge).bytes(true), Err(DecodeError::UnexpectedEnd { .. })));
        assert!(matches!(decoder(&huge).str(true), Err(DecodeError::InvalidLength { .. })));
        assert!(matches!(decoder(&huge).skip_tags(), Err(DecodeError::TooManyElements { .. })));
        let minus_two = [0xff, 0xff, 0xff, 0xfe];
        assert_eq!(
            i32s(&mut decoder(&minus_two), false),
            Err(DecodeError::InvalidLength { position: 4, length: -2 })
        );
        assert_eq!(decoder(&[1, 0xff]).nullable_str(true), decoder(&[1]).nullable_str(true));
        assert_eq!(decoder(&[2, 0xff]).nullable_str(true), Err(DecodeError::InvalidUtf8 { position: 1 }));
    }

    #[test]
    fn arrays_are_charged_against_the_allocation_limit() {
        let mut bytes = vec![0, 0, 1, 0];
        bytes.resize(4 + 256, 0);
        let mut d = Decoder::with_allocation_limit(bytes.clone().into(), 256 * size_of::<Str>());
        // 256 empty strings of one byte each take 32 bytes of memory each.
        assert!(d.array(false, 0, 1, |d, _| d.i8().map(|_| Str::new())).is_ok());
        assert_eq!(d.allocated_bytes(), 256 * size_of::<Str>());
        let mut d = Decoder::with_allocation_limit(bytes.into(), 256 * size_of::<Str>() - 1);
        let refused = d.array(false, 0, 1, |d, _| d.i8().map(|_| Str::new()));
        assert!(matches!(refused, Err(DecodeError::AllocationLimit { .. })));
    }

    #[test]
    fn tagged_fields_are_skipped_and_their_sizes_checked() {
        let mut d = decoder(&[2, 0, 1, 0xaa, 5, 0]);
        d.skip_tags().expect("two unknown fields");
        assert_eq!(d.finish(), Ok(()));
        assert!(decoder(&[1, 0, 2, 0xaa]).skip_tags().is_err());
        let mut d = decoder(&[0, 2, 0xaa, 0xbb]);
        let tag = d.tag().expect("a tag");
        d.i8().expect("one byte");
        assert_eq!(d.end_tag(tag), Err(DecodeError::TagSize { position: 3, end: 4 }));
    }

    #[test]
    fn varints_end_or_fail() {
        assert_eq!(decoder(&[0xac, 2]).uvarint(), Ok(300));
        assert!(matches!(decoder(&[0x80, 0x80]).uvarint(), Err(DecodeError::UnexpectedEnd { .. })));
        assert_eq!(decoder(&[0x80; 5]).uvarint(), Err(DecodeError::VarintTooLong { position: 0 }));
    }
}
