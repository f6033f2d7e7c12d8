//! Lives of one simulated node that end in a power cut, a kill, a failed flush or a full disk: what tests against a model share.

use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use runtime::shard::Seed;
use runtime::sim::{NodeId, Sim, SimConfig};

const NODE: NodeId = NodeId(0);
const LIVES: u32 = 6;
const DISK_BYTES: u64 = 8 << 20;

/// What the lives leave behind them.
pub(super) trait Model: Default + Send + 'static {
    /// How many lives have recovered and been checked.
    fn lives(&self) -> u64;
    /// What went wrong.
    fn error(&self) -> Option<&str>;
}

/// How long a life lasts, and how tight a full disk is.
pub(super) struct Course {
    /// Milliseconds before a fault, at most.
    pub(super) before_ms: u64,
    /// Bytes that a full disk still takes, at most.
    pub(super) room_bytes: u64,
    /// Time from the fault to the end, at most.
    pub(super) after: Duration,
    /// The steps in which that time is drawn.
    pub(super) after_step: Duration,
}

pub(super) fn lock<M>(model: &Mutex<M>) -> MutexGuard<'_, M> {
    model.lock().expect("no test task panics with the lock held")
}

/// The seeds to run: those of `STORAGE_SEEDS=from..to`, else the usual ones.
pub(super) fn seeds(usual: Range<u64>) -> Range<u64> {
    let wanted = std::env::var("STORAGE_SEEDS").ok().and_then(|range| {
        let (from, to) = range.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    wanted.unwrap_or(usual)
}

/// Runs one seed: every life is one call of `live`.
pub(super) fn run<M, F>(
    seed: u64,
    course: &Course,
    model: &Arc<Mutex<M>>,
    live: impl Fn(Arc<Mutex<M>>) -> F + Clone + Send + 'static,
) -> Sim
where
    M: Model,
    F: Future<Output = ()> + 'static,
{
    let sim = Sim::new(seed, SimConfig { disk_capacity_bytes: DISK_BYTES, ..SimConfig::default() });
    let main = {
        let model = Arc::clone(model);
        move |_: Seed<()>| live(Arc::clone(&model))
    };
    sim.start_node::<(), _, _>(NODE, 1, main);
    let mut entropy = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move |n: u64| {
        entropy = entropy.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (entropy >> 33) % n
    };
    let steps = u64::try_from(course.after.as_nanos() / course.after_step.as_nanos()).expect("few");
    for _ in 0..LIVES {
        sim.run_for(Duration::from_millis(20 + next(course.before_ms)));
        match next(8) {
            0 => sim.disk(NODE).fail_next_sync(),
            1 => sim.disk(NODE).set_capacity(sim.disk(NODE).used_bytes() + next(course.room_bytes)),
            _ => {}
        }
        sim.run_for(course.after_step * u32::try_from(next(steps)).expect("few"));
        if sim.is_running(NODE) {
            if next(3) == 0 { sim.kill(NODE) } else { sim.crash(NODE) }
        }
        sim.disk(NODE).set_capacity(DISK_BYTES);
        sim.restart(NODE);
        assert!(lock(model).error().is_none(), "seed {seed}: {:?}", lock(model).error());
    }
    let before = lock(model).lives();
    sim.run_until(Duration::from_secs(20), || lock(model).lives() > before);
    assert!(lock(model).error().is_none(), "seed {seed}: {:?}", lock(model).error());
    sim
}
