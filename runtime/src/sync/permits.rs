//! A counted budget (bytes of memory, slots) with waiters served first come, first served.
//!
//! Invariants:
//! 1. `available` plus all permits out equals `capacity`.
//! 2. A waiter is granted only when it is at the front: a large request is not starved by small ones.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A budget of permits; clones share it.
#[derive(Clone)]
pub struct Permits(Rc<State>);

struct State {
    capacity: u64,
    available: Cell<u64>,
    queue: RefCell<VecDeque<Rc<Waiter>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Queued,
    Granted,
    Taken,
}

struct Waiter {
    count: u64,
    phase: Cell<Phase>,
    waker: RefCell<Option<Waker>>,
}

impl Permits {
    /// A budget of `capacity` permits, all available.
    pub fn new(capacity: u64) -> Self {
        Self(Rc::new(State { capacity, available: Cell::new(capacity), queue: RefCell::default() }))
    }

    /// Waits for `count` permits, clamped to the capacity so that one request can always pass alone.
    pub async fn acquire(&self, count: u64) -> Permit {
        let count = count.min(self.0.capacity);
        if let Some(permit) = self.try_acquire(count) {
            return permit;
        }
        let waiter = Rc::new(Waiter { count, phase: Cell::new(Phase::Queued), waker: RefCell::default() });
        self.0.queue.borrow_mut().push_back(Rc::clone(&waiter));
        Acquire { state: &self.0, waiter }.await;
        Permit { state: Rc::clone(&self.0), count }
    }

    /// Takes `count` permits (clamped to the capacity) if they are free and nobody waits before.
    pub fn try_acquire(&self, count: u64) -> Option<Permit> {
        let count = count.min(self.0.capacity);
        let available = self.0.available.get();
        if available < count || !self.0.queue.borrow().is_empty() {
            return None;
        }
        self.0.available.set(available - count);
        Some(Permit { state: Rc::clone(&self.0), count })
    }

    /// Permits in all.
    pub fn capacity(&self) -> u64 {
        self.0.capacity
    }

    /// Permits free now.
    pub fn available(&self) -> u64 {
        self.0.available.get()
    }

    /// How many callers wait.
    pub fn waiting(&self) -> usize {
        self.0.queue.borrow().len()
    }
}

impl State {
    fn release(&self, count: u64) {
        self.available.set(self.available.get() + count);
        self.grant();
    }

    /// Serves waiters from the front while their wishes fit.
    fn grant(&self) {
        loop {
            let waiter = {
                let mut queue = self.queue.borrow_mut();
                match queue.front() {
                    Some(front) if front.count <= self.available.get() => queue.pop_front(),
                    _ => None,
                }
            };
            let Some(waiter) = waiter else { return };
            self.available.set(self.available.get() - waiter.count);
            waiter.phase.set(Phase::Granted);
            if let Some(waker) = waiter.waker.take() {
                waker.wake();
            }
        }
    }
}

struct Acquire<'a> {
    state: &'a State,
    waiter: Rc<Waiter>,
}

impl Future for Acquire<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.waiter.phase.get() == Phase::Granted {
            self.waiter.phase.set(Phase::Taken);
            return Poll::Ready(());
        }
        *self.waiter.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        match self.waiter.phase.get() {
            Phase::Taken => {}
            // The caller went away with its grant.
            Phase::Granted => self.state.release(self.waiter.count),
            Phase::Queued => {
                self.state.queue.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.waiter));
                self.state.grant();
            }
        }
    }
}

/// Permits held; dropping gives them back.
pub struct Permit {
    state: Rc<State>,
    count: u64,
}

impl Permit {
    /// How many permits are held.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Holds `count` permits from now on (clamped to the capacity). False, and nothing changes, if more are wanted than are free;
    /// who holds some goes before those who wait for all of theirs.
    pub fn resize(&mut self, count: u64) -> bool {
        let count = count.min(self.state.capacity);
        let available = self.state.available.get();
        if count > self.count + available {
            return false;
        }
        self.state.available.set(available + self.count - count);
        self.count = count;
        self.state.grant();
        true
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.state.release(self.count);
    }
}
