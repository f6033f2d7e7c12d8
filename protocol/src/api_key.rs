//! [`ApiKey`]: which requests exist, in which versions, and where they are served.

pub use crate::messages::api_keys::ApiKey;

use crate::messages::api_keys::APIS;

/// Where Kafka serves an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// On the listeners for clients.
    Broker,
    /// On the listeners of the controllers.
    Controller,
}

/// What is known of an API.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) key: ApiKey,
    pub(crate) name: &'static str,
    pub(crate) valid: (i16, i16),
    pub(crate) stable: (i16, i16),
    pub(crate) flexible_from: Option<i16>,
    pub(crate) listeners: &'static [Listener],
}

impl ApiKey {
    fn api(self) -> &'static Api {
        let found = APIS.iter().find(|api| api.key == self);
        found.expect("the generated table has a row for each key")
    }

    /// Every API, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        APIS.iter().map(|api| api.key)
    }

    /// The API with this number, `None` where Kafka 4.4 has none.
    pub fn from_i16(number: i16) -> Option<Self> {
        let at = APIS.binary_search_by_key(&number, |api| api.key as i16).ok()?;
        APIS.get(at).map(|api| api.key)
    }

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        self.api().name
    }

    /// The lowest and the highest version that Kafka 4.4 advertises: those that will not change any more. Topics are
    /// named by id alone from Produce 13, Fetch 13, OffsetCommit 10, OffsetFetch 10 and TxnOffsetCommit 6 on.
    pub fn versions(self) -> (i16, i16) {
        self.api().stable
    }

    /// The lowest and the highest version that exists, also those that may still change.
    pub fn valid_versions(self) -> (i16, i16) {
        self.api().valid
    }

    /// Whether `version` has the flexible encoding (KIP-482).
    pub fn flexible(self, version: i16) -> bool {
        self.api().flexible_from.is_some_and(|from| version >= from)
    }

    /// Where Kafka serves it.
    pub fn listeners(self) -> &'static [Listener] {
        self.api().listeners
    }
}

impl std::fmt::Display for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_and_holes_are_none() {
        for key in ApiKey::all() {
            assert_eq!(ApiKey::from_i16(key as i16), Some(key));
            let (min, max) = key.versions();
            assert!(min <= max && max <= key.valid_versions().1, "{key}");
        }
        // 4 to 7 were ZooKeeper's.
        for number in [-1, 4, 5, 6, 7, 95, i16::MAX, i16::MIN] {
            assert_eq!(ApiKey::from_i16(number), None);
        }
    }

    #[test]
    fn known_ranges() {
        assert_eq!(ApiKey::Produce.versions(), (3, 13));
        assert_eq!(ApiKey::InitProducerId.versions(), (0, 5));
        assert_eq!(ApiKey::InitProducerId.valid_versions(), (0, 6));
        assert!(ApiKey::Produce.flexible(9) && !ApiKey::Produce.flexible(8));
        assert!(!ApiKey::SaslHandshake.flexible(1));
        assert_eq!(ApiKey::Vote.listeners(), [Listener::Controller]);
        assert_eq!(ApiKey::ApiVersions.name(), "ApiVersions");
    }
}
