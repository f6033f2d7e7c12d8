//! The wakers of the tasks that wait for one thing; owns no value and no order among them.

use std::cell::RefCell;
use std::task::Waker;

/// A set of wakers with stable keys, so that a waiter may go away before it is woken.
#[derive(Default)]
pub(crate) struct Waiters {
    slots: RefCell<Slots>,
}

#[derive(Default)]
struct Slots {
    wakers: Vec<Option<Waker>>,
    free: Vec<usize>,
}

impl Waiters {
    /// Remembers `waker` under `key`, which is given one at the first call.
    pub(crate) fn register(&self, key: &mut Option<usize>, waker: &Waker) {
        let slots = &mut *self.slots.borrow_mut();
        let index = *key.get_or_insert_with(|| {
            slots.free.pop().unwrap_or_else(|| {
                slots.wakers.push(None);
                slots.wakers.len() - 1
            })
        });
        match &mut slots.wakers[index] {
            Some(known) if known.will_wake(waker) => {}
            slot => *slot = Some(waker.clone()),
        }
    }

    /// Gives `key` back.
    pub(crate) fn remove(&self, key: &mut Option<usize>) {
        if let Some(index) = key.take() {
            let slots = &mut *self.slots.borrow_mut();
            slots.wakers[index] = None;
            slots.free.push(index);
        }
    }

    /// Wakes every waiter once; each registers again when it waits on.
    pub(crate) fn wake_all(&self) {
        let woken: Vec<Waker> = self.slots.borrow_mut().wakers.iter_mut().filter_map(Option::take).collect();
        woken.into_iter().for_each(Waker::wake);
    }
}
