//! Power cuts: what was acknowledged is there, once, in order.

use crate::client::Client;
use crate::world::*;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// What a producer was told.
#[derive(Default)]
struct Told {
    acknowledged: Vec<(i64, u32)>,
    sent: u32,
}

#[test]
fn nothing_that_was_acknowledged_is_lost_or_there_twice() {
    for seed in 0..20 {
        one_history(1000 + seed);
    }
}

/// An idempotent producer, with the power cut under it again and again.
fn one_history(seed: u64) {
    let world = World::new(seed);
    let address = world.address();
    let producer_id = world.run(async move {
        let mut client = Client::connect(address).await;
        create_topic(&mut client, "t", 1).await;
        let request = init_producer_id();
        client.call(4, &request).await.expect("answered").producer_id
    });
    let told = Rc::new(RefCell::new(Told::default()));
    let producer = world.sim.spawn_client(produce_for_ever(address, producer_id, Rc::clone(&told)));
    for round in 0..4 {
        world.sim.run_for(Duration::from_millis(37 + 61 * round));
        world.crash();
    }
    world.sim.run_for(Duration::from_millis(500));
    producer.cancel();
    let all = world.run(async move { read_all(&mut Client::connect(address).await, "t", 0).await });
    let told = told.borrow();
    assert!(told.acknowledged.len() > 10, "seed {seed}: {} acknowledged", told.acknowledged.len());
    for (offset, value) in &told.acknowledged {
        let at = usize::try_from(*offset).expect("an offset");
        assert_eq!(all.get(at), Some(&(*offset, *value)), "seed {seed}: acknowledged at {offset}");
    }
    for (at, (offset, value)) in all.iter().enumerate() {
        assert_eq!(*offset, at as i64, "seed {seed}: offsets without gaps");
        assert_eq!(*value, at as u32, "seed {seed}: every value once, in order");
    }
    assert!(all.len() <= told.sent as usize, "seed {seed}");
}

/// One record after the other; one without an answer is sent again, as clients do.
async fn produce_for_ever(address: std::net::SocketAddr, producer_id: i64, told: Rc<RefCell<Told>>) {
    let mut client = Client::connect(address).await;
    for value in 0_u32.. {
        told.borrow_mut().sent = value + 1;
        loop {
            let bytes = batch(value, 1, Some((producer_id, value as i32)));
            let request = produce_request("t", -1, vec![(0, bytes)]);
            let answer = match client.call(9, &request).await {
                Ok(response) => response.responses[0].partition_responses[0].clone(),
                Err(_) => {
                    client = Client::connect(address).await;
                    continue;
                }
            };
            assert_eq!(answer.error_code, 0, "{answer:?}");
            told.borrow_mut().acknowledged.push((answer.base_offset, value));
            break;
        }
    }
}
