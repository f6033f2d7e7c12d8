//! Time, tasks, and waiting inside a shard.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use runtime::sync::{Event, Permits, Watch, oneshot};
use runtime::task::{self, Queue};
use runtime::{mailbox, random, shard, time};

crate::in_both_worlds!(
    sleeping_takes_its_time,
    timeouts_end_and_do_not_end,
    tasks_are_joined_cancelled_and_detached,
    tasks_of_both_queues_run,
    a_spawned_task_does_not_run_inside_spawn,
    an_event_wakes_all_listeners,
    a_notification_before_listening_is_not_seen,
    a_watch_wakes_on_change,
    permits_are_served_in_order,
    permits_held_grow_and_shrink,
    a_cancelled_wait_for_permits_blocks_nobody,
    a_oneshot_delivers_or_closes,
    a_mailbox_keeps_order_and_closes,
    a_reply_arrives_or_ends,
    random_numbers_stay_below,
);

const MS: Duration = Duration::from_millis(1);

async fn a_spawned_task_does_not_run_inside_spawn(_: PathBuf) {
    for queue in [None, Some(Queue::Request), Some(Queue::Background)] {
        let state = Rc::new(RefCell::new(0));
        let seen = Rc::clone(&state);
        let borrowed = state.borrow_mut();
        let body = async move { *seen.borrow_mut() += 1 };
        let task = match queue {
            None => task::spawn(body),
            Some(queue) => task::spawn_in(queue, body),
        };
        drop(borrowed);
        assert_eq!(task.await, Some(()));
        assert_eq!(*state.borrow(), 1);
    }
}

async fn sleeping_takes_its_time(_: PathBuf) {
    let start = time::now();
    let wall = time::wall_ms();
    time::sleep(20 * MS).await;
    assert!(start.elapsed() >= 20 * MS);
    assert!(time::wall_ms() >= wall + 19);
    assert!(wall > 1_600_000_000_000, "wall time is this century's");
    time::sleep_until(start).await;
    assert_eq!(start.duration_since(time::now()), Duration::ZERO, "durations saturate");
}

async fn timeouts_end_and_do_not_end(_: PathBuf) {
    assert_eq!(time::timeout(MS, std::future::pending::<()>()).await, Err(time::Elapsed));
    let slow = async {
        time::sleep(2 * MS).await;
        7
    };
    assert_eq!(time::timeout(Duration::from_secs(30), slow).await, Ok(7));
}

async fn tasks_are_joined_cancelled_and_detached(_: PathBuf) {
    assert_eq!(task::spawn(async { 5 }).await, Some(5));
    let ran = Rc::new(Cell::new(0));
    let count = |add: u32, after: Duration| {
        let ran = Rc::clone(&ran);
        async move {
            time::sleep(after).await;
            ran.set(ran.get() + add);
        }
    };
    drop(task::spawn(count(1, MS)));
    let doomed = task::spawn(count(10, 5 * MS));
    task::yield_now().await;
    doomed.cancel();
    time::sleep(30 * MS).await;
    assert_eq!(ran.get(), 1, "the detached task ran, the cancelled one did not");
}

async fn tasks_of_both_queues_run(_: PathBuf) {
    let background = task::spawn_in(Queue::Background, async {
        for _ in 0..1000 {
            task::yield_if_needed().await;
        }
        shard::current()
    });
    let request = task::spawn_in(Queue::Request, async { shard::current() });
    assert_eq!(request.await, background.await);
}

async fn an_event_wakes_all_listeners(_: PathBuf) {
    let event = Event::new();
    let woken = Rc::new(Cell::new(0));
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (listener, woken) = (event.listen(), Rc::clone(&woken));
            task::spawn(async move {
                listener.await;
                woken.set(woken.get() + 1);
            })
        })
        .collect();
    task::yield_now().await;
    assert_eq!(woken.get(), 0);
    drop(event.listen());
    event.notify_all();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(woken.get(), 10);
}

async fn a_notification_before_listening_is_not_seen(_: PathBuf) {
    let event = Event::new();
    event.notify_all();
    assert!(time::timeout(MS, event.wait()).await.is_err());
    let listener = event.listen();
    event.notify_all();
    listener.await;
}

