//! `Partition`: one partition's raft group with what the broker knows of its topic.
//!
//! Concurrency: on its shard only, behind an `Rc`; it outlives its removal as long as a request holds it, and answers
//! with errors from then on.

use super::append::Queue;
use crate::metadata::{TopicImage, TopicSettings};
use protocol::Str;
use raft::Group;
use runtime::sync::Event;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use storage::{Log, PartitionId};

/// One partition.
pub struct Partition {
    /// Topic id and number.
    pub id: PartitionId,
    /// Name of the topic.
    pub topic: Str,
    pub(super) group: Group,
    pub(super) queue: Queue,
    settings: RefCell<Arc<TopicSettings>>,
    ended: Cell<bool>,
    end: Event,
}

impl Partition {
    pub(crate) fn new(id: PartitionId, log: Log, topic: &TopicImage) -> Rc<Partition> {
        Rc::new(Partition {
            id,
            topic: topic.name.clone(),
            group: Group::new(log),
            queue: Queue::default(),
            settings: RefCell::new(Arc::clone(&topic.settings)),
            ended: Cell::new(false),
            end: Event::new(),
        })
    }

    /// The raft group: for coordinators, which propose their own records and read them back.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The topic's settings.
    #[must_use]
    pub fn settings(&self) -> Arc<TopicSettings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Takes over the topic's settings.
    pub(crate) fn configure(&self, topic: &TopicImage) {
        if *self.settings.borrow() != topic.settings {
            self.group.log().set_config(topic.settings.log.clone());
            *self.settings.borrow_mut() = Arc::clone(&topic.settings);
        }
    }

    /// The topic is gone: whoever waits for more is told.
    pub(crate) fn end(&self) {
        self.ended.set(true);
        self.end.notify_all();
    }

    /// Whether the topic is gone.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    pub(super) fn ending(&self) -> runtime::sync::Listener {
        self.end.listen()
    }
}
