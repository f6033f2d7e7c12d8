//! What is asked of a cluster before a load starts: API versions, metadata, the topic (made when it is missing), the
//! partitions' leaders and offsets. The answers are plain data that every shard of the generator gets a copy of.
//!
//! 1. A load starts only when every partition has a leader that answers for it: a topic that was just made is not
//!    measured while it settles.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use protocol::messages::metadata_request::MetadataRequestTopic;
use protocol::messages::metadata_response::MetadataResponseTopic;
use protocol::messages::{
    ApiVersionsRequest, CreateTopicsRequest, FetchRequest, InitProducerIdRequest, ListOffsetsRequest,
    MetadataRequest, MetadataResponse, ProduceRequest, Request,
};
use protocol::{ApiKey, ErrorCode, Str, Uuid};
use runtime::time;

use super::connection::{Connection, resolve};
use crate::error::BenchError;
use crate::options::Target;
use crate::report::ClusterFacts;

/// Pause between two tries while a broker starts or a topic settles; short, so that it does not blur the time that a
/// broker needs to start.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// How long a broker may take to create a topic, ms.
const CREATE_TIMEOUT_MS: i32 = 30_000;

/// Timestamps that ListOffsets takes for the two ends of a log.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// Log start offset.
    Earliest,
    /// High watermark.
    Latest,
}

/// A cluster and the topic of the run, as they were when the load started.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(crate) cluster_id: Option<String>,
    pub(crate) topic: Str,
    pub(crate) topic_id: Uuid,
    /// Address of each broker that leads a partition of the topic.
    pub(crate) brokers: BTreeMap<i32, SocketAddr>,
    /// Leader of each partition, by partition.
    pub(crate) leaders: Vec<i32>,
    /// Until when it is worth trying again what the cluster is not ready for.
    deadline: time::Instant,
    brokers_named: usize,
    versions: BTreeMap<i16, (i16, i16)>,
}

/// The version to speak of `R`: the newest that both sides know.
fn common_version<R: Request>(served: &BTreeMap<i16, (i16, i16)>) -> Result<i16, BenchError> {
    let (min, max) = R::KEY.versions();
    let unsupported = || BenchError::Unsupported { request: R::NAME, min, max };
    let (oldest, newest) = served.get(&(R::KEY as i16)).copied().ok_or_else(unsupported)?;
    let version = newest.min(max);
    if version >= oldest.max(min) { Ok(version) } else { Err(unsupported()) }
}

impl Cluster {
    /// Connects, makes the topic when it is missing and waits until its partitions can be used, for as long as the
    /// options say.
    pub(crate) async fn prepare(target: &Target) -> Result<Self, BenchError> {
        let deadline = time::now() + Duration::from_secs_f64(target.wait_s);
        loop {
            let tried = match Self::try_prepare(target, deadline).await {
                Ok(cluster) => cluster.answers_everywhere().await.map(|()| cluster),
                Err(error) => Err(error),
            };
            match tried {
                Ok(cluster) => return Ok(cluster),
                Err(error) if time::now() >= deadline || !may_pass(&error) => return Err(error),
                Err(_) => time::sleep(RETRY_PAUSE).await,
            }
        }
    }

    async fn try_prepare(target: &Target, deadline: time::Instant) -> Result<Self, BenchError> {
        let mut connection = Connection::open(resolve(&target.bootstrap)?).await?;
        let versions = api_versions(&mut connection).await?;
        loop {
            let metadata = metadata(&mut connection, &versions, &target.topic).await?;
            match Self::from_metadata(&metadata, versions.clone(), target, deadline)? {
                Some(cluster) => return Ok(cluster),
                None if topic_error(&metadata) == Some(ErrorCode::UnknownTopicOrPartition.code()) => {
                    create_topic(&mut connection, &versions, target).await?;
                }
                None if time::now() >= deadline => {
                    let code = topic_error(&metadata).unwrap_or(ErrorCode::LeaderNotAvailable.code());
                    return Err(BenchError::refused(format!("topic {}", target.topic), code, None));
                }
                None => {}
            }
            time::sleep(RETRY_PAUSE).await;
        }
    }

