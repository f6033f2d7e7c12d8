//! [`RecordIter`]: the records of one batch, without copying keys, values or headers.
//!
//! Invariants:
//! 1. The iterator allocates nothing, whatever the bytes claim.
//! 2. It yields exactly `record_count` records that fill the bytes, or an error as its last item.

use bytes::Bytes;

use super::{BatchHeader, Codec, HEADER_BYTES, RecordError, TimestampType, compression};
use crate::wire::varint;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its offset.
    pub offset: i64,
    /// Its time in Unix milliseconds: the producer's, or that of the append.
    pub timestamp: i64,
    /// The key, or null.
    pub key: Option<Bytes>,
    /// The value, or null (a tombstone).
    pub value: Option<Bytes>,
    headers: Bytes,
    header_count: i32,
}

impl Record {
    /// The headers in order.
    pub fn headers(&self) -> RecordHeaders {
        RecordHeaders { cursor: Cursor { bytes: self.headers.clone(), at: 0 }, left: self.header_count }
    }
}

/// One header of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The name; text by convention, which nobody enforces.
    pub key: Bytes,
    /// The value, or null.
    pub value: Option<Bytes>,
}

/// Iterator of [`Record::headers`].
#[derive(Clone, Debug)]
pub struct RecordHeaders {
    cursor: Cursor,
    left: i32,
}

impl Iterator for RecordHeaders {
    type Item = RecordHeader;

    fn next(&mut self) -> Option<RecordHeader> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        // The headers were read once before, when the record was.
        self.cursor.header().ok()
    }
}

/// The records of one batch. An error is the last item.
#[derive(Clone, Debug)]
pub struct RecordIter {
    cursor: Cursor,
    header: BatchHeader,
    /// Index of the next record; `record_count` at the end, also behind an error.
    index: i32,
}

impl RecordIter {
    /// The records of a whole batch, decompressed if need be to at most `limit_bytes`.
    pub fn of_batch(batch: &Bytes, limit_bytes: usize) -> Result<Self, RecordError> {
        let header = BatchHeader::read(batch)?;
        if header.size() > batch.len() {
            return Err(RecordError::Truncated { wanted: header.size(), left: batch.len() });
        }
        let body = batch.slice(HEADER_BYTES..header.size());
        let body = match header.compression()? {
            Codec::None => body,
            codec => compression::decompress(codec, &body, limit_bytes)?,
        };
        Ok(Self::new(&header, body))
    }

    /// The records in `body`: what follows the header, decompressed.
    pub fn new(header: &BatchHeader, body: Bytes) -> Self {
        Self { cursor: Cursor { bytes: body, at: 0 }, header: *header, index: 0 }
    }

    fn record(&mut self) -> Result<Record, &'static str> {
        let length = self.cursor.varint()?;
        let end = usize::try_from(length).ok().and_then(|length| self.cursor.at.checked_add(length));
        let end = end.filter(|&end| end <= self.cursor.bytes.len()).ok_or("length is not possible")?;
        let mut cursor = Cursor { bytes: self.cursor.bytes.slice(..end), at: self.cursor.at };
        cursor.skip(1)?; // attributes: none are defined
        let timestamp_delta = cursor.varlong()?;
        let offset_delta = cursor.varint()?;
        let key = cursor.nullable_bytes()?;
        let value = cursor.nullable_bytes()?;
        let header_count = cursor.varint()?;
        // A header takes two bytes at least.
        if header_count < 0 || header_count as usize > cursor.left() / 2 {
            return Err("number of headers is not possible");
        }
        let headers_from = cursor.at;
        for _ in 0..header_count {
            cursor.header()?;
        }
        if cursor.left() > 0 {
            return Err("is shorter than its length");
        }
        self.cursor.at = end;
        let timestamp = match self.header.timestamp_type() {
            TimestampType::CreateTime => self.header.base_timestamp.wrapping_add(timestamp_delta),
            TimestampType::LogAppendTime => self.header.max_timestamp,
        };
        let headers = cursor.bytes.slice(headers_from..);
        let offset = self.header.base_offset.wrapping_add(offset_delta.into());
        Ok(Record { offset, timestamp, key, value, headers, header_count })
    }
}

impl Iterator for RecordIter {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.index;
        if index >= self.header.record_count {
            // A negative count, too, is one that the bytes contradict.
            let reason = "bytes behind the last record";
            let left = std::mem::take(&mut self.cursor.bytes).len() - self.cursor.at;
            self.cursor.at = 0;
            return (left > 0).then_some(Err(RecordError::Record { index, reason }));
        }
        let record = self.record();
        self.index = index + 1;
        Some(record.map_err(|reason| {
            self.index = self.header.record_count;
            self.cursor = Cursor { bytes: Bytes::new(), at: 0 };
            RecordError::Record { index, reason }
        }))
    }
}

/// Reads the types that records are made of.
#[derive(Clone, Debug)]
struct Cursor {
    bytes: Bytes,
    /// Never past the end of `bytes`.
    at: usize,
}

impl Cursor {
    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn tail(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, len: usize) -> Result<(), &'static str> {
        if len > self.left() {
            return Err("is cut off");
        }
        self.at += len;
        Ok(())
    }

    #[inline]
    fn varint(&mut self) -> Result<i32, &'static str> {
        let (value, len) = varint::read_i32(self.tail()).ok_or("varint is cut off or too long")?;
        self.at += len;
        Ok(value)
    }

    #[inline]
    fn varlong(&mut self) -> Result<i64, &'static str> {
        let (value, len) = varint::read_i64(self.tail()).ok_or("varlong is cut off or too long")?;
        self.at += len;
        Ok(value)
    }

    #[inline]
    fn nullable_bytes(&mut self) -> Result<Option<Bytes>, &'static str> {
        let len = match self.varint()? {
            -1 => return Ok(None),
            len => usize::try_from(len).map_err(|_| "negative length")?,
        };
        let from = self.at;
        self.skip(len)?;
        Ok(Some(self.bytes.slice(from..self.at)))
    }

    fn header(&mut self) -> Result<RecordHeader, &'static str> {
        let key = self.nullable_bytes()?.ok_or("header without a key")?;
        let value = self.nullable_bytes()?;
        Ok(RecordHeader { key, value })
    }
}

#[cfg(test)]
#[path = "iter_tests.rs"]
mod tests;
