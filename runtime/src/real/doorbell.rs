//! Waking a shard's tasks from other threads.
//!
//! A glommio task may only be touched by its own thread: its state is not atomic, and a waker that outlives the task on
//! another thread races with the task's destruction. So other threads never hold the waker of such a task. They hold a
//! slot number and the shard's *doorbell*; one task per shard, which lives as long as its executor, answers the bell and
//! wakes the slots.
//!
//! Invariants:
//! 1. Wakers of tasks stay in their shard's slots; only the doorbell task's own waker crosses threads.
//! 2. A slot pushed is answered: the bell's flag is lowered before the queue is emptied.
//! 3. While the bell rings, further pushes cost no system call.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crossbeam_queue::SegQueue;
use futures::task::AtomicWaker;

use super::RealShard;
use crate::world::{self, World};

/// The part of a shard that other threads may touch.
#[derive(Default)]
pub(crate) struct Doorbell {
    rung: AtomicBool,
    pushed: SegQueue<Push>,
    task: AtomicWaker,
}

enum Push {
    Wake(u32),
    Free(u32),
}

impl Doorbell {
    fn ring(&self, slot: u32) {
        self.pushed.push(Push::Wake(slot));
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.task.wake();
        }
    }

    /// Forgets the doorbell task's waker, on its own thread, when the executor is about to end.
    pub(crate) fn close(&self) {
        self.task.take();
    }
}

/// The wakers of a shard's tasks that wait for other threads.
#[derive(Default)]
pub(crate) struct Slots {
    wakers: Vec<Option<Waker>>,
    free: Vec<u32>,
}

impl Slots {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.wakers.push(None);
            u32::try_from(self.wakers.len() - 1).expect("fewer than 2^32 tasks wait")
        })
    }

    fn set(&mut self, slot: u32, waker: &Waker) {
        match &mut self.wakers[slot as usize] {
            Some(known) if known.will_wake(waker) => {}
            entry => *entry = Some(waker.clone()),
        }
    }

    fn release(&mut self, slot: u32) {
        self.wakers[slot as usize] = None;
        self.free.push(slot);
    }
}

fn wake_slot(slots: &RefCell<Slots>, slot: u32) {
    let waker = slots.borrow_mut().wakers[slot as usize].take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The body of the doorbell task.
pub(crate) async fn answer(shard: Rc<RealShard>) {
    poll_fn(|cx| {
        shard.doorbell.task.register(cx.waker());
        shard.doorbell.rung.store(false, Ordering::SeqCst);
        while let Some(push) = shard.doorbell.pushed.pop() {
            match push {
                Push::Wake(slot) => wake_slot(&shard.slots, slot),
                Push::Free(slot) => shard.slots.borrow_mut().release(slot),
            }
        }
        Poll::<()>::Pending
    })
    .await;
}

/// Turns the waker of the polling task into one that any thread may hold and wake.
#[derive(Default)]
pub(crate) struct CrossWaker(Option<Registered>);

struct Registered {
    ringer: Arc<Ringer>,
    waker: Waker,
}

impl CrossWaker {
    /// A waker for other threads that wakes the task of `cx`. In worlds whose wakers are thread-safe it is the task's own.
    pub(crate) fn arm<'a>(&'a mut self, cx: &'a Context<'_>) -> &'a Waker {
        let Some(World::Real(shard)) = world::try_current() else { return cx.waker() };
        let at_home =
            self.0.as_ref().is_some_and(|known| Arc::ptr_eq(&known.ringer.doorbell, &shard.doorbell));
        if !at_home {
            self.0 = None;
        }
        let known = self.0.get_or_insert_with(|| {
            let slot = shard.slots.borrow_mut().take();
            let ringer = Arc::new(Ringer { slot, doorbell: Arc::clone(&shard.doorbell) });
            Registered { waker: Waker::from(Arc::clone(&ringer)), ringer }
        });
        shard.slots.borrow_mut().set(known.ringer.slot, cx.waker());
        &known.waker
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        match world::try_current() {
            Some(World::Real(shard)) if Arc::ptr_eq(&shard.doorbell, &self.ringer.doorbell) => {
                shard.slots.borrow_mut().release(self.ringer.slot);
            }
            // Freed at the next ring; a waker woken late by a slot's former owner is only a spurious wake-up.
            _ => self.ringer.doorbell.pushed.push(Push::Free(self.ringer.slot)),
        }
    }
}

struct Ringer {
    slot: u32,
    doorbell: Arc<Doorbell>,
}

impl Wake for Ringer {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match world::try_current() {
            Some(World::Real(shard)) if Arc::ptr_eq(&shard.doorbell, &self.doorbell) => {
                wake_slot(&shard.slots, self.slot);
            }
            _ => self.doorbell.ring(self.slot),
        }
    }
}
