//! [`split_batches`]: cuts a buffer into the batches that it holds.

use bytes::Bytes;

use super::{BatchHeader, RecordError};

/// The batches in `bytes`, each with its header, sharing the memory. The first batch that is cut off or no batch at all
/// is an error, and ends the iteration; a fetch may well end in a batch that is cut off.
pub fn split_batches(bytes: Bytes) -> Batches {
    Batches { rest: bytes }
}

/// Iterator of [`split_batches`].
#[derive(Clone, Debug)]
pub struct Batches {
    rest: Bytes,
}

impl Batches {
    /// The bytes that are not yet cut.
    pub fn rest(&self) -> &Bytes {
        &self.rest
    }

    fn cut(&mut self) -> Result<(BatchHeader, Bytes), RecordError> {
        let header = BatchHeader::read(&self.rest)?;
        if header.size() > self.rest.len() {
            return Err(RecordError::Truncated { wanted: header.size(), left: self.rest.len() });
        }
        Ok((header, self.rest.split_to(header.size())))
    }
}

impl Iterator for Batches {
    type Item = Result<(BatchHeader, Bytes), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let cut = self.cut();
        if cut.is_err() {
            self.rest = Bytes::new();
        }
        Some(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, Codec};
    use super::*;

    #[test]
    fn whole_batches_then_the_cut_one() {
        let mut builder = Builder::new(Codec::None);
        builder.push(1, None, Some(b"value"), &[]);
        let one = builder.build();
        let mut bytes = [one.clone(), one.clone(), one.clone()].concat();
        bytes.pop();
        let mut batches = split_batches(bytes.into());
        for _ in 0..2 {
            let (header, batch) = batches.next().expect("a batch").expect("valid");
            assert_eq!((header.size(), batch), (one.len(), one.clone()));
        }
        let wanted = one.len();
        assert_eq!(batches.next(), Some(Err(RecordError::Truncated { wanted, left: wanted - 1 })));
        assert_eq!(batches.next(), None);
    }
}
