//! [`Uuid`]: the 16-byte identifiers of topics, directories and members (KIP-516).

use std::fmt;
use std::str::FromStr;

/// A 16-byte identifier. Displayed, and parsed, as Kafka does: 22 characters of unpadded base64url.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

/// Text that is not a 22-character base64url identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an identifier is 22 characters of unpadded base64url that stand for 16 bytes")]
pub struct InvalidUuid;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const TEXT_LEN: usize = 22;

impl Uuid {
    /// All zero: "no identifier".
    pub const ZERO: Self = Self([0; 16]);
    /// The identifier that Kafka reserves for the cluster metadata topic.
    pub const METADATA_TOPIC: Self = Self::from_u128(1);

    /// The identifier with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The identifier whose big-endian value is `value`.
    pub const fn from_u128(value: u128) -> Self {
        Self(value.to_be_bytes())
    }

    /// A version 4 identifier from 16 random bytes. `None` where Kafka draws again: the values it reserves, and
    /// those whose text would begin with `-` and be taken for an option on a command line.
    pub fn from_random(random: [u8; 16]) -> Option<Self> {
        const VERSION_AND_VARIANT: u128 = 0xf000_c000_0000_0000_0000;
        const RANDOM_RFC_9562: u128 = 0x4000_8000_0000_0000_0000;
        let value = u128::from_be_bytes(random) & !VERSION_AND_VARIANT | RANDOM_RFC_9562;
        let id = Self::from_u128(value);
        // The reserved values (0 to 99) cannot carry the version bits.
        (value >> 122 != 62).then_some(id)
    }

    /// The 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The big-endian value.
    pub const fn as_u128(&self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// True for [`Uuid::ZERO`].
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.as_u128();
        // 128 bits are 21 digits of six bits and a last one of two.
        let digit = |place: usize| {
            let six = if place + 1 < TEXT_LEN { value >> (122 - 6 * place) } else { value << 4 };
            char::from(ALPHABET[(six & 63) as usize])
        };
        let mut text = [0; TEXT_LEN];
        for (place, byte) in text.iter_mut().enumerate() {
            *byte = digit(place) as u8;
        }
        f.pad(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = InvalidUuid;

    fn from_str(text: &str) -> Result<Self, InvalidUuid> {
        if text.len() != TEXT_LEN {
            return Err(InvalidUuid);
        }
        let mut value: u128 = 0;
        for (place, byte) in text.bytes().enumerate() {
            let six = ALPHABET.iter().position(|&letter| letter == byte).ok_or(InvalidUuid)? as u128;
            if place + 1 < TEXT_LEN {
                value = value << 6 | six;
            } else if six & 15 == 0 {
                value = value << 2 | six >> 4;
            } else {
                return Err(InvalidUuid);
            }
        }
        Ok(Self::from_u128(value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_kafkas() {
        assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(Uuid::METADATA_TOPIC.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(Uuid::from_u128(u128::MAX).to_string(), "_____________________w");
        assert_eq!(
            Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff).to_string(),
            "ABEiM0RVZneImaq7zN3u_w"
        );
    }

    #[test]
    fn bad_text_is_refused() {
        for text in ["", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAB", "AAAAAAAAAAAAAAAAAAAAA=", "ä"] {
            assert_eq!(text.parse::<Uuid>(), Err(InvalidUuid), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn text_round_trips(value: u128) {
            let id = Uuid::from_u128(value);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn random_ids_are_version_4_and_no_option(random: [u8; 16]) {
            if let Some(id) = Uuid::from_random(random) {
                prop_assert_eq!(id.as_bytes()[6] >> 4, 4);
                prop_assert_eq!(id.as_bytes()[8] >> 6, 2);
                prop_assert!(!id.to_string().starts_with('-'));
            }
        }
    }
}
