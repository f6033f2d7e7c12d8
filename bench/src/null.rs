//! The null run: the schedule without a broker. What it measures is the generator's own punctuality, the floor below
//! which no latency of this machine means anything.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use runtime::time;

use crate::plan::ProducePlan;
use crate::tally::Tally;

/// Wakes for every record of one producer and counts how late.
pub(crate) async fn run(
    plan: Arc<ProducePlan>,
    producer: u32,
    start: time::Instant,
    tally: Rc<RefCell<Tally>>,
) {
    let schedule = &plan.schedule;
    for j in 0..schedule.producer_records(producer) {
        let due_ns = schedule.due_ns(schedule.number(producer, j));
        time::sleep_until(start + Duration::from_nanos(due_ns)).await;
        if schedule.measured(due_ns) {
            let late = time::now().duration_since(start).saturating_sub(Duration::from_nanos(due_ns));
            tally.borrow_mut().jitter(late.as_nanos() as u64);
        }
    }
}
