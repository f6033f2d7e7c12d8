//! The story of a run: faults, starts and ends, and what the node logged, with the virtual time of each.
//!
//! Owns: the subscriber by which the log of node and simulator comes here; what happened often enough to be counted.
//! One run has one thread, so the story is the thread's.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

/// What the suite as a whole must have met: without these a green run proves little.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Sometimes {
    /// A batch that was sent again got the offset of the first time.
    Deduplicated,
    /// So did one of those that the node had learned before it was started anew.
    DeduplicatedAfterStart,
    /// A group's offset was stored, and read.
    OffsetRead,
    /// A start went on behind a journal block that a power cut had torn or garbled.
    TornTailCut,
    /// A produce was refused because the disk was full.
    FullDiskRejection,
    /// A flush failed, and the node ended.
    FailedFlush,
    /// A start replayed journal blocks.
    Replayed,
    /// A start refused a damaged journal.
    DamageRefused,
    /// A power cut struck while the node was starting.
    CutDuringStart,
}

/// All of them.
pub(crate) const SOMETIMES: [Sometimes; 9] = [
    Sometimes::Deduplicated,
    Sometimes::DeduplicatedAfterStart,
    Sometimes::OffsetRead,
    Sometimes::TornTailCut,
    Sometimes::FullDiskRejection,
    Sometimes::FailedFlush,
    Sometimes::Replayed,
    Sometimes::DamageRefused,
    Sometimes::CutDuringStart,
];

#[derive(Default)]
struct Story {
    lines: Vec<String>,
    met: Vec<Sometimes>,
    /// A power cut has damaged a write to the journal, and no start has got past it yet.
    torn: bool,
    last_logged: String,
}

thread_local! {
    static STORY: RefCell<Story> = RefCell::default();
}

/// Adds a line.
pub(crate) fn note(text: impl fmt::Display) {
    let now = runtime::time::now();
    let since_start = now.duration_since(now - Duration::MAX);
    let line = format!("{:>12.6} s  {text}", since_start.as_secs_f64());
    STORY.with_borrow_mut(|story| story.lines.push(line));
}

/// Counts something that should happen sometimes.
pub(crate) fn met(what: Sometimes) {
    STORY.with_borrow_mut(|story| story.met.push(what));
}

/// The node serves: it got past whatever its journal's end looked like.
pub(crate) fn started() {
    STORY.with_borrow_mut(|story| {
        if std::mem::take(&mut story.torn) {
            story.met.push(Sometimes::TornTailCut);
        }
    });
}

/// Runs `body` with an empty story; gives its result, the lines, and what was met.
pub(crate) fn tell<T>(body: impl FnOnce() -> T) -> (T, Vec<String>, Vec<Sometimes>) {
    STORY.set(Story::default());
    let result = tracing::subscriber::with_default(Teller, body);
    let story = STORY.take();
    (result, story.lines, story.met)
}

/// Brings the log into the story: everything of the simulator, the rest from INFO on.
struct Teller;

impl Subscriber for Teller {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && (*metadata.level() <= Level::INFO || metadata.target().starts_with("runtime::sim"))
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(format!("{} {}:", event.metadata().level(), event.metadata().target()));
        event.record(&mut text);
        let Text(text) = text;
        let fates = text.contains("simulated power cut");
        // One line for each of many files would hide the rest of the story; a death is told outside of any world.
        if (fates && !text.contains(".journal")) || text.contains("simulated death") {
            return;
        }
        STORY.with_borrow_mut(|story| {
            story.torn |= fates && !text.contains("torn: 0, garbled: 0");
            if text.contains("storage is open") && !text.contains("blocks: 0") {
                story.met.push(Sometimes::Replayed);
            }
        });
        // What a node says again and again is told once.
        if STORY.with_borrow_mut(|story| std::mem::replace(&mut story.last_logged, text.clone()) != text) {
            note(text);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
