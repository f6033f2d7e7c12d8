//! [`Str`]: text that shares the memory of the frame it was read from.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use bytestring::ByteString;

/// UTF-8 text over reference-counted bytes: a clone copies no text.
///
/// A `Str` read from a frame keeps that whole frame in memory; what outlives the request is stored as
/// [`Str::detached`].
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str(ByteString);

impl Str {
    /// The empty text.
    pub const fn new() -> Self {
        Self(ByteString::new())
    }

    /// Text that lives as long as the program.
    pub const fn from_static(text: &'static str) -> Self {
        Self(ByteString::from_static(text))
    }

    /// `bytes` as text, `None` when they are not UTF-8. Copies nothing.
    pub fn from_utf8(bytes: Bytes) -> Option<Self> {
        ByteString::try_from(bytes).ok().map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same text in memory of its own, so that the frame it came from can be freed.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(ByteString::from(self.as_str()))
    }

    /// The bytes of the text, without copying them.
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

// Equality, order and hash are those of `str`, so maps keyed by `Str` can be asked with a `&str`.
impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self(ByteString::from(text))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self(ByteString::from(text))
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use super::*;

    #[test]
    fn text_from_bytes_is_checked_and_not_copied() {
        let bytes = Bytes::from("thé".as_bytes().to_vec());
        let text = Str::from_utf8(bytes.clone()).expect("UTF-8");
        assert_eq!(text, "thé");
        assert_eq!(text.as_ptr(), bytes.as_ptr());
        assert_ne!(text.detached().as_ptr(), bytes.as_ptr());
        assert_eq!(text.detached(), text);
        assert_eq!(Str::from_utf8(Bytes::from_static(b"a\xff")), None);
    }

    #[test]
    fn maps_keyed_by_str_are_asked_with_plain_text() {
        let ordered: BTreeMap<Str, i32> = BTreeMap::from([("a".into(), 1), ("b".into(), 2)]);
        assert_eq!(ordered.get("b"), Some(&2));
        assert!(HashSet::from([Str::from_static("a")]).contains("a"));
    }
}
