//! The few threads that are not shards: the HTTP sidecar, a command line that waits for a signal.

use std::io;
use std::thread::JoinHandle;

/// Starts a named thread outside the shards. It reaches them by [`crate::mailbox`] alone.
///
/// # Errors
/// When the system refuses another thread.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}
