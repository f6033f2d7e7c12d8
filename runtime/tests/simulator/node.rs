//! Nodes: shards, exits, kills, restarts, clocks.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runtime::mailbox::{self, ReplySender};
use runtime::shard::{self, Seed, ShardId};
use runtime::sim::{NodeId, Sim, SimConfig};
use runtime::{disk, random, task, time};

const NODE: NodeId = NodeId(0);
const SECOND: Duration = Duration::from_secs(1);

struct Ask(u64, ReplySender<u64>);

#[test]
fn shards_of_a_node_talk_and_the_node_exits() {
    let sim = Sim::new(1, SimConfig::default());
    let sum = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&sum);
    sim.start_node(NODE, 3, move |seed: Seed<Ask>| {
        let sum = Arc::clone(&shared);
        async move {
            let Seed { id, count, peers, mut inbox } = seed;
            assert_eq!((shard::current(), count), (id, 3));
            let answering = task::spawn(async move {
                while let Some(Ask(number, reply)) = inbox.recv().await {
                    reply.send(number * 10);
                }
            });
            let next = &peers[usize::from((id.0 + 1) % count)];
            for number in 0..100 {
                let (reply, answer) = mailbox::reply();
                next.send(Ask(number, reply)).unwrap();
                sum.fetch_add(answer.await.unwrap(), Ordering::Relaxed);
            }
            drop(peers);
            answering.await.unwrap();
        }
    });
    let handle = sim.handle();
    assert!(sim.run_until(10 * SECOND, || !handle.is_running(NODE)), "the node exits with its mains");
    assert_eq!(sum.load(Ordering::Relaxed), 3 * 49_500);
}

#[test]
fn killed_tasks_vanish_with_their_values() {
    struct Dropped(Rc<Cell<u32>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            assert_eq!(shard::current(), ShardId(0), "a value dropped by a kill still has its world");
            self.0.set(self.0.get() + 1);
        }
    }
    thread_local! {
        static DROPS: Rc<Cell<u32>> = Rc::default();
    }
    let sim = Sim::new(2, SimConfig::default());
    let start = || async {
        let value = Dropped(DROPS.with(Rc::clone));
        task::spawn(async move {
            let _value = value;
            std::future::pending::<()>().await;
        });
        std::future::pending::<()>().await;
    };
    sim.start_node(NODE, 1, move |_: Seed<()>| start());
    sim.run_for(SECOND);
    sim.kill(NODE);
    assert_eq!(DROPS.with(|drops| drops.get()), 1);
    assert!(!sim.is_running(NODE));
    sim.restart(NODE);
    sim.run_for(SECOND);
    assert!(sim.is_running(NODE));
    drop(sim);
    assert_eq!(DROPS.with(|drops| drops.get()), 2, "the end of a simulation drops its tasks");
}

#[test]
fn a_lock_dies_with_its_process() {
    let sim = Sim::new(3, SimConfig::default());
    sim.start_node(NODE, 1, |_: Seed<()>| async {
        disk::create_dir_all("/data".as_ref()).await.unwrap();
        disk::sync_dir("/".as_ref()).await.unwrap();
        let _lock = disk::lock_dir("/data".as_ref()).unwrap();
        assert!(disk::lock_dir("/data".as_ref()).is_err());
        std::future::pending::<()>().await;
    });
    sim.run_for(SECOND);
    for crash in [false, true] {
        if crash {
            sim.crash(NODE)
        } else {
            sim.kill(NODE)
        }
        sim.restart(NODE);
        sim.run_for(SECOND);
        assert!(sim.is_running(NODE));
    }
}

#[test]
fn the_clock_leaps_and_moves() {
    let sim = Sim::new(4, SimConfig::default());
    let slept = sim.block_on(Duration::from_secs(100_000), async {
        let start = (time::now(), time::wall_ms());
        time::sleep(Duration::from_secs(86_400)).await;
        (start.0.elapsed(), time::wall_ms() - start.1)
    });
    let (monotonic, wall_ms) = slept.unwrap();
    assert!(monotonic >= Duration::from_secs(86_400) && monotonic < Duration::from_secs(86_401));
    assert!((86_400_000..86_401_000).contains(&wall_ms));
    let before = sim.now();
    let busy = sim.block_on(SECOND, async {
        loop {
            task::yield_now().await;
        }
    });
    assert_eq!(busy, None::<()>, "a busy loop does not stop time");
    assert!(sim.now().duration_since(before) >= SECOND);
}

#[test]
fn a_wall_clock_shifts_alone() {
    let sim = Sim::new(5, SimConfig::default());
    let walls = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&walls);
    sim.start_node(NODE, 1, move |_: Seed<()>| {
        let seen = Arc::clone(&seen);
        async move {
            loop {
                seen.store(time::wall_ms() as u64, Ordering::Relaxed);
                time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    sim.run_for(SECOND);
    let before = walls.load(Ordering::Relaxed);
    sim.shift_wall_clock(NODE, -3_600_000);
    sim.run_for(SECOND);
    let after = walls.load(Ordering::Relaxed);
    assert!(after < before - 3_590_000, "{before} then {after}");
}

#[test]
fn seeds_schedule_differently_and_shards_draw_differently() {
    let orders: BTreeSet<Vec<u32>> = (0..20)
        .map(|seed| {
            let sim = Sim::new(seed, SimConfig::default());
            let order = Rc::new(RefCell::new(Vec::new()));
            for number in 0..6 {
                let order = Rc::clone(&order);
                sim.spawn_client(async move { order.borrow_mut().push(number) });
            }
            sim.run_for(SECOND);
            let order = order.borrow().clone();
            assert_eq!(order.len(), 6);
            order
        })
        .collect();
    assert!(orders.len() > 10, "{orders:?}");

    let sim = Sim::new(1, SimConfig::default());
    let drawn: BTreeSet<u64> =
        (0..10).map(|_| sim.block_on(SECOND, async { random::u64() }).unwrap()).collect();
    assert_eq!(drawn.len(), 10);
}

#[test]
fn timeouts_may_end_early_when_told() {
    let config = SimConfig { early_timeout_permille: 500, ..SimConfig::default() };
    let sim = Sim::new(7, config);
    let early = sim.block_on(3600 * SECOND, async {
        let mut early = 0;
        for _ in 0..100 {
            let start = time::now();
            assert!(time::timeout(SECOND, std::future::pending::<()>()).await.is_err());
            early += u32::from(start.elapsed() < SECOND);
        }
        early
    });
    assert!((20..80).contains(&early.unwrap()), "{early:?}");
}
