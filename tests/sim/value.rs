//! The values that are written: each is unique, and says where it belongs and who wrote it.

use std::fmt;

/// Bytes of everything but the filler.
const HEAD_BYTES: usize = 16;

/// A partition of one of the topics of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    /// Which topic.
    pub topic: u32,
    /// Which of its partitions.
    pub partition: i32,
}

impl Place {
    /// The topic's name.
    pub(crate) fn topic_name(self) -> String {
        format!("t{}", self.topic)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic_name(), self.partition)
    }
}

/// What a value says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Value {
    /// Where it was sent to.
    pub place: Place,
    /// Who sent it; a producer has one place.
    pub producer: u32,
    /// Counts the producer's values, from 0.
    pub counter: u32,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value {} of producer {} for {}", self.counter, self.producer, self.place)
    }
}

impl Value {
    /// The bytes: the four numbers, then as much filler as the value itself decides.
    pub(crate) fn encode(self, filler_max: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + filler_max as usize);
        bytes.extend(self.place.topic.to_be_bytes());
        bytes.extend(self.place.partition.to_be_bytes());
        bytes.extend(self.producer.to_be_bytes());
        bytes.extend(self.counter.to_be_bytes());
        let filler = self.counter.wrapping_mul(2_654_435_761).wrapping_add(self.producer) % (filler_max + 1);
        bytes.extend((0..filler).map(|at| self.filler(at)));
        bytes
    }

    /// Reads a value; none when any byte is not as it was written.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Value> {
        let (words, _) = bytes.get(..HEAD_BYTES)?.as_chunks::<4>();
        let [topic, partition, producer, counter] = words else { return None };
        let place = Place { topic: u32::from_be_bytes(*topic), partition: i32::from_be_bytes(*partition) };
        let value =
            Value { place, producer: u32::from_be_bytes(*producer), counter: u32::from_be_bytes(*counter) };
        let filler = bytes.get(HEAD_BYTES..)?;
        (0..).zip(filler).all(|(at, byte)| *byte == value.filler(at)).then_some(value)
    }

    fn filler(self, at: u32) -> u8 {
        (self.counter.wrapping_mul(31).wrapping_add(self.producer).wrapping_add(at)) as u8
    }
}
