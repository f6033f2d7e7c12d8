//! Waking a shard's tasks from other threads, and letting its tasks give way.
//!
//! A glommio task may only be touched by its own thread: its state is not atomic, and a waker that outlives the task on
//! another thread races with the task's destruction. So other threads never hold the waker of such a task. They hold a
//! slot number and the shard's *doorbell*, a socket that one task per shard reads.
//!
//! It is a socket rather than glommio's own way in for foreign wakers, because glommio 0.9 goes to sleep on ready tasks when
//! something arrives in its latency ring between polling for I/O and running tasks, and both its foreign wakers and its
//! preemption timer arrive there (see `executor`). A socket is read like any other I/O.
//!
//! Invariants:
//! 1. No waker of a glommio task leaves its thread.
//! 2. A slot pushed is answered: the bell's flag is lowered after its byte is read and before the queue is emptied.
//! 3. While the bell rings, further pushes cost no system call.

use std::cell::RefCell;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crossbeam_queue::SegQueue;
use futures::io::AsyncRead;
use glommio::net::TcpStream;
use rustix::net::{SendFlags, send};

use super::{RealShard, io_buffer};
use crate::world::{self, World};

/// The part of a shard that other threads may touch.
pub(crate) struct Doorbell {
    rung: AtomicBool,
    pushed: SegQueue<Push>,
    bell: OwnedFd,
}

enum Push {
    Wake(u32),
    Free(u32),
}

impl Doorbell {
    /// A doorbell, and the end of its socket that [`answer`] reads.
    pub(crate) fn new() -> std::io::Result<(Arc<Self>, TcpStream)> {
        let (reading, bell) = std::os::unix::net::UnixStream::pair()?;
        let doorbell = Self { rung: AtomicBool::new(false), pushed: SegQueue::new(), bell: bell.into() };
        Ok((Arc::new(doorbell), io_buffer::adopt_socket(reading.into())))
    }

    fn push(&self, push: Push) {
        self.pushed.push(push);
        self.ring();
    }

    /// Makes the shard look at what was pushed, after its next look at I/O.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            // It fails only when the shard has ended: one byte at most is on its way.
            let _ = send(&self.bell, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
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
pub(crate) async fn answer(shard: Rc<RealShard>, mut reading: TcpStream) {
    poll_fn(|cx| {
        loop {
            let mut bytes = [0; 16];
            match Pin::new(&mut reading).poll_read(cx, &mut bytes) {
                Poll::Pending => return Poll::<()>::Pending,
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(outcome) => panic!("the doorbell's socket broke: {outcome:?}"),
            }
            // A swap, to see what those who found it raised have pushed before.
            shard.doorbell.rung.swap(false, Ordering::SeqCst);
            while let Some(push) = shard.doorbell.pushed.pop() {
                match push {
                    Push::Wake(slot) => wake_slot(&shard.slots, slot),
                    Push::Free(slot) => shard.slots.borrow_mut().release(slot),
                }
            }
            shard.yielded.take().into_iter().for_each(Waker::wake);
        }
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
            // A waker woken late by a slot's former owner is only a spurious wake-up.
            _ => self.ringer.doorbell.push(Push::Free(self.ringer.slot)),
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
            _ => self.doorbell.push(Push::Wake(self.slot)),
        }
    }
}
