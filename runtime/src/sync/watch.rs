//! A small value that tasks of a shard wait on, such as a watermark.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::waiters::Waiters;

/// A watched value; clones share it.
pub struct Watch<T>(Rc<State<T>>);

struct State<T> {
    value: Cell<T>,
    waiters: Waiters,
}

impl<T> Clone for Watch<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T: Copy + PartialEq> Watch<T> {
    /// A watch that holds `value`.
    pub fn new(value: T) -> Self {
        Self(Rc::new(State { value: Cell::new(value), waiters: Waiters::default() }))
    }

    /// The value now.
    pub fn get(&self) -> T {
        self.0.value.get()
    }

    /// Replaces the value; wakes the waiters when it differs.
    pub fn set(&self, value: T) {
        if self.0.value.replace(value) != value {
            self.0.waiters.wake_all();
        }
    }

    /// Waits until the value differs from `old`, and returns it.
    pub async fn changed_from(&self, old: T) -> T {
        self.wait_until(|value| value != old).await
    }

    /// Waits until `holds` is true of the value, and returns the value. A value that was overwritten at once may be missed.
    pub async fn wait_until(&self, mut holds: impl FnMut(T) -> bool) -> T {
        let mut waiting = Waiting { state: &self.0, key: None };
        poll_fn(|cx| waiting.poll_value(cx, &mut holds)).await
    }
}

struct Waiting<'a, T> {
    state: &'a State<T>,
    key: Option<usize>,
}

impl<T: Copy> Waiting<'_, T> {
    fn poll_value(&mut self, cx: &Context<'_>, holds: &mut impl FnMut(T) -> bool) -> Poll<T> {
        let value = self.state.value.get();
        if holds(value) {
            return Poll::Ready(value);
        }
        self.state.waiters.register(&mut self.key, cx.waker());
        Poll::Pending
    }
}

impl<T> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        self.state.waiters.remove(&mut self.key);
    }
}
