//! A level that only rises: whoever listened before a notification is woken by it.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::waiters::Waiters;

/// Tells many tasks of a shard that something has changed.
///
/// To lose no wake-up, call [`Event::listen`] first, check the condition, and only then await the listener.
#[derive(Clone, Default)]
pub struct Event(Rc<State>);

#[derive(Default)]
struct State {
    notified: Cell<u64>,
    waiters: Waiters,
}

impl Event {
    /// An event that nobody has notified yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes every listener made before this call.
    pub fn notify_all(&self) {
        self.0.notified.set(self.0.notified.get() + 1);
        self.0.waiters.wake_all();
    }

    /// A future that is ready once [`Event::notify_all`] is called after this moment.
    pub fn listen(&self) -> Listener {
        Listener { state: Rc::clone(&self.0), seen: self.0.notified.get(), key: None }
    }

    /// Waits for the next notification.
    pub async fn wait(&self) {
        self.listen().await;
    }
}

/// Waits for one notification of an [`Event`].
pub struct Listener {
    state: Rc<State>,
    seen: u64,
    key: Option<usize>,
}

impl Future for Listener {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.state.notified.get() != this.seen {
            return Poll::Ready(());
        }
        this.state.waiters.register(&mut this.key, cx.waker());
        Poll::Pending
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.state.waiters.remove(&mut self.key);
    }
}
