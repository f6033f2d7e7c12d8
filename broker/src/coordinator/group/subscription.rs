//! Which topics the members of a group of protocol type `consumer` subscribe to.
//!
//! The metadata that a consumer sends is int16 version, then version 0 of Kafka's ConsumerProtocolSubscription, which
//! every later version begins with: an array of topic names, and bytes that only assignors understand.

use std::collections::BTreeSet;

use bytes::Bytes;
use protocol::Str;
use protocol::messages::Message;
use protocol::messages::consumer_protocol_subscription::ConsumerProtocolSubscription;
use protocol::wire::Decoder;

use super::membership::{Member, Membership};

/// Protocol type of groups whose members are Kafka consumers.
const CONSUMER: &str = "consumer";

impl Membership {
    /// True for a group of consumers.
    pub(super) fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_ref().is_some_and(|it| *it == *CONSUMER)
    }

    /// Topics that the members subscribe to with the protocol in use; `None` when that cannot be known.
    pub(super) fn subscribed_topics(&self) -> Option<BTreeSet<Str>> {
        if !self.is_of_consumers() {
            return None;
        }
        let mut topics = BTreeSet::new();
        for member in self.members().values() {
            topics.extend(self.topics_of(member)?);
        }
        Some(topics)
    }

    fn topics_of(&self, member: &Member) -> Option<Vec<Str>> {
        parse(member.metadata(self.protocol.as_ref()?))
    }

    /// True when a member reads this topic, or may.
    pub(super) fn subscribes_to(&self, topic: &str) -> bool {
        let topics = self.subscribed_topics();
        topics.map_or(self.is_of_consumers(), |topics| topics.contains(topic))
    }
}

fn parse(metadata: Bytes) -> Option<Vec<Str>> {
    let mut decoder = Decoder::new(metadata);
    decoder.i16().ok()?;
    let subscription = ConsumerProtocolSubscription::decode(&mut decoder, 0).ok()?;
    Some(subscription.topics)
}
