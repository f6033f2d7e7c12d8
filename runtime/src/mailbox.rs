//! The one way between shards, and between shards and foreign threads: an unbounded lock-free queue and a waker.
//!
//! Invariants:
//! 1. Messages of one sender arrive in the order in which they were sent.
//! 2. No lost wake-up: a receiver that sleeps has looked at the queue after it said that it sleeps, and a sender looks
//!    whether the receiver sleeps after it has put its message there.
//! 3. A message is never left in a mailbox whose receiver has gone, so whoever waits for its reply learns of it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::task::{Context, Poll};

use crossbeam_queue::SegQueue;
use futures::channel::oneshot;
use futures::task::AtomicWaker;

use crate::real::doorbell::CrossWaker;

/// A mailbox: any number of senders, one receiver. Bounds are the business of the protocol on top.
pub fn channel<M: Send>() -> (Sender<M>, Receiver<M>) {
    let shared = Arc::new(Shared {
        queue: SegQueue::new(),
        asleep: AtomicBool::new(false),
        closed: AtomicBool::new(false),
        senders: AtomicUsize::new(1),
        waker: AtomicWaker::new(),
    });
    (Sender(Arc::clone(&shared)), Receiver { shared, waker: CrossWaker::default() })
}

struct Shared<M> {
    queue: SegQueue<M>,
    asleep: AtomicBool,
    closed: AtomicBool,
    senders: AtomicUsize,
    waker: AtomicWaker,
}

impl<M> Shared<M> {
    fn wake_sleeper(&self) {
        // Pairs with the fence in `poll_recv` (invariant 2).
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    fn drain(&self) {
        while self.queue.pop().is_some() {}
    }
}

/// The receiver has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mailbox is closed")
    }
}

impl std::error::Error for Closed {}

/// Puts messages into a mailbox from any thread.
pub struct Sender<M>(Arc<Shared<M>>);

impl<M: Send> Sender<M> {
    /// Sends `message`; never blocks. It wakes the receiver only if that sleeps.
    ///
    /// # Errors
    /// [`Closed`] when the receiver had gone before; the message is dropped then. A receiver that goes at the same time may
    /// have taken the message or not: who must know waits for a [`reply`].
    pub fn send(&self, message: M) -> Result<(), Closed> {
        if self.0.closed.load(Ordering::SeqCst) {
            return Err(Closed);
        }
        self.0.queue.push(message);
        self.0.wake_sleeper();
        if self.0.closed.load(Ordering::SeqCst) {
            // The receiver may have drained before this message came (invariant 3).
            self.0.drain();
        }
        Ok(())
    }
}

impl<M> Clone for Sender<M> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<M> Drop for Sender<M> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.wake_sleeper();
        }
    }
}

impl<M> fmt::Debug for Sender<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mailbox::Sender")
    }
}

/// Takes messages out of a mailbox, on a shard, in a simulation, or on a foreign executor.
pub struct Receiver<M> {
    shared: Arc<Shared<M>>,
    waker: CrossWaker,
}

impl<M: Send> Receiver<M> {
    /// The next message; `None` when all senders have gone and the mailbox is empty. Safe to cancel.
    pub async fn recv(&mut self) -> Option<M> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The next message if one is there.
    pub fn try_recv(&mut self) -> Option<M> {
        self.shared.queue.pop()
    }

    fn poll_recv(&mut self, cx: &Context<'_>) -> Poll<Option<M>> {
        if let Some(message) = self.shared.queue.pop() {
            return Poll::Ready(Some(message));
        }
        self.shared.waker.register(self.waker.arm(cx));
        self.shared.asleep.store(true, Ordering::Relaxed);
        // Pairs with the fence in `wake_sleeper` (invariant 2).
        fence(Ordering::SeqCst);
        let gone = self.shared.senders.load(Ordering::Acquire) == 0;
        match self.shared.queue.pop() {
            Some(message) => {
                self.shared.asleep.store(false, Ordering::Relaxed);
                Poll::Ready(Some(message))
            }
            None if gone => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl<M> Drop for Receiver<M> {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.shared.drain();
    }
}

impl<M> fmt::Debug for Receiver<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mailbox::Receiver")
    }
}

/// A one-time answer across shards and threads.
pub fn reply<T: Send>() -> (ReplySender<T>, ReplyReceiver<T>) {
    let (sender, receiver) = oneshot::channel();
    (ReplySender(sender), ReplyReceiver { receiver, waker: CrossWaker::default() })
}

/// Sends the one answer.
#[derive(Debug)]
pub struct ReplySender<T>(oneshot::Sender<T>);

impl<T: Send> ReplySender<T> {
    /// Sends `value`; it is dropped when nobody waits for it any more.
    pub fn send(self, value: T) {
        // An asker that went away wants no answer.
        let _ = self.0.send(value);
    }
}

/// Awaits the one answer: `None` when the sender was dropped without answering.
pub struct ReplyReceiver<T> {
    receiver: oneshot::Receiver<T>,
    waker: CrossWaker,
}

impl<T: Send> Future for ReplyReceiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        let waker = this.waker.arm(cx);
        Pin::new(&mut this.receiver).poll(&mut Context::from_waker(waker)).map(Result::ok)
    }
}

impl<T> fmt::Debug for ReplyReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mailbox::ReplyReceiver")
    }
}
