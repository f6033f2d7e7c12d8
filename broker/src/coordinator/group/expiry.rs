//! What is forgotten without being asked: offsets that nobody used for `offsets.retention.minutes`, the consumer groups
//! that end with them, and the offsets of deleted topics.

use protocol::{Str, Uuid};

use super::membership::{Membership, State};
use super::message::Timer;
use super::record::Record;
use super::state::CommittedOffset;
use super::turn::Turn;

/// Records that one decision writes at most, so that it stays short. What is left follows at once.
const RECORDS_MAX: usize = 10_000;

/// When the offsets of a group begin to age.
#[derive(Clone, Copy)]
enum Age {
    /// They are in use.
    Never,
    /// Each when it was committed.
    SinceCommit,
    /// All when the last member left.
    Since(i64),
}

impl Turn<'_> {
    /// The timer that looks for expired offsets.
    pub(super) fn expire_offsets(&mut self) {
        let group_ids: Vec<Str> = self.hard.group_ids().cloned().collect();
        for group_id in &group_ids {
            if self.out.records.len() >= RECORDS_MAX {
                return self.set_timer(Timer::Expiry, 0);
            }
            self.expire_group(group_id);
        }
        self.schedule_expiry();
    }

    fn expire_group(&mut self, group_id: &Str) {
        let Some(membership) = self.take(group_id) else { return };
        let age = age(&membership);
        let subscribed = membership.subscribed_topics().filter(|_| membership.state() == State::Stable);
        let mut all_expired = true;
        for (topic, partitions) in self.hard.offsets(group_id).into_iter().flatten() {
            let in_use = subscribed.as_ref().is_some_and(|topics| topics.contains(topic));
            for (partition, committed) in partitions {
                if !in_use && self.is_expired(age, committed) {
                    self.forget_offset(group_id, topic, *partition);
                } else {
                    all_expired = false;
                }
            }
        }
        // A simple group is stored nowhere but in its offsets.
        if all_expired && membership.is_idle() && self.hard.group(group_id).is_some() {
            self.record(Record::GroupMetadata { group_id: group_id.clone(), value: None });
        }
        self.keep(membership);
    }

    fn is_expired(&self, age: Age, committed: &CommittedOffset) -> bool {
        let begins_ms = match age {
            Age::Never => return false,
            Age::SinceCommit => committed.commit_timestamp_ms,
            Age::Since(since_ms) => since_ms,
        };
        match committed.expire_timestamp_ms {
            Some(expires_ms) => self.now_ms >= expires_ms,
            None => self.now_ms.saturating_sub(begins_ms) >= self.hard.config.offsets_retention_ms,
        }
    }

    /// Forgets the offsets of deleted topics, each given by name and id.
    pub(super) fn topics_deleted(&mut self, deleted: &[(Str, Uuid)]) {
        let group_ids: Vec<Str> = self.hard.group_ids().cloned().collect();
        for group_id in &group_ids {
            let Some(offsets) = self.hard.offsets(group_id) else { continue };
            for (topic, topic_id) in deleted {
                for (partition, committed) in offsets.get(topic).into_iter().flatten() {
                    if committed.topic_id.is_zero() || committed.topic_id == *topic_id {
                        self.forget_offset(group_id, topic, *partition);
                    }
                }
            }
        }
    }
}

fn age(membership: &Membership) -> Age {
    match membership.state() {
        // No protocol type: a simple group, which has no members whose leaving could count.
        State::Empty if membership.protocol_type.is_none() => Age::SinceCommit,
        State::Empty => membership.state_since_ms.map_or(Age::SinceCommit, Age::Since),
        State::Stable if membership.subscribed_topics().is_some() => Age::SinceCommit,
        _ => Age::Never,
    }
}
