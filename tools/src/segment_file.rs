//! Reading a `.log` file batch by batch, offline. Millrace's segments and Apache Kafka's have the same bytes.
//!
//! 1. A batch is read only when its stated length fits the rest of the file.
//! 2. Zeros after the last batch are padding of a segment that is being written, not damage.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use bytes::Bytes;
use protocol::record::{BatchHeader, HEADER_BYTES, verify_crc};

/// One batch of a file.
pub(crate) struct Found {
    /// Byte in the file where it begins.
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
    pub(crate) bytes: Bytes,
    /// Whether the bytes are those that the CRC was made of.
    pub(crate) crc_is_right: bool,
}

/// Why the batches end before the file does.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SegmentError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What stands there is no batch.
    #[error("at position {position}: {reason}")]
    Damaged {
        /// Byte in the file.
        position: u64,
        /// What is wrong.
        reason: String,
    },
}

/// The batches of a file, up to its end or to the first damage.
pub(crate) struct Segment {
    file: BufReader<File>,
    position: u64,
    len: u64,
    done: bool,
}

impl Segment {
    pub(crate) fn open(path: &Path) -> io::Result<Segment> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Segment { file: BufReader::with_capacity(1 << 20, file), position: 0, len, done: false })
    }

    fn next_batch(&mut self) -> Result<Option<Found>, SegmentError> {
        let position = self.position;
        let left = self.len.saturating_sub(position);
        let damaged = |reason: String| SegmentError::Damaged { position, reason };
        let mut head = [0; HEADER_BYTES];
        let head_len = left.min(HEADER_BYTES as u64);
        let head = head.get_mut(..usize::try_from(head_len).unwrap_or(0)).unwrap_or_default();
        self.file.read_exact(head)?;
        if head.iter().all(|byte| *byte == 0) {
            return self.padding(position).map(|()| None);
        }
        let header = BatchHeader::read(head).map_err(|error| damaged(error.to_string()))?;
        if header.size() as u64 > left {
            return Err(damaged(format!("a batch of {} bytes stands where {left} are left", header.size())));
        }
        let mut bytes = vec![0; header.size()];
        let (front, rest) =
            bytes.split_at_mut_checked(head.len()).ok_or_else(|| damaged("a short batch".to_owned()))?;
        front.copy_from_slice(head);
        self.file.read_exact(rest)?;
        self.position += bytes.len() as u64;
        let crc_is_right = verify_crc(&bytes).is_ok();
        Ok(Some(Found { position, header, bytes: Bytes::from(bytes), crc_is_right }))
    }

    /// Checks that nothing but zeros follows.
    fn padding(&mut self, position: u64) -> Result<(), SegmentError> {
        let mut rest = Vec::new();
        // Padding ends with its block of 4 096 bytes, so that a page of zeros in the middle is found.
        Read::by_ref(&mut self.file).take(4097).read_to_end(&mut rest)?;
        if rest.len() <= 4096 && rest.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        Err(SegmentError::Damaged { position, reason: "zeros stand where a batch belongs".to_owned() })
    }
}

impl Iterator for Segment {
    type Item = Result<Found, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done || self.position >= self.len {
            return None;
        }
        let next = self.next_batch().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use protocol::record::{Builder, Codec, set_base_offset};

    /// A batch of one record.
    pub(crate) fn batch(offset: i64) -> Vec<u8> {
        let mut builder = Builder::new(Codec::None);
        builder.push(1_000, Some(b"k"), Some(b"value"), &[]);
        let mut bytes = builder.build().to_vec();
        set_base_offset(&mut bytes, offset);
        bytes
    }

    fn read(bytes: &[u8]) -> (usize, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000000000000000000.log");
        std::fs::write(&path, bytes).unwrap();
        let (mut count, mut error) = (0, None);
        for found in Segment::open(&path).unwrap() {
            match found {
                Ok(found) => {
                    assert!(found.crc_is_right);
                    count += 1;
                }
                Err(e) => error = Some(e.to_string()),
            }
        }
        (count, error)
    }

    #[test]
    fn whole_files_padding_and_damage() {
        let two = [batch(0), batch(1)].concat();
        assert_eq!(read(&two), (2, None));
        assert_eq!(read(&[]), (0, None));
        assert_eq!(read(&[two.clone(), vec![0; 100]].concat()), (2, None));
        let (count, error) = read(&two[..two.len() - 1]);
        assert_eq!(count, 1);
        assert!(error.unwrap().contains("are left"));
        let (count, error) = read(&[batch(0), vec![0; 5000], batch(1)].concat());
        assert_eq!(count, 1);
        assert!(error.unwrap().contains("zeros"));
        assert_eq!(read(&[batch(0), vec![7; 200]].concat()).0, 1);
    }
}
