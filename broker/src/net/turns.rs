//! Turns: work of one connection that is done one after the other, in the order in which its turns were taken.

use runtime::sync::Watch;
use std::cell::Cell;
use std::fmt;

/// Hands out turns.
pub(crate) struct Turns {
    next: Cell<u64>,
    /// All turns below this number are over.
    over: Watch<u64>,
}

/// A place in the order; over when dropped.
pub(crate) struct Turn {
    number: u64,
    over: Watch<u64>,
}

impl Default for Turns {
    fn default() -> Self {
        Turns { next: Cell::new(0), over: Watch::new(0) }
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.over.get(), self.next.get())
    }
}

impl Turns {
    /// The next turn.
    pub(crate) fn take(&self) -> Turn {
        let number = self.next.get();
        self.next.set(number + 1);
        Turn { number, over: self.over.clone() }
    }
}

impl Turn {
    /// Waits until every turn before is over.
    pub(crate) async fn comes(&self) {
        self.over.wait_until(|over| over >= self.number).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // One that is given up before it came lets those behind it go ahead of those before it, which costs memory alone.
        self.over.set(self.over.get().max(self.number + 1));
    }
}
