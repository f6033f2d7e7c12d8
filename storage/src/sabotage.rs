//! Bugs planted on purpose, so that the tests can prove that they would catch them. Only builds with debug assertions have them,
//! and only on a thread that plants one; in a release every question below is answered by a constant `false`.

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

#[cfg(debug_assertions)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Sabotage>> = const { std::cell::Cell::new(None) };
}

/// Plants one bug for this thread, or none.
#[cfg(debug_assertions)]
pub fn set(sabotage: Option<Sabotage>) {
    PLANTED.set(sabotage);
}

/// Whether `sabotage` is planted.
#[cfg(debug_assertions)]
pub(crate) fn is(sabotage: Sabotage) -> bool {
    PLANTED.get() == Some(sabotage)
}

/// Whether `sabotage` is planted: never in this build.
#[cfg(not(debug_assertions))]
pub(crate) const fn is(_: Sabotage) -> bool {
    false
}
