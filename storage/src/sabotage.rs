//! Bugs planted on purpose, so that the tests can prove that they would catch them. Without the feature `sabotage` every
//! question below is answered by a constant `false` and nothing can be planted.

/// A bug to plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Entries count as durable before their block is flushed.
    AcknowledgeBeforeFlush,
    /// Recovery starts with no producer known.
    ForgetProducerState,
    /// Recovery takes blocks of a recycled file's former use for new ones.
    AcceptStaleBlock,
    /// Recovery cuts the journal off at the first damaged block.
    CutOffCorruptMiddle,
}

#[cfg(feature = "sabotage")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Sabotage>> = const { std::cell::Cell::new(None) };
}

/// Plants one bug for this thread, or none.
#[cfg(feature = "sabotage")]
pub fn set(sabotage: Option<Sabotage>) {
    PLANTED.set(sabotage);
}

/// Whether `sabotage` is planted.
#[cfg(feature = "sabotage")]
pub(crate) fn is(sabotage: Sabotage) -> bool {
    PLANTED.get() == Some(sabotage)
}

/// Whether `sabotage` is planted: never in this build.
#[cfg(not(feature = "sabotage"))]
pub(crate) const fn is(_: Sabotage) -> bool {
    false
}
