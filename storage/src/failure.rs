//! The shard's one-way switch: after the first failed write or flush nothing is acknowledged any more.
//! Invariant: once set, it is never cleared and never replaced.

use std::cell::RefCell;

use runtime::sync::{Event, Listener};

use crate::error::StorageError;

/// Set once, by whoever meets the failure first.
#[derive(Default)]
pub(crate) struct Failure {
    error: RefCell<Option<StorageError>>,
    event: Event,
}

impl Failure {
    /// The failure, if there was one.
    pub(crate) fn get(&self) -> Option<StorageError> {
        self.error.borrow().clone()
    }

    /// `Err` once failed.
    pub(crate) fn check(&self) -> Result<(), StorageError> {
        self.get().map_or(Ok(()), Err)
    }

    /// Fails the storage for good.
    pub(crate) fn set(&self, error: StorageError) {
        if self.error.borrow().is_some() {
            return;
        }
        tracing::error!(%error, "storage failed: this shard acknowledges nothing more");
        *self.error.borrow_mut() = Some(error);
        self.event.notify_all();
    }

    /// Ready at a failure, or at [`Failure::wake`].
    pub(crate) fn listen(&self) -> Listener {
        self.event.listen()
    }

    /// Wakes whoever listens, so that they look whether the storage is closing.
    pub(crate) fn wake(&self) {
        self.event.notify_all();
    }

    /// Waits for the failure.
    pub(crate) async fn wait(&self) -> StorageError {
        loop {
            let listener = self.event.listen();
            if let Some(error) = self.get() {
                return error;
            }
            listener.await;
        }
    }
}
