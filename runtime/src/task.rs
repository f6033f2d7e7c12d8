//! Tasks of a shard in two queues; a panicking task aborts the process (the binary's panic hook).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::sim::SimJoin;
use crate::world::{self, World};

/// A task queue of a shard, with its share of the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// What a client waits for: 1000 shares.
    Request,
    /// What must not starve requests (segment writing, retention, recovery): 100 shares. Its loops give way by
    /// [`yield_if_needed`].
    Background,
}

/// Runs `future` on this shard in the caller's queue, first when the caller yields: what the caller has borrowed may
/// be borrowed by the task. Dropping the handle detaches the task.
pub fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    match world::current() {
        World::Real(_) => {
            // Not `spawn_local`: that one runs the task at once, inside this call.
            let queue = glommio::executor().current_task_queue();
            let task = glommio::spawn_local_into(future, queue);
            JoinHandle(Inner::Real(task.expect("the queue of a running task lives").detach()))
        }
        World::Sim(shard) => {
            JoinHandle(Inner::Sim(SimJoin::spawn(&shard, shard.core.current_queue(), future)))
        }
    }
}

/// Runs `future` on this shard in `queue`. Dropping the handle detaches the task.
pub fn spawn_in<T: 'static>(queue: Queue, future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    match world::current() {
        World::Real(shard) => JoinHandle(Inner::Real(shard.spawn_in(queue, future))),
        World::Sim(shard) => JoinHandle(Inner::Sim(SimJoin::spawn(&shard, queue, future))),
    }
}

/// Awaits a task's output: `None` when the task was cancelled.
pub struct JoinHandle<T>(Inner<T>);

enum Inner<T> {
    Real(glommio::task::JoinHandle<T>),
    Sim(SimJoin<T>),
}

impl<T> JoinHandle<T> {
    pub(crate) fn from_sim(join: SimJoin<T>) -> Self {
        Self(Inner::Sim(join))
    }

    /// Drops the task's future at its next turn; no effect once it has finished.
    pub fn cancel(self) {
        match self.0 {
            Inner::Real(handle) => handle.cancel(),
            Inner::Sim(join) => join.cancel(),
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match &mut self.get_mut().0 {
            Inner::Real(handle) => Pin::new(handle).poll(cx),
            Inner::Sim(join) => Pin::new(join).poll(cx),
        }
    }
}

/// Lets other tasks run and I/O be looked at before this task goes on.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        match world::current() {
            World::Real(shard) => shard.poll_yield(cx.waker()),
            World::Sim(_) => cx.waker().wake_by_ref(),
        }
        Poll::Pending
    })
    .await;
}

/// A cooperative point for long loops: gives way when the shard's loops have run for 500 µs.
pub async fn yield_if_needed() {
    let needed = match world::current() {
        World::Real(shard) => shard.slice_is_over(),
        World::Sim(shard) => shard.core.draws_yield(),
    };
    if needed {
        yield_now().await;
    }
}
