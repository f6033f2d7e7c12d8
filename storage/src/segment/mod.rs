//! Segments: a log's files in Apache Kafka's format, and the sparse indexes beside them (docs/storage-format.md, section 4).
//!
//! | module | what it owns |
//! |---|---|
//! | [`meta`] | what is known of a segment without opening it; when it rolls; which batches are indexed (pure) |
//! | [`index`] | the three index formats and their look-ups (pure) |
//! | [`index_files`] | reading, writing and rebuilding index files |
//! | [`cursor`] | walking the batches of a segment file |
//! | [`writer`] | writing a segment anew |

pub(crate) mod cursor;
pub(crate) mod index;
pub(crate) mod index_files;
pub(crate) mod meta;
pub(crate) mod writer;
