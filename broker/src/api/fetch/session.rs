//! Incremental fetch sessions (KIP-227): what a client asks for again and again, remembered. Pure.
//!
//! Sessions live on the shard of their connection. A client that comes back through another shard is told that its session
//! is unknown, and starts a new one.
//! Invariants:
//! I1 `order` and `places` hold the same partitions.
//! I2 partitions that gave records move behind the others, so that none starves where a response cannot hold all.
//! I3 no more than `slots` sessions exist.

use protocol::{ErrorCode, Str, Uuid};
use std::collections::BTreeMap;

/// A session unused for this long may be evicted for a new one, as in Kafka.
const EVICTION_MS: i64 = 120_000;
/// No session.
pub(super) const NO_SESSION: i32 = 0;
/// Asks for a new session.
const INITIAL_EPOCH: i32 = 0;
/// Ends the session.
const FINAL_EPOCH: i32 = -1;

/// A topic as the client named it: by name before version 13, by id since.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TopicKey {
    Name(Str),
    Id(Uuid),
}

/// A partition as the client named it.
pub(super) type PartitionKey = (TopicKey, i32);

/// What a client asks of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) offset: i64,
    pub(super) bytes_max: i32,
    pub(super) current_leader_epoch: i32,
    pub(super) last_fetched_epoch: i32,
}

/// What the client was last told about a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) error: bool,
    pub(super) records: bool,
    pub(super) high_watermark: i64,
    pub(super) log_start_offset: i64,
}

#[derive(Debug)]
struct Cached {
    wanted: Wanted,
    high_watermark: i64,
    log_start_offset: i64,
}

/// How a request is to be answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// As it stands.
    Sessionless,
    /// In full, with a new session if there is room.
    Full,
    /// With what changed, in this session at this epoch.
    Incremental { id: i32, epoch: i32 },
}

#[derive(Debug)]
struct Session {
    epoch: i32,
    by_id: bool,
    used_ms: i64,
    created_ms: i64,
    next_place: u64,
    order: BTreeMap<u64, PartitionKey>,
    places: BTreeMap<PartitionKey, (u64, Cached)>,
}

/// The sessions of a shard.
#[derive(Debug)]
pub(crate) struct Sessions {
    slots: usize,
    sessions: BTreeMap<i32, Session>,
}

