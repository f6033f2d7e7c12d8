//! Clock and timers of the current world; owns no calendar.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::{Add, AddAssign, Sub};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::real;
use crate::sim::SimSleep;
use crate::world::{self, World};

/// How long [`sleep_until_sharp`] stays awake at most.
const AWAKE: Duration = Duration::from_micros(100);

/// A point on the current world's monotonic clock, in nanoseconds since the process (or the simulation) began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(u64);

impl Instant {
    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`, zero if `earlier` is later.
    pub fn duration_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Time since `self`.
    pub fn elapsed(self) -> Duration {
        now().duration_since(self)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(saturating_nanos(duration)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_sub(saturating_nanos(duration)))
    }
}

fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Now, on the monotonic clock. Works on foreign threads too.
pub fn now() -> Instant {
    match world::try_current() {
        Some(World::Real(_)) | None => real::clock::now(),
        Some(World::Sim(shard)) => shard.core.now(),
    }
}

/// Milliseconds since the Unix epoch, as Kafka's timestamps. Works on foreign threads too.
pub fn wall_ms() -> i64 {
    match world::try_current() {
        Some(World::Real(_)) | None => real::clock::wall_ms(),
        Some(World::Sim(shard)) => shard.wall_ms(),
    }
}

/// Waits for `duration`.
pub async fn sleep(duration: Duration) {
    sleep_until(now() + duration).await;
}

/// Waits until `deadline`; returns at once if it has passed.
pub async fn sleep_until(deadline: Instant) {
    Sleep::until(deadline).await;
}

/// As [`sleep_until`], but on time: a thread that sleeps is woken some ten microseconds late, so that this one stays awake, and
/// does nothing else, for the last 100 µs. A wait that is short anyway is an ordinary one.
pub async fn sleep_until_sharp(deadline: Instant) {
    if deadline.duration_since(now()) < 4 * AWAKE {
        return sleep_until(deadline).await;
    }
    sleep_until(deadline - AWAKE).await;
    if matches!(world::try_current(), Some(World::Real(_))) {
        while now() < deadline {
            std::hint::spin_loop();
        }
    } else {
        sleep_until(deadline).await;
    }
}

/// Runs `future` for at most `duration`.
///
/// # Errors
/// [`Elapsed`] if the time ran out first; `future` is dropped then.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Result<F::Output, Elapsed> {
    let deadline = now() + given(duration);
    let mut future = pin!(future);
    // Made only when needed: a future that is ready at once never touches the timer wheel.
    let mut sleep = None;
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        let sleep = sleep.get_or_insert_with(|| Sleep::until(deadline));
        Pin::new(sleep).poll(cx).map(|()| Err(Elapsed))
    })
    .await
}

/// The time that a timeout of `duration` gives: less, now and then, in a simulation that is told so.
fn given(duration: Duration) -> Duration {
    match world::current() {
        World::Real(_) => duration,
        World::Sim(shard) => match shard.core.draws_early_timeout() {
            Some(permille) => duration / 1000 * permille as u32,
            None => duration,
        },
    }
}

/// The time given to [`timeout`] ran out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time allowed has elapsed")
    }
}

impl std::error::Error for Elapsed {}

enum Sleep {
    Real(glommio::timer::Timer),
    Sim(SimSleep),
}

impl Sleep {
    fn until(deadline: Instant) -> Self {
        match world::current() {
            World::Real(_) => Sleep::Real(glommio::timer::Timer::new(deadline.duration_since(now()))),
            World::Sim(shard) => Sleep::Sim(SimSleep::until(&shard.core, deadline)),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.get_mut() {
            Sleep::Real(timer) => Pin::new(timer).poll(cx).map(|_| ()),
            Sleep::Sim(sleep) => Pin::new(sleep).poll(cx),
        }
    }
}
