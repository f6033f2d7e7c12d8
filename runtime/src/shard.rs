//! Starting the shards of a process: one thread and one executor each, and a mailbox from everyone to everyone.
//!
//! Invariants:
//! 1. Either every shard starts or none runs its main.
//! 2. A panic in a shard ends the process (in builds that unwind, it surfaces in [`Running::join`]).

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;

use crate::mailbox;
use crate::real;
use crate::world::{self, World};

/// A shard's number within its process, from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ShardId(pub u16);

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The shard of the current task.
pub fn current() -> ShardId {
    match world::current() {
        World::Real(shard) => shard.id,
        World::Sim(shard) => shard.id,
    }
}

/// What a shard's main is given.
#[derive(Debug)]
pub struct Seed<M> {
    /// This shard.
    pub id: ShardId,
    /// How many shards the process has.
    pub count: u16,
    /// A sender to each shard, oneself at `id`.
    pub peers: Vec<mailbox::Sender<M>>,
    /// Where this shard's messages arrive.
    pub inbox: mailbox::Receiver<M>,
}

/// One seed per shard, each with senders to all.
pub(crate) fn seeds<M: Send>(count: u16) -> Vec<Seed<M>> {
    let (peers, inboxes): (Vec<_>, Vec<_>) = (0..count).map(|_| mailbox::channel()).unzip();
    let seeds = inboxes.into_iter().enumerate();
    seeds.map(|(id, inbox)| Seed { id: ShardId(id as u16), count, peers: peers.clone(), inbox }).collect()
}

/// How the shards of a process are laid out.
#[derive(Clone, Debug)]
pub struct ShardsConfig {
    /// How many shards, at least one.
    pub count: u16,
    /// The CPU of each shard, taken in turn when there are fewer; `None` leaves the placement to the kernel.
    pub cpus: Option<Vec<usize>>,
    /// Prefix of the threads' names.
    pub name: String,
}

impl Default for ShardsConfig {
    fn default() -> Self {
        Self { count: 1, cpus: None, name: "shard".to_owned() }
    }
}

/// The CPUs that this process may use, in rising order.
///
/// # Errors
/// What the system says.
pub fn usable_cpus() -> std::io::Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Why the shards did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration asks for nothing.
    #[error("at least one shard and, where CPUs are named, at least one CPU are needed")]
    Nothing,
    /// The system refused a thread.
    #[error("cannot start the thread of shard {shard}: {source}")]
    Thread {
        /// The shard that has no thread.
        shard: ShardId,
        /// What the system said.
        source: std::io::Error,
    },
    /// glommio could not make an executor: no io_uring, too little lockable memory, no such CPU.
    #[error("cannot make the executor of shard {shard}: {reason}")]
    Executor {
        /// The shard that has no executor.
        shard: ShardId,
        /// What glommio said.
        reason: String,
    },
}

/// Starts every shard and runs `main` on each.
///
/// # Errors
/// [`StartError`] when any shard could not be made; none has run its main then.
pub fn start<M, F, Fut>(config: ShardsConfig, main: F) -> Result<Running, StartError>
where
    M: Send + 'static,
    F: Fn(Seed<M>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    if config.count == 0 || config.cpus.as_ref().is_some_and(Vec::is_empty) {
        return Err(StartError::Nothing);
    }
    let (ended_sender, ended) = mpsc::channel();
    let mut starting = Vec::new();
    for seed in seeds(config.count) {
        starting.push(start_one(&config, seed, main.clone(), ended_sender.clone())?);
    }
    let mut waiting = Vec::new();
    for Starting { id, ready, go } in starting {
        // A thread that ends without a word has panicked, and its message stands on standard error.
        let made = ready.recv().unwrap_or_else(|_| Err("its thread panicked".to_owned()));
        made.map_err(|reason| StartError::Executor { shard: id, reason })?;
        waiting.push(go);
    }
    for go in waiting {
        // A shard that was ready waits for this word alone.
        let _ = go.send(());
    }
    Ok(Running { count: config.count, ended })
}

struct Starting {
    id: ShardId,
    ready: mpsc::Receiver<Result<(), String>>,
    go: mpsc::Sender<()>,
}

type Ended = Result<(), Box<dyn Any + Send>>;

fn start_one<M, F, Fut>(
    config: &ShardsConfig,
    seed: Seed<M>,
    main: F,
    ended: mpsc::Sender<Ended>,
) -> Result<Starting, StartError>
where
    M: Send + 'static,
    F: Fn(Seed<M>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let id = seed.id;
    let cpu = config.cpus.as_ref().map(|cpus| cpus[usize::from(id.0) % cpus.len()]);
    let options = real::Options { cpu };
    let (ready_sender, ready) = mpsc::channel();
    let (go, go_receiver) = mpsc::channel();
    let body = move || {
        let executor = match options.make() {
            Ok(executor) => executor,
            Err(reason) => return drop(ready_sender.send(Err(reason))),
        };
        let told = ready_sender.send(Ok(()));
        if told.is_err() || go_receiver.recv().is_err() {
            return; // another shard could not start
        }
        let outcome =
            catch_unwind(AssertUnwindSafe(|| real::run(&executor, id, async move { main(seed).await })));
        // Nobody listens when the process no longer waits for its shards.
        let _ = ended.send(outcome);
    };
    crate::thread::spawn(&format!("{}-{id}", config.name), body)
        .map_err(|source| StartError::Thread { shard: id, source })?;
    Ok(Starting { id, ready, go })
}

/// Shards that run.
#[derive(Debug)]
pub struct Running {
    count: u16,
    ended: mpsc::Receiver<Ended>,
}

impl Running {
    /// Blocks the calling thread until every shard's main has ended.
    ///
    /// # Panics
    /// With a shard's panic, in builds that unwind.
    pub fn join(self) {
        for _ in 0..self.count {
            match self.ended.recv() {
                Ok(Ok(())) => {}
                Ok(Err(panic)) => resume_unwind(panic),
                Err(_) => return,
            }
        }
    }
}

/// Runs `main` on one executor on the calling thread, as shard 0: for tools, load generators and tests.
///
/// # Panics
/// When the executor cannot be made; [`crate::check::environment`] tells why beforehand.
pub fn block_on_one<T: 'static>(main: impl Future<Output = T> + 'static) -> T {
    let executor = real::Options::default().make();
    let executor = executor.unwrap_or_else(|reason| panic!("cannot make an executor: {reason}"));
    real::run(&executor, ShardId(0), main)
}
