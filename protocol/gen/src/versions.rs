//! [`Versions`]: a contiguous range of message versions, written `3+`, `2-7`, `4` or `none`.

use std::fmt;

use anyhow::{Context, Result};

/// Versions `min..=max`; empty when `max < min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    /// The lowest version.
    pub(crate) min: i16,
    /// The highest version; `i16::MAX` when open.
    pub(crate) max: i16,
}

impl Versions {
    /// No version.
    pub(crate) const NONE: Self = Self { min: 0, max: -1 };

    /// Reads Kafka's notation.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let number = |text: &str| text.trim().parse::<i16>().with_context(|| format!("versions {text:?}"));
        let text = text.trim();
        if text == "none" {
            return Ok(Self::NONE);
        }
        if let Some(min) = text.strip_suffix('+') {
            return Ok(Self { min: number(min)?, max: i16::MAX });
        }
        let (min, max) = text.split_once('-').unwrap_or((text, text));
        Ok(Self { min: number(min)?, max: number(max)? })
    }

    /// True without any version.
    pub(crate) fn is_empty(self) -> bool {
        self.max < self.min
    }

    /// The versions in both.
    pub(crate) fn and(self, other: Self) -> Self {
        let both = Self { min: self.min.max(other.min), max: self.max.min(other.max) };
        if both.is_empty() { Self::NONE } else { both }
    }

    /// The versions of `self` that `other` has not; `None` when they would not be contiguous.
    pub(crate) fn minus(self, other: Self) -> Option<Self> {
        let common = self.and(other);
        match (common.is_empty(), common.min <= self.min, common.max >= self.max) {
            (true, ..) => Some(self),
            (_, true, true) => Some(Self::NONE),
            (_, true, false) => Some(Self { min: common.max + 1, max: self.max }),
            (_, false, true) => Some(Self { min: self.min, max: common.min - 1 }),
            (_, false, false) => None,
        }
    }

    /// Whether `version` is among them.
    pub(crate) fn contains(self, version: i16) -> bool {
        (self.min..=self.max).contains(&version)
    }

    /// Each version in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = i16> {
        self.min..=self.max
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { min, max } if max < min => f.write_str("none"),
            Self { min, max } if max == min => write!(f, "{min}"),
            Self { min, max: i16::MAX } => write!(f, "{min}+"),
            Self { min, max } => write!(f, "{min}-{max}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(text: &str) -> Versions {
        Versions::parse(text).expect("versions")
    }

    #[test]
    fn notation_round_trips() {
        for text in ["none", "4", "3+", "2-7"] {
            assert_eq!(versions(text).to_string(), text);
        }
        assert!(Versions::parse("a").is_err());
    }

    #[test]
    fn set_operations() {
        assert_eq!(versions("3+").and(versions("0-7")), versions("3-7"));
        assert_eq!(versions("3+").and(versions("0-2")), Versions::NONE);
        assert_eq!(versions("0+").minus(versions("3+")), Some(versions("0-2")));
        assert_eq!(versions("0-5").minus(versions("0-2")), Some(versions("3-5")));
        assert_eq!(versions("0-5").minus(versions("0+")), Some(Versions::NONE));
        assert_eq!(versions("0-5").minus(versions("2-3")), None);
        assert_eq!(versions("0-5").minus(Versions::NONE), Some(versions("0-5")));
    }
}
