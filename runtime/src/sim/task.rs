//! Tasks of a simulation: futures with the shard they belong to, and handles that await them.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::core::SimCore;
use super::node::SimShard;
use crate::task::Queue;

/// A task that has not ended.
pub(crate) struct Task {
    /// Taken out while it is polled.
    pub(crate) future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    pub(crate) shard: Rc<SimShard>,
    pub(crate) queue: Queue,
    pub(crate) waker: Arc<TaskWaker>,
    pub(crate) cancelled: bool,
}

/// Tasks woken since the scheduler last looked. A lock only because wakers must be `Sync`: there is one thread.
#[derive(Default)]
pub(crate) struct Woken(Mutex<Vec<u64>>);

impl Woken {
    pub(crate) fn push(&self, id: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Puts its task among the ready ones, once per turn.
pub(crate) struct TaskWaker {
    pub(crate) id: u64,
    pub(crate) queued: AtomicBool,
    pub(crate) woken: Arc<Woken>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.woken.push(self.id);
        }
    }
}

struct JoinState<T> {
    output: Cell<Option<T>>,
    ended: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// Tells the joiner that the task has ended, even when its future is dropped midway.
struct Ending<T>(Rc<JoinState<T>>);

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        self.0.ended.set(true);
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }
}

/// Awaits a simulated task.
pub(crate) struct SimJoin<T> {
    state: Rc<JoinState<T>>,
    id: u64,
    core: Rc<SimCore>,
}

impl<T: 'static> SimJoin<T> {
    /// Starts `future` as a task of `shard`.
    pub(crate) fn spawn(
        shard: &Rc<SimShard>,
        queue: Queue,
        future: impl Future<Output = T> + 'static,
    ) -> Self {
        let state = Rc::new(JoinState {
            output: Cell::new(None),
            ended: Cell::new(false),
            waker: RefCell::default(),
        });
        let ending = Ending(Rc::clone(&state));
        let body = Box::pin(async move {
            let output = future.await;
            ending.0.output.set(Some(output));
        });
        let id = shard.core.add_task(shard, queue, body);
        Self { state, id, core: Rc::clone(&shard.core) }
    }
}

impl<T> SimJoin<T> {
    /// Drops the task's future at its next turn.
    pub(crate) fn cancel(&self) {
        self.core.cancel_task(self.id);
    }

    /// The output if the task has ended and nobody has taken it.
    pub(crate) fn take(&self) -> Option<T> {
        self.state.output.take()
    }
}

impl<T> Future for SimJoin<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if self.state.ended.get() {
            return Poll::Ready(self.state.output.take());
        }
        *self.state.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}
