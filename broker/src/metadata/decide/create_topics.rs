//! CreateTopics, by clients and by auto-creation. Pure.

use super::placement::{check_assignment, check_replication_factor, partition_record, place};
use super::{Decision, PARTITIONS_PER_REQUEST_MAX, Refusal};
use crate::metadata::image::{Image, RESOURCE_TOPIC};
use crate::metadata::record::MetadataRecord;
use crate::metadata::{settings, topic_name};
use protocol::messages::create_topics_request::CreatableTopic;
use protocol::messages::{ConfigRecord, TopicRecord};
use protocol::{ErrorCode, Str, Uuid};
use std::collections::{BTreeMap, BTreeSet};

/// A topic that will exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Its id.
    pub id: Uuid,
    /// How many partitions it has.
    pub partition_count: i32,
    /// Replicas of each.
    pub replication_factor: i16,
    /// What was configured on it.
    pub configs: BTreeMap<Str, Str>,
}

/// Decides each topic apart, in the order of the request; topics named twice are refused. `new_id` gives random ids.
#[must_use]
pub fn create_topics(
    image: &Image,
    brokers: &[i32],
    topics: &[CreatableTopic],
    mut new_id: impl FnMut() -> Uuid,
) -> Decision<Vec<(Str, Result<Created, Refusal>)>> {
    let mut seen: BTreeMap<&Str, u32> = BTreeMap::new();
    for topic in topics {
        *seen.entry(&topic.name).or_default() += 1;
    }
    let wanted: usize = topics.iter().map(|t| partitions_wanted(image, t)).fold(0, usize::saturating_add);
    let mut records = Vec::new();
    let mut reply = Vec::with_capacity(topics.len());
    let mut created: BTreeSet<&Str> = BTreeSet::new();
    for topic in topics {
        let result = if seen.get(&topic.name).is_some_and(|count| *count > 1) {
            Err(Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name"))
        } else if wanted > PARTITIONS_PER_REQUEST_MAX {
            Err(Refusal::new(
                ErrorCode::PolicyViolation,
                format!("A request can create {PARTITIONS_PER_REQUEST_MAX} partitions at most"),
            ))
        } else {
            create(image, brokers, topic, &created, &mut new_id)
        };
        let result = result.map(|(new, topic_records)| {
            created.insert(&topic.name);
            records.extend(topic_records);
            new
        });
        reply.push((topic.name.clone(), result));
    }
    Decision { records, reply }
}

fn partitions_wanted(image: &Image, topic: &CreatableTopic) -> usize {
    if topic.assignments.is_empty() {
        let count =
            if topic.num_partitions == -1 { image.defaults().num_partitions } else { topic.num_partitions };
        usize::try_from(count).unwrap_or(0)
    } else {
        topic.assignments.len()
    }
}

fn create(
    image: &Image,
    brokers: &[i32],
    topic: &CreatableTopic,
    created: &BTreeSet<&Str>,
    new_id: &mut impl FnMut() -> Uuid,
) -> Result<(Created, Vec<MetadataRecord>), Refusal> {
    check_name(image, &topic.name, created)?;
    let configs = check_configs(topic)?;
    let placed = if topic.assignments.is_empty() {
        place_all(image, brokers, topic)?
    } else {
        place_by_hand(brokers, topic)?
    };
    let id = new_id();
    // Copied: what metadata holds must not hold on to the frame that it came in.
    let name = topic.name.detached();
    let mut records = Vec::with_capacity(1 + configs.len() + placed.len());
    records.push(MetadataRecord::Topic(TopicRecord { name: name.clone(), topic_id: id }));
    for (key, value) in &configs {
        records.push(MetadataRecord::Config(ConfigRecord {
            resource_type: RESOURCE_TOPIC,
            resource_name: name.clone(),
            name: key.clone(),
            value: Some(value.clone()),
        }));
    }
    let created = Created {
        id,
        partition_count: i32::try_from(placed.len()).unwrap_or(i32::MAX),
        replication_factor: placed.first().and_then(|r| i16::try_from(r.len()).ok()).unwrap_or(0),
        configs,
    };
    for (partition, replicas) in (0..).zip(placed) {
        records.push(partition_record(id, partition, replicas));
    }
    Ok((created, records))
}

fn check_name(image: &Image, name: &Str, created: &BTreeSet<&Str>) -> Result<(), Refusal> {
    if **name == *topic_name::CLUSTER_METADATA {
        let text = format!("Creation of internal topic {name} is prohibited");
        return Err(Refusal::new(ErrorCode::InvalidRequest, text));
    }
    topic_name::check(name).map_err(|text| Refusal::new(ErrorCode::InvalidTopicException, text))?;
    if image.topic(name).is_some() {
        return Err(Refusal::new(ErrorCode::TopicAlreadyExists, format!("Topic '{name}' already exists")));
    }
    // Scanned only for names that can collide at all.
    if name.contains(['.', '_']) {
        let existing = image.topics().map(|t| &t.name).chain(created.iter().copied());
        if let Some(other) = existing.into_iter().find(|other| topic_name::collide(name, other)) {
            let text = format!("Topic '{name}' collides with existing topic: {other}");
            return Err(Refusal::new(ErrorCode::InvalidTopicException, text));
        }
    }
    Ok(())
}

fn check_configs(topic: &CreatableTopic) -> Result<BTreeMap<Str, Str>, Refusal> {
    let refuse = |text: String| Refusal::new(ErrorCode::InvalidConfig, text);
    let mut configs = BTreeMap::new();
    for config in &topic.configs {
        let Some(value) = &config.value else {
            return Err(refuse(format!("Null value not supported for topic configs: {}", config.name)));
        };
        settings::check(&config.name, value).map_err(refuse)?;
        configs.insert(config.name.detached(), value.detached());
    }
    Ok(configs)
}

fn place_all(image: &Image, brokers: &[i32], topic: &CreatableTopic) -> Result<Vec<Vec<i32>>, Refusal> {
    if topic.replication_factor < -1 || topic.replication_factor == 0 {
        let text = "Replication factor must be larger than 0, or -1 to use the default value";
        return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, text));
    }
    if topic.num_partitions < -1 || topic.num_partitions == 0 {
        let text = "Number of partitions was set to an invalid non-positive value";
        return Err(Refusal::new(ErrorCode::InvalidPartitions, text));
    }
    let factor = match topic.replication_factor {
        -1 => i16::try_from(image.defaults().default_replication_factor).unwrap_or(i16::MAX),
        given => given,
    };
    check_replication_factor(brokers, factor)?;
    let count = i32::try_from(partitions_wanted(image, topic)).unwrap_or(i32::MAX);
    Ok((0..count).map(|partition| place(brokers, partition, factor)).collect())
}

fn place_by_hand(brokers: &[i32], topic: &CreatableTopic) -> Result<Vec<Vec<i32>>, Refusal> {
    let invalid = |text: &str| Refusal::new(ErrorCode::InvalidRequest, text);
    if topic.replication_factor != -1 {
        return Err(invalid(
            "A manual partition assignment was specified, but replication factor was not set to -1",
        ));
    }
    if topic.num_partitions != -1 {
        return Err(invalid(
            "A manual partition assignment was specified, but numPartitions was not set to -1",
        ));
    }
    let mut placed = BTreeMap::new();
    let mut factor = None;
    for assignment in &topic.assignments {
        check_assignment(brokers, &assignment.broker_ids, factor)?;
        factor = Some(assignment.broker_ids.len());
        if placed.insert(assignment.partition_index, assignment.broker_ids.clone()).is_some() {
            let text = format!(
                "Found multiple manual partition assignments for partition {}",
                assignment.partition_index
            );
            return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, text));
        }
    }
    if (0..).zip(placed.keys()).any(|(expected, partition): (i32, &i32)| expected != *partition) {
        let text = "partitions should be a consecutive 0-based integer sequence";
        return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, text));
    }
    Ok(placed.into_values().collect())
}
