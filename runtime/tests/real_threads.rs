//! What only the real world has: threads. Mailboxes under heavy traffic across shards and foreign threads.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runtime::mailbox::{self, ReplySender};
use runtime::shard::{self, Seed, ShardId, ShardsConfig};
use runtime::{task, thread, time};

const MESSAGES: u64 = 1_000_000;

enum Message {
    Number(u64),
    Ask(u64, ReplySender<u64>),
}

fn shards(count: u16) -> ShardsConfig {
    ShardsConfig { count, name: "test".to_owned(), ..ShardsConfig::default() }
}

/// Receives until `MESSAGES` numbers of each of `senders` came; each sender's must rise by one.
async fn expect_in_order(mut inbox: mailbox::Receiver<Message>, total: u64) -> u64 {
    let mut sum = 0;
    let mut next = 0;
    while next < total {
        match inbox.recv().await {
            Some(Message::Number(number)) => {
                assert_eq!(number, next, "the order of one sender is kept");
                sum += number;
                next += 1;
            }
            Some(Message::Ask(number, reply)) => reply.send(number + 1),
            None => panic!("the mailbox closed early"),
        }
    }
    sum
}

#[test]
fn a_million_messages_each_way_between_two_shards() {
    let received = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&received);
    let running = shard::start(shards(2), move |seed: Seed<Message>| {
        let seen = Arc::clone(&seen);
        async move {
            let Seed { id, peers, inbox, .. } = seed;
            let other = peers[usize::from(1 - id.0)].clone();
            let receiving = task::spawn(expect_in_order(inbox, MESSAGES));
            for number in 0..MESSAGES {
                other.send(Message::Number(number)).unwrap();
                // Bursts of odd lengths, so that the receiver falls asleep and is woken in every state.
                if number % 97 == 0 {
                    task::yield_now().await;
                }
                if number % 50_021 == 0 {
                    time::sleep(Duration::from_micros(300)).await;
                }
            }
            seen.fetch_add(receiving.await.unwrap(), Ordering::SeqCst);
        }
    });
    running.unwrap().join();
    assert_eq!(received.load(Ordering::SeqCst), MESSAGES * (MESSAGES - 1));
}

#[test]
fn a_foreign_thread_sends_a_million_messages_and_asks() {
    let (sender, inbox) = mailbox::channel::<Message>();
    let foreign = thread::spawn("foreign", move || {
        for number in 0..MESSAGES {
            sender.send(Message::Number(number)).unwrap();
            if number % 100_003 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
    let sum = shard::block_on_one(expect_in_order(inbox, MESSAGES));
    assert_eq!(sum, MESSAGES * (MESSAGES - 1) / 2);
    foreign.unwrap().join().unwrap();
}

#[test]
fn round_trips_between_shards_never_hang() {
    let running = shard::start(shards(2), |seed: Seed<Message>| async move {
        let Seed { id, peers, mut inbox, .. } = seed;
        if id == ShardId(1) {
            while let Some(message) = inbox.recv().await {
                match message {
                    Message::Ask(number, reply) => reply.send(number + 1),
                    Message::Number(_) => return,
                }
            }
            return;
        }
        for number in 0..20_000 {
            let (reply, answer) = mailbox::reply();
            peers[1].send(Message::Ask(number, reply)).unwrap();
            assert_eq!(answer.await, Some(number + 1));
        }
        peers[1].send(Message::Number(0)).unwrap();
    });
    running.unwrap().join();
}

#[test]
fn a_tokio_thread_asks_a_shard() {
    let (to_shard, mut inbox) = mailbox::channel::<Message>();
    let foreign = thread::spawn("tokio", move || {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        tokio.block_on(async move {
            for number in 0..2_000 {
                let (reply, answer) = mailbox::reply();
                to_shard.send(Message::Ask(number, reply)).unwrap();
                let answer = tokio::time::timeout(Duration::from_secs(10), answer).await;
                assert_eq!(answer.expect("the shard answers"), Some(number + 1));
            }
        });
    });
    shard::block_on_one(async move {
        while let Some(Message::Ask(number, reply)) = inbox.recv().await {
            if number % 7 == 0 {
                time::sleep(Duration::from_micros(100)).await;
            }
            reply.send(number + 1);
        }
    });
    foreign.unwrap().join().unwrap();
}

#[test]
fn a_message_to_a_dead_shard_is_refused_and_its_reply_ends() {
    let (sender, inbox) = mailbox::channel::<Message>();
    drop(inbox);
    let (reply, answer) = mailbox::reply();
    assert_eq!(sender.send(Message::Ask(1, reply)), Err(mailbox::Closed));
    assert_eq!(shard::block_on_one(answer), None);
}

#[test]
fn many_tasks_of_a_shard_wait_for_another() {
    let running = shard::start(shards(2), |seed: Seed<Message>| async move {
        let Seed { id, peers, mut inbox, .. } = seed;
        if id == ShardId(1) {
            let mut held = Vec::new();
            while let Some(message) = inbox.recv().await {
                match message {
                    Message::Ask(number, reply) => held.push((number, reply)),
                    Message::Number(_) => break,
                }
            }
            held.reverse();
            for (number, reply) in held {
                reply.send(number);
            }
            return;
        }
        let asked: Vec<_> = (0..40_000)
            .map(|number| {
                let peer = peers[1].clone();
                task::spawn(async move {
                    let (reply, answer) = mailbox::reply();
                    peer.send(Message::Ask(number, reply)).unwrap();
                    assert_eq!(answer.await, Some(number));
                })
            })
            .collect();
        time::sleep(Duration::from_millis(50)).await;
        peers[1].send(Message::Number(0)).unwrap();
        for asked in asked {
            asked.await.unwrap();
        }
    });
    running.unwrap().join();
}