async fn a_watch_wakes_on_change(_: PathBuf) {
    let watch = Watch::new(0_i64);
    let seen = watch.clone();
    let waiting = task::spawn(async move { seen.wait_until(|value| value >= 3).await });
    let seen = watch.clone();
    let changed = task::spawn(async move { seen.changed_from(0).await });
    task::yield_now().await;
    watch.set(0);
    watch.set(1);
    assert_eq!(changed.await, Some(1));
    watch.set(5);
    assert_eq!(waiting.await, Some(5));
    assert_eq!(watch.get(), 5);
}

async fn permits_are_served_in_order(_: PathBuf) {
    let permits = Permits::new(10);
    let all = permits.acquire(1_000).await;
    assert_eq!((all.count(), permits.available()), (10, 0));
    let order = Rc::new(RefCell::new(Vec::new()));
    let mut tasks = Vec::new();
    for (name, count) in [("large", 10), ("small", 1), ("other", 1)] {
        let (mine, order) = (permits.clone(), Rc::clone(&order));
        tasks.push(task::spawn(async move {
            let permit = mine.acquire(count).await;
            order.borrow_mut().push(name);
            time::sleep(MS).await;
            drop(permit);
        }));
        // The order of arrival is the order of these three alone.
        while permits.waiting() < tasks.len() {
            task::yield_now().await;
        }
    }
    assert!(permits.try_acquire(1).is_none());
    drop(all);
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(order.borrow().first(), Some(&"large"), "a large wish is not starved by small ones");
    assert_eq!(permits.available(), 10);
}

async fn permits_held_grow_and_shrink(_: PathBuf) {
    let permits = Permits::new(10);
    let mut held = permits.acquire(6).await;
    assert!(held.resize(11) && held.count() == 10, "clamped to the capacity");
    assert!(held.resize(4) && permits.available() == 6);
    let other = permits.acquire(5).await;
    assert!(!held.resize(6) && held.count() == 4 && permits.available() == 1);
    let waiting = task::spawn({
        let permits = permits.clone();
        async move { permits.acquire(4).await.count() }
    });
    time::sleep(Duration::from_millis(1)).await;
    assert!(held.resize(5), "who holds some goes first");
    assert!(held.resize(1));
    assert_eq!(waiting.await, Some(4));
    drop((held, other));
    assert_eq!(permits.available(), 10);
}

async fn a_cancelled_wait_for_permits_blocks_nobody(_: PathBuf) {
    let permits = Permits::new(4);
    let held = permits.acquire(3).await;
    assert!(time::timeout(MS, permits.acquire(4)).await.is_err());
    let one = time::timeout(Duration::from_secs(30), permits.acquire(1)).await.unwrap();
    drop((held, one));
    assert_eq!(permits.available(), 4);
    assert_eq!(permits.waiting(), 0);
}

async fn a_oneshot_delivers_or_closes(_: PathBuf) {
    let (sender, receiver) = oneshot::channel();
    let waiting = task::spawn(receiver);
    task::yield_now().await;
    sender.send(3);
    assert_eq!(waiting.await, Some(Some(3)));
    let (sender, receiver) = oneshot::channel::<u32>();
    drop(sender);
    assert_eq!(receiver.await, None);
}

async fn a_mailbox_keeps_order_and_closes(_: PathBuf) {
    let (sender, mut receiver) = mailbox::channel();
    let sending = task::spawn(async move {
        for number in 0..1000 {
            sender.send(number).unwrap();
            if number % 10 == 0 {
                task::yield_now().await;
            }
        }
    });
    for number in 0..1000 {
        assert_eq!(receiver.recv().await, Some(number));
    }
    assert_eq!(receiver.recv().await, None);
    assert_eq!(receiver.try_recv(), None);
    sending.await.unwrap();
}

async fn a_reply_arrives_or_ends(_: PathBuf) {
    let (sender, receiver) = mailbox::reply();
    let waiting = task::spawn(receiver);
    task::yield_now().await;
    sender.send("answer");
    assert_eq!(waiting.await, Some(Some("answer")));
    let (sender, receiver) = mailbox::reply::<u8>();
    drop(sender);
    assert_eq!(receiver.await, None);
}

async fn random_numbers_stay_below(_: PathBuf) {
    let mut seen = [false; 5];
    for _ in 0..1000 {
        seen[random::below(5) as usize] = true;
    }
    assert_eq!(seen, [true; 5]);
    let mut bytes = [0; 64];
    random::fill(&mut bytes);
    assert_ne!(bytes, [0; 64]);
    assert_ne!(random::u64(), random::u64());
}
