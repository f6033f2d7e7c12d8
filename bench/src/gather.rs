//! The coordinator of a run: starts the generator's shards, adds up what they count, tells the observer and writes the
//! histogram log.

use std::path::PathBuf;
use std::time::Duration;

use runtime::shard::{self, ShardsConfig};
use runtime::{mailbox, time};

use crate::error::BenchError;
use crate::hlog::HistogramLog;
use crate::options::Generator;
use crate::plan::{Event, Plan};
use crate::progress::{Observer, Pace};
use crate::tally::Tally;
use crate::worker;

/// What a run came to.
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    /// Why something ended before it should have.
    pub(crate) broken: Vec<String>,
    pub(crate) start_unix_ms: i64,
}

/// Runs a plan on the generator's shards to its end.
pub(crate) fn gather(generator: &Generator, plan: Plan, observer: Observer) -> Result<Outcome, BenchError> {
    let (events, inbox) = mailbox::channel();
    let pace = Pace::of(&plan);
    let config =
        ShardsConfig { count: generator.shards, name: "bench".to_owned(), ..ShardsConfig::default() };
    let running = shard::start(config, move |seed| worker::main(seed, plan.clone(), events.clone()));
    let running = running.map_err(|error| BenchError::Start(error.to_string()))?;
    let listener = Listener { shards: generator.shards, hlog: generator.hlog.clone(), pace, observer };
    let outcome = shard::block_on_one(listener.listen(inbox));
    running.join();
    outcome
}

/// Takes in what the shards of a run say.
pub(crate) struct Listener {
    pub(crate) shards: u16,
    pub(crate) hlog: Option<PathBuf>,
    pub(crate) pace: Pace,
    pub(crate) observer: Observer,
}

impl Listener {
    /// Listens until the last shard has finished.
    pub(crate) async fn listen(mut self, mut inbox: mailbox::Receiver<Event>) -> Result<Outcome, BenchError> {
        let mut outcome =
            Outcome { tally: Tally::default(), broken: Vec::new(), start_unix_ms: time::wall_ms() };
        let mut start = None;
        let mut log = None;
        let mut unfinished = self.shards;
        while unfinished > 0 {
            match inbox.recv().await {
                Some(Event::Started(at)) => {
                    let ahead = at.duration_since(time::now());
                    outcome.start_unix_ms = time::wall_ms() + ahead.as_millis() as i64;
                    start = Some(at);
                    let path = self.hlog.as_deref();
                    log = path.map(|path| HistogramLog::create(path, outcome.start_unix_ms)).transpose()?;
                }
                Some(Event::Counted(lately)) => {
                    let elapsed = start.map_or(Duration::ZERO, time::Instant::elapsed);
                    outcome.tally.merge(&lately);
                    if let Some(log) = &mut log {
                        log.add(&lately, elapsed)?;
                    }
                    (self.observer)(&self.pace.progress(elapsed, &outcome.tally, &lately));
                }
                Some(Event::Broken(why)) => outcome.broken.push(why),
                Some(Event::Finished) => unfinished -= 1,
                None => break,
            }
        }
        if let (Some(log), Some(start)) = (log, start) {
            log.finish(start.elapsed())?;
        }
        // Nothing was sent: that is no run at all.
        match start {
            Some(_) => Ok(outcome),
            None => Err(BenchError::Start(outcome.broken.join("; "))),
        }
    }
}
