//! One value from one task of a shard to another.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

struct State<T> {
    value: Cell<Option<T>>,
    sender_alive: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// A sender and the receiver that awaits its value.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state =
        Rc::new(State { value: Cell::new(None), sender_alive: Cell::new(true), waker: RefCell::default() });
    (Sender(Rc::clone(&state)), Receiver(state))
}

/// Sends one value.
pub struct Sender<T>(Rc<State<T>>);

impl<T> Sender<T> {
    /// Hands `value` over; it is dropped when the receiver has gone.
    pub fn send(self, value: T) {
        self.0.value.set(Some(value));
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.sender_alive.set(false);
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }
}

/// Awaits the value: `None` when the sender was dropped without sending.
pub struct Receiver<T>(Rc<State<T>>);

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if let Some(value) = self.0.value.take() {
            return Poll::Ready(Some(value));
        }
        if !self.0.sender_alive.get() {
            return Poll::Ready(None);
        }
        *self.0.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}