    /// The cluster, once Metadata names a leader for every partition.
    fn from_metadata(
        metadata: &MetadataResponse,
        versions: BTreeMap<i16, (i16, i16)>,
        target: &Target,
        deadline: time::Instant,
    ) -> Result<Option<Self>, BenchError> {
        let Some(topic) = metadata.topics.first().filter(|topic| topic.error_code == 0) else {
            return Ok(None);
        };
        let Some(leaders) = leaders(topic) else { return Ok(None) };
        if leaders.len() != target.partitions as usize {
            return Err(BenchError::Partitions {
                topic: target.topic.clone(),
                found: leaders.len() as i32,
                wanted: target.partitions,
            });
        }
        let mut brokers = BTreeMap::new();
        for broker in &metadata.brokers {
            if leaders.contains(&broker.node_id) {
                brokers.insert(broker.node_id, resolve(&format!("{}:{}", &*broker.host, broker.port))?);
            }
        }
        if !leaders.iter().all(|leader| brokers.contains_key(leader)) {
            return Ok(None);
        }
        Ok(Some(Cluster {
            cluster_id: metadata.cluster_id.as_ref().map(ToString::to_string),
            topic: Str::from(target.topic.clone()),
            topic_id: topic.topic_id,
            brokers,
            leaders,
            deadline,
            brokers_named: metadata.brokers.len(),
            versions,
        }))
    }

    /// The version to speak of `R`.
    pub(crate) fn version<R: Request>(&self) -> Result<i16, BenchError> {
        common_version::<R>(&self.versions)
    }

    /// A new connection to a broker that leads a partition.
    pub(crate) async fn connect(&self, broker: i32) -> Result<Connection, BenchError> {
        let address = self.brokers.get(&broker).copied();
        Connection::open(address.expect("a broker that leads a partition has an address")).await
    }

    /// Partitions that a broker leads, in order.
    pub(crate) fn led_by(&self, broker: i32) -> impl Iterator<Item = u32> + '_ {
        self.leaders
            .iter()
            .zip(0..)
            .filter(move |(leader, _)| **leader == broker)
            .map(|(_, partition)| partition)
    }

    /// Offsets of one end of every partition, by partition.
    pub(crate) async fn offsets(&self, end: End) -> Result<Vec<i64>, BenchError> {
        let mut found = vec![0; self.leaders.len()];
        for broker in self.brokers.keys() {
            let mut connection = self.connect(*broker).await?;
            let partitions: Vec<u32> = self.led_by(*broker).collect();
            for (partition, offset) in self.offsets_on(&mut connection, &partitions, end).await? {
                if let Some(entry) = found.get_mut(partition as usize) {
                    *entry = offset;
                }
            }
        }
        Ok(found)
    }

    /// Offsets of one end of partitions that the connection's broker leads.
    pub(crate) async fn offsets_on(
        &self,
        connection: &mut Connection,
        partitions: &[u32],
        end: End,
    ) -> Result<Vec<(u32, i64)>, BenchError> {
        let timestamp = match end {
            End::Earliest => -2,
            End::Latest => -1,
        };
        let partition = |partition: &u32| ListOffsetsPartition {
            partition_index: *partition as i32,
            timestamp,
            ..Default::default()
        };
        let topic = ListOffsetsTopic {
            name: self.topic.clone(),
            partitions: partitions.iter().map(partition).collect(),
        };
        let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
        let response = connection.call(&request, self.version::<ListOffsetsRequest>()?).await?;
        let answers: Vec<_> = response.topics.into_iter().flat_map(|topic| topic.partitions).collect();
        if let Some(bad) = answers.iter().find(|answer| answer.error_code != 0) {
            return Err(BenchError::refused(
                format!("offsets of partition {}", bad.partition_index),
                bad.error_code,
                None,
            ));
        }
        let answered: BTreeSet<u32> = answers.iter().map(|answer| answer.partition_index as u32).collect();
        if !partitions.iter().all(|partition| answered.contains(partition)) {
            return Err(BenchError::Malformed {
                request: "ListOffsets",
                reason: "not every partition was answered".to_owned(),
            });
        }
        Ok(answers.into_iter().map(|answer| (answer.partition_index as u32, answer.offset)).collect())
    }

    /// A new producer id and its epoch (KIP-98). The first one that a broker gives may take it a moment.
    pub(crate) async fn producer_id(&self, connection: &mut Connection) -> Result<(i64, i16), BenchError> {
        let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
        loop {
            let response = connection.call(&request, self.version::<InitProducerIdRequest>()?).await?;
            let error = match response.error_code {
                0 => return Ok((response.producer_id, response.producer_epoch)),
                code => BenchError::refused("a producer id", code, None),
            };
            if time::now() >= self.deadline || !may_pass(&error) {
                return Err(error);
            }
            time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Every leader answers for its partitions (invariant 1).
    async fn answers_everywhere(&self) -> Result<(), BenchError> {
        self.offsets(End::Latest).await.map(drop)
    }

    /// What a report says of the cluster.
    pub(crate) fn facts(&self) -> ClusterFacts {
        let api_versions = self.versions.iter().map(|(key, range)| {
            let name =
                ApiKey::from_i16(*key).map_or_else(|| format!("Api{key}"), |api| api.name().to_owned());
            (name, *range)
        });
        let used_versions = [
            (ProduceRequest::KEY.name(), self.version::<ProduceRequest>()),
            (FetchRequest::KEY.name(), self.version::<FetchRequest>()),
        ];
        ClusterFacts {
            cluster_id: self.cluster_id.clone(),
            brokers: self.brokers_named,
            api_versions: api_versions.collect(),
            used_versions: used_versions
                .into_iter()
                .filter_map(|(name, version)| Some((name, version.ok()?)))
                .collect(),
        }
    }
}

/// Leaders by partition, once every partition from 0 on has one.
fn leaders(topic: &MetadataResponseTopic) -> Option<Vec<i32>> {
    let by_partition: BTreeMap<i32, i32> = topic
        .partitions
        .iter()
        .filter(|partition| partition.error_code == 0 && partition.leader_id >= 0)
        .map(|partition| (partition.partition_index, partition.leader_id))
        .collect();
    let whole = by_partition.len() == topic.partitions.len()
        && by_partition.keys().zip(0..).all(|(partition, place)| *partition == place);
    (whole && !by_partition.is_empty()).then(|| by_partition.into_values().collect())
}

fn topic_error(metadata: &MetadataResponse) -> Option<i16> {
    metadata.topics.first().map(|topic| topic.error_code).filter(|code| *code != 0)
}

/// What the broker serves. Version 0 of the question is one that every broker answers.
async fn api_versions(connection: &mut Connection) -> Result<BTreeMap<i16, (i16, i16)>, BenchError> {
    let response = connection.call(&ApiVersionsRequest::default(), 0).await?;
    if response.error_code != 0 {
        return Err(BenchError::refused("API versions", response.error_code, None));
    }
    Ok(response.api_keys.into_iter().map(|api| (api.api_key, (api.min_version, api.max_version))).collect())
}

async fn metadata(
    connection: &mut Connection,
    versions: &BTreeMap<i16, (i16, i16)>,
    topic: &str,
) -> Result<MetadataResponse, BenchError> {
    let topic = MetadataRequestTopic { name: Some(Str::from(topic.to_owned())), ..Default::default() };
    let request =
        MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation: false, ..Default::default() };
    connection.call(&request, common_version::<MetadataRequest>(versions)?).await
}

