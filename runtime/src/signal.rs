//! Waiting for the signal to stop, without unsafe code and outside the shards.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// Blocks the calling thread until SIGTERM or SIGINT arrives, and names the one that did.
///
/// From then on a second such signal ends the process at once, in case the clean stop hangs.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn wait_for_stop() -> io::Result<&'static str> {
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        flag::register_conditional_shutdown(signal, 1, Arc::clone(&stopping))?;
    }
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let received = signals.forever().next();
    stopping.store(true, Ordering::SeqCst);
    Ok(if received == Some(SIGINT) { "SIGINT" } else { "SIGTERM" })
}
