//! The codecs that compress the records of a batch, in the framings that Kafka's clients use.
//!
//! Invariant 1: [`decompress`] never yields more than its limit, and never takes more memory than a small multiple of
//! what it yields, plus the input, plus the window that zstd may ask for (8 MiB, or what the limit justifies).

mod lz4;
mod snappy;

use std::fmt;
use std::io::{self, Read, Write};

use bytes::Bytes;

use super::RecordError;

/// A compression codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Not compressed.
    None,
    /// gzip (RFC 1952).
    Gzip,
    /// Snappy blocks in the framing of the Java library, which all clients use.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard frames (KIP-110).
    Zstd,
}

impl Codec {
    /// Every codec, by number.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The number in the attributes of a batch.
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The codec with this number.
    pub fn from_id(id: u8) -> Result<Self, RecordError> {
        Self::ALL.get(usize::from(id)).copied().ok_or(RecordError::UnknownCodec(id))
    }

    /// Kafka's name, as in `compression.type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Compresses `bytes`, at the codec's usual level.
pub fn compress(codec: Codec, bytes: &[u8]) -> Bytes {
    // Writing to memory cannot fail.
    let written = match codec {
        Codec::None => Ok(bytes.to_vec()),
        Codec::Gzip => gzip(bytes),
        Codec::Snappy => Ok(snappy::compress(bytes)),
        Codec::Lz4 => lz4::compress(bytes),
        Codec::Zstd => zstd::bulk::compress(bytes, zstd::DEFAULT_COMPRESSION_LEVEL),
    };
    written.expect("compressing into memory").into()
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Decompresses `bytes` to at most `limit_bytes`.
pub fn decompress(codec: Codec, bytes: &Bytes, limit_bytes: usize) -> Result<Bytes, RecordError> {
    let decompressed = match codec {
        Codec::None if bytes.len() > limit_bytes => Err(Failure::Limit),
        Codec::None => return Ok(bytes.clone()),
        Codec::Gzip => read_limited(flate2::read::MultiGzDecoder::new(bytes.as_ref()), limit_bytes),
        Codec::Snappy => snappy::decompress(bytes, limit_bytes),
        Codec::Lz4 => lz4::decompress(bytes, limit_bytes),
        Codec::Zstd => unzstd(bytes, limit_bytes),
    };
    decompressed.map(Bytes::from).map_err(|failure| match failure {
        Failure::Limit => RecordError::DecompressLimit { limit_bytes },
        Failure::Corrupt(reason) => RecordError::Decompress { codec, reason },
    })
}

/// Why a codec gave up.
enum Failure {
    /// There is more than the limit allows.
    Limit,
    /// The data is not the codec's.
    Corrupt(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Corrupt(error.to_string())
    }
}

fn unzstd(bytes: &[u8], limit_bytes: usize) -> Result<Vec<u8>, Failure> {
    // Levels up to 19 use windows of up to 8 MiB, whatever the size; the format knows of windows up to 2 GiB.
    const WINDOW_LOG_ALWAYS: u32 = 23;
    const WINDOW_LOG_MAX: u32 = 27;
    let justified = limit_bytes.checked_next_power_of_two().map_or(WINDOW_LOG_MAX, usize::ilog2);
    let mut decoder = zstd::Decoder::with_buffer(bytes)?;
    decoder.window_log_max(justified.clamp(WINDOW_LOG_ALWAYS, WINDOW_LOG_MAX))?;
    read_limited(decoder, limit_bytes)
}

/// Everything that `reader` yields, unless it is over the limit.
fn read_limited(reader: impl Read, limit_bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    // One byte more tells "at the limit" from "over it".
    let over = u64::try_from(limit_bytes).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(over).read_to_end(&mut out)?;
    if out.len() > limit_bytes {
        return Err(Failure::Limit);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 1 << 20;

    fn codecs() -> impl Iterator<Item = Codec> {
        Codec::ALL.into_iter()
    }

    #[test]
    fn ids_and_names_are_kafkas() {
        for (id, name) in ["none", "gzip", "snappy", "lz4", "zstd"].into_iter().enumerate() {
            let codec = Codec::from_id(id as u8).expect("a codec");
            assert_eq!((codec.id() as usize, codec.name()), (id, name));
        }
        assert_eq!(Codec::from_id(5), Err(RecordError::UnknownCodec(5)));
    }

    #[test]
    fn the_limit_is_exact_and_bombs_are_refused() {
        let bytes = vec![0; 300_000];
        for codec in codecs() {
            let compressed = compress(codec, &bytes);
            assert_eq!(
                decompress(codec, &compressed, bytes.len()).expect("within the limit"),
                bytes,
                "{codec}"
            );
            for limit_bytes in [0, 1, bytes.len() - 1] {
                let refused = decompress(codec, &compressed, limit_bytes);
                assert_eq!(refused, Err(RecordError::DecompressLimit { limit_bytes }), "{codec}");
            }
        }
    }

    #[test]
    fn cut_data_is_an_error() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(|at| (at ^ at << 7).to_be_bytes()).collect();
        for codec in codecs().skip(1) {
            let compressed = compress(codec, &bytes);
            for len in [1, 7, compressed.len() / 2, compressed.len() - 1] {
                let cut = decompress(codec, &compressed.slice(..len), LIMIT);
                assert!(matches!(cut, Err(RecordError::Decompress { .. })), "{codec}, {len} bytes");
            }
        }
    }

    #[test]
    fn zstd_windows_beyond_the_limit_are_refused() {
        // A frame header that asks for a window of 2 GiB, then a raw block of one byte.
        let frame = Bytes::from_static(&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x09, 0x00, 0x00, 0x00]);
        assert!(matches!(decompress(Codec::Zstd, &frame, LIMIT), Err(RecordError::Decompress { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..2_000), repeats in 1..60usize) {
            let bytes = bytes.repeat(repeats);
            for codec in codecs() {
                prop_assert_eq!(decompress(codec, &compress(codec, &bytes), LIMIT), Ok(bytes.clone().into()));
            }
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            for codec in codecs() {
                let _ = decompress(codec, &bytes.clone().into(), 1_000);
            }
        }
    }
}