async fn create_topic(
    connection: &mut Connection,
    versions: &BTreeMap<i16, (i16, i16)>,
    target: &Target,
) -> Result<(), BenchError> {
    let config = |(name, value): (&str, &str)| CreatableTopicConfig {
        name: Str::from(name.to_owned()),
        value: Some(Str::from(value.to_owned())),
    };
    let topic = CreatableTopic {
        name: Str::from(target.topic.clone()),
        num_partitions: target.partitions,
        replication_factor: target.replication_factor,
        configs: target.topic_config_pairs()?.into_iter().map(config).collect(),
        ..Default::default()
    };
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: CREATE_TIMEOUT_MS, ..Default::default() };
    let response = connection.call(&request, common_version::<CreateTopicsRequest>(versions)?).await?;
    let Some(result) = response.topics.into_iter().next() else {
        return Err(BenchError::Malformed { request: "CreateTopics", reason: "no topic in it".to_owned() });
    };
    match ErrorCode::from_code(result.error_code) {
        Some(ErrorCode::None | ErrorCode::TopicAlreadyExists) => Ok(()),
        _ => {
            let message = result.error_message.map(|text| text.to_string());
            Err(BenchError::refused(format!("creating topic {}", target.topic), result.error_code, message))
        }
    }
}

/// Whether waiting may help: the broker starts, or the topic settles. A broker whose only node is not in service yet
/// refuses to place replicas.
fn may_pass(error: &BenchError) -> bool {
    match error {
        BenchError::Connect { .. } | BenchError::Lost(_) => true,
        BenchError::Refused { code, .. } => ErrorCode::from_code(*code)
            .is_some_and(|known| known.is_retriable() || known == ErrorCode::InvalidReplicationFactor),
        _ => false,
    }
}
