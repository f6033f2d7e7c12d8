//! The machine's clocks.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::time::Instant;

static PROCESS_START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

/// Monotonic nanoseconds since the first call in this process.
pub(crate) fn now() -> Instant {
    let nanos = PROCESS_START.elapsed().as_nanos();
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Unix milliseconds; a clock before 1970 reads as 1970.
pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
