//! What the shards' answers mean: alive (a stuck process is to be restarted), ready (clients may be sent here), and why not.

use serde::Serialize;

use super::shards::ShardReport;

/// The state of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Every shard answers.
    pub alive: bool,
    /// Alive, and everything that clients ask for can be served.
    pub ready: bool,
    /// Why not, one sentence each.
    pub reasons: Vec<String>,
}

impl Health {
    /// `serves` says whether the node has come up as a whole.
    pub(super) fn of(answers: &[Option<ShardReport>], serves: bool) -> Health {
        let mut reasons = Vec::new();
        if !serves {
            reasons.push("the node is starting".to_owned());
        }
        for (shard, answer) in answers.iter().enumerate() {
            match answer {
                None => reasons.push(format!("shard {shard} does not answer")),
                Some(report) => {
                    reasons.extend(report.not_ready.iter().map(|reason| format!("shard {shard}: {reason}")));
                }
            }
        }
        Health { alive: answers.iter().all(Option::is_some), ready: reasons.is_empty(), reasons }
    }
}
