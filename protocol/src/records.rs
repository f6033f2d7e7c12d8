//! [`Records`]: the bytes of a message's `records` field, as chunks that are never copied.

use bytes::{Bytes, BytesMut};

/// The record batches that a Produce request or a Fetch response carries, uninterpreted ([`crate::record`] reads
/// them). Decoding makes one chunk, a slice of the frame; encoding chains any number of chunks into the reply.
#[derive(Clone, Debug, Default)]
pub struct Records {
    // The common case, one chunk, needs no allocation.
    first: Bytes,
    rest: Vec<Bytes>,
}

impl Records {
    /// No bytes at all (which a client tells from a null field).
    pub const fn new() -> Self {
        Self { first: Bytes::new(), rest: Vec::new() }
    }

    /// The chunks in order.
    pub fn chunks(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Total bytes.
    pub fn len(&self) -> usize {
        self.chunks().map(Bytes::len).sum()
    }

    /// True when there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in one piece: without copying when they are one chunk already.
    pub fn into_bytes(self) -> Bytes {
        if self.rest.is_empty() {
            return self.first;
        }
        let mut whole = BytesMut::with_capacity(self.len());
        for chunk in self.chunks() {
            whole.extend_from_slice(chunk);
        }
        whole.freeze()
    }
}

impl From<Bytes> for Records {
    fn from(bytes: Bytes) -> Self {
        Self { first: bytes, rest: Vec::new() }
    }
}

impl From<Vec<Bytes>> for Records {
    fn from(chunks: Vec<Bytes>) -> Self {
        if chunks.len() <= 1 {
            return Self { first: chunks.into_iter().next().unwrap_or_default(), rest: Vec::new() };
        }
        Self { first: Bytes::new(), rest: chunks }
    }
}

/// Equal bytes, however they are cut into chunks.
impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.chunks().flatten().eq(other.chunks().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_keep_order_and_equality_ignores_the_cuts() {
        let whole = Records::from(Bytes::from_static(b"abcd"));
        let cut = Records::from(vec![Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"cd")]);
        assert_eq!(whole, cut);
        assert_eq!(cut.len(), 4);
        assert_eq!(cut.into_bytes(), "abcd");
        assert_ne!(whole, Records::from(vec![Bytes::from_static(b"abc")]));
        assert!(Records::from(Vec::new()).is_empty());
    }
}
