//! Look-ups by time, retention, deletion, votes, truncation, producers, many partitions.