impl Session {
    fn new(by_id: bool, now_ms: i64) -> Session {
        Session {
            epoch: next_epoch(INITIAL_EPOCH),
            by_id,
            used_ms: now_ms,
            created_ms: now_ms,
            next_place: 0,
            order: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }

    fn want(&mut self, key: PartitionKey, wanted: Wanted) {
        if let Some((_, cached)) = self.places.get_mut(&key) {
            cached.wanted = wanted;
            return;
        }
        // A name that is remembered must not hold on to the frame that it came in.
        let key = match key {
            (TopicKey::Name(name), partition) => (TopicKey::Name(name.detached()), partition),
            by_id => by_id,
        };
        self.push(key, Cached { wanted, high_watermark: -1, log_start_offset: -1 });
    }

    fn push(&mut self, key: PartitionKey, cached: Cached) {
        let place = self.next_place;
        self.next_place += 1;
        self.order.insert(place, key.clone());
        self.places.insert(key, (place, cached));
    }

    fn forget(&mut self, key: &PartitionKey) -> Option<Cached> {
        let (place, cached) = self.places.remove(key)?;
        self.order.remove(&place);
        Some(cached)
    }

    /// Whether the client must be told, which it then counts as.
    fn tell(&mut self, key: &PartitionKey, told: Told) -> bool {
        let Some((_, cached)) = self.places.get_mut(key) else { return false };
        let must = told.records
            || told.error
            || cached.high_watermark != told.high_watermark
            || cached.log_start_offset != told.log_start_offset;
        // After an error the partition is told again, even if nothing else has changed.
        cached.high_watermark = if told.error { -1 } else { told.high_watermark };
        cached.log_start_offset = told.log_start_offset;
        if told.records
            && let Some(cached) = self.forget(key)
        {
            self.push(key.clone(), cached);
        }
        must
    }
}

impl Sessions {
    /// No sessions yet.
    pub(crate) fn new(slots: usize) -> Sessions {
        Sessions { slots, sessions: BTreeMap::new() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Takes in a request; gives how to answer it and the partitions to fetch, in order.
    pub(super) fn begin(
        &mut self,
        (id, epoch): (i32, i32),
        by_id: bool,
        wanted: Vec<(PartitionKey, Wanted)>,
        forgotten: &[PartitionKey],
        now_ms: i64,
    ) -> Result<(Context, Vec<(PartitionKey, Wanted)>), ErrorCode> {
        if epoch == INITIAL_EPOCH || epoch == FINAL_EPOCH {
            self.sessions.remove(&id);
            let context = if epoch == FINAL_EPOCH { Context::Sessionless } else { Context::Full };
            return Ok((context, wanted));
        }
        let session = self.sessions.get_mut(&id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
        if session.epoch != epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.by_id != by_id {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        for (key, wanted) in wanted {
            session.want(key, wanted);
        }
        for key in forgotten {
            session.forget(key);
        }
        if session.places.is_empty() {
            self.sessions.remove(&id);
            return Ok((Context::Sessionless, Vec::new()));
        }
        session.used_ms = now_ms;
        session.epoch = next_epoch(epoch);
        let wanted = session
            .order
            .values()
            .filter_map(|key| session.places.get(key).map(|(_, cached)| (key.clone(), cached.wanted)));
        Ok((Context::Incremental { id, epoch: session.epoch }, wanted.collect()))
    }

    /// A new session over what is told in full; `NO_SESSION` if there is no room. `random` gives random positive numbers.
    pub(super) fn create(
        &mut self,
        by_id: bool,
        partitions: Vec<(PartitionKey, Wanted, Told)>,
        now_ms: i64,
        mut random: impl FnMut() -> i32,
    ) -> i32 {
        if partitions.is_empty() || !self.make_room(partitions.len(), now_ms) {
            return NO_SESSION;
        }
        let mut session = Session::new(by_id, now_ms);
        for (key, wanted, told) in partitions {
            session.want(key.clone(), wanted);
            session.tell(&key, told);
        }
        let mut id = random();
        while id <= NO_SESSION || self.sessions.contains_key(&id) {
            id = random();
        }
        self.sessions.insert(id, session);
        id
    }

    /// Which of the partitions the client must be told of; an error if the session moved on meanwhile.
    pub(super) fn tell(
        &mut self,
        (id, epoch): (i32, i32),
        told: &[(PartitionKey, Told)],
    ) -> Result<Vec<bool>, ErrorCode> {
        let session = self.sessions.get_mut(&id).filter(|session| session.epoch == epoch);
        let session = session.ok_or(ErrorCode::InvalidFetchSessionEpoch)?;
        Ok(told.iter().map(|(key, told)| session.tell(key, *told)).collect())
    }

    /// Room for one more, by evicting the least recently used if it is stale, or else the smallest settled one that is
    /// smaller than the new one.
    fn make_room(&mut self, partitions: usize, now_ms: i64) -> bool {
        if self.sessions.len() < self.slots {
            return true;
        }
        let stale = |since: i64| now_ms.saturating_sub(since) > EVICTION_MS;
        let oldest = self.sessions.iter().min_by_key(|(id, session)| (session.used_ms, **id));
        let victim = oldest.filter(|(_, session)| stale(session.used_ms)).map(|(id, _)| *id).or_else(|| {
            let settled = self.sessions.iter().filter(|(_, session)| stale(session.created_ms));
            let smallest = settled.min_by_key(|(id, session)| (session.places.len(), **id));
            smallest.filter(|(_, session)| session.places.len() <= partitions).map(|(id, _)| *id)
        });
        victim.is_some_and(|id| self.sessions.remove(&id).is_some())
    }
}

/// The epoch of the request after the one with `epoch`.
fn next_epoch(epoch: i32) -> i32 {
    match epoch {
        i32::MAX => 1,
        epoch => epoch + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(partition: i32) -> PartitionKey {
        (TopicKey::Name("t".into()), partition)
    }

    fn wanted(offset: i64) -> Wanted {
        Wanted { offset, bytes_max: 100, current_leader_epoch: -1, last_fetched_epoch: -1 }
    }

    fn told(high_watermark: i64, records: bool) -> Told {
        Told { error: false, records, high_watermark, log_start_offset: 0 }
    }

    fn started(partitions: i32) -> (Sessions, i32) {
        let mut sessions = Sessions::new(1);
        let all = (0..partitions).map(|p| (key(p), wanted(0), told(0, false))).collect();
        let id = sessions.create(false, all, 0, || 7);
        (sessions, id)
    }

    fn keys(partitions: &[(PartitionKey, Wanted)]) -> Vec<i32> {
        partitions.iter().map(|((_, partition), _)| *partition).collect()
    }

    #[test]
    fn a_session_remembers_and_tells_changes() {
        let (mut sessions, id) = started(3);
        let (context, fetch) =
            sessions.begin((id, 1), false, vec![(key(1), wanted(5))], &[key(2)], 1).expect("known");
        assert_eq!(context, Context::Incremental { id, epoch: 2 });
        assert_eq!(fetch, vec![(key(0), wanted(0)), (key(1), wanted(5))]);
        let both = [(key(0), told(9, true)), (key(1), told(0, false))];
        assert_eq!(sessions.tell((id, 2), &both), Ok(vec![true, false]));
        // The partition that gave records is now behind the other (I2).
        let (_, fetch) = sessions.begin((id, 2), false, vec![], &[], 1).expect("known");
        assert_eq!(keys(&fetch), vec![1, 0]);
    }

    #[test]
    fn errors_are_told_until_they_are_gone_and_once_more() {
        let (mut sessions, id) = started(1);
        let _ = sessions.begin((id, 1), false, vec![], &[], 0);
        let error = Told { error: true, ..told(-1, false) };
        for (told, must) in [(error, true), (error, true), (told(0, false), true), (told(0, false), false)] {
            assert_eq!(sessions.tell((id, 2), &[(key(0), told)]), Ok(vec![must]), "{told:?}");
        }
    }

    #[test]
    fn mistakes_are_refused_as_in_kafka() {
        let (mut sessions, id) = started(1);
        let mut begin =
            |id, epoch, by_id| sessions.begin((id, epoch), by_id, vec![], &[], 0).map(|(context, _)| context);
        assert_eq!(begin(id + 1, 1, false), Err(ErrorCode::FetchSessionIdNotFound));
        assert_eq!(begin(id, 2, false), Err(ErrorCode::InvalidFetchSessionEpoch));
        assert_eq!(begin(id, 1, true), Err(ErrorCode::FetchSessionTopicIdError));
        assert_eq!(begin(id, FINAL_EPOCH, false), Ok(Context::Sessionless));
        assert_eq!(begin(id, 1, false), Err(ErrorCode::FetchSessionIdNotFound));
    }

    #[test]
    fn a_fresh_session_is_not_evicted_and_a_stale_one_is() {
        let (mut sessions, _) = started(1);
        let one = || vec![(key(0), wanted(0), told(0, false))];
        assert_eq!(sessions.create(false, one(), EVICTION_MS, || 8), NO_SESSION);
        assert_eq!(sessions.create(false, one(), EVICTION_MS + 1, || 8), 8);
        assert_eq!(sessions.len(), 1);
    }

    #[test]
    fn epochs_go_round() {
        assert_eq!(next_epoch(i32::MAX), 1);
        assert_eq!(next_epoch(1), 2);
    }
}
