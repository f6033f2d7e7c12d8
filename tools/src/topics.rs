//! What a cluster says of its topics: partitions, offsets, configurations.

use std::collections::BTreeMap;

use protocol::messages::describe_configs_request::DescribeConfigsResource;
use protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use protocol::messages::metadata_request::MetadataRequestTopic;
use protocol::messages::metadata_response::MetadataResponseTopic;
use protocol::messages::{DescribeConfigsRequest, ListOffsetsRequest, MetadataRequest};
use protocol::{ErrorCode, Str};
use serde::Serialize;

use crate::client::{Cluster, NEWEST, refused};
use crate::exit::{Exit, Failure};
use crate::output::{Report, table};

/// The resource type of a topic in DescribeConfigs.
const TOPIC_RESOURCE: i8 = 2;

/// The source of a value that is set on the topic itself (KIP-226).
const SOURCE_TOPIC: i8 = 1;

/// The timestamps by which ListOffsets finds the two ends of a log.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

/// Described topics.
#[derive(Debug, Serialize)]
pub(crate) struct Topics {
    pub(crate) topics: Vec<Topic>,
}

/// One topic.
#[derive(Debug, Serialize)]
pub(crate) struct Topic {
    pub(crate) name: String,
    /// Topic id (KIP-516), where the cluster has them.
    pub(crate) topic_id: String,
    pub(crate) internal: bool,
    pub(crate) partitions: Vec<Partition>,
    /// Configurations that are set on the topic itself.
    pub(crate) configs: BTreeMap<String, Option<String>>,
}

/// One partition.
#[derive(Debug, Serialize)]
pub(crate) struct Partition {
    pub(crate) partition: i32,
    pub(crate) leader: i32,
    pub(crate) leader_epoch: i32,
    pub(crate) replicas: Vec<i32>,
    pub(crate) isr: Vec<i32>,
    /// Log start offset; absent while the partition has no leader.
    pub(crate) start_offset: Option<i64>,
    /// High watermark; absent while the partition has no leader.
    pub(crate) end_offset: Option<i64>,
}

impl Report for Topics {
    fn text(&self) -> String {
        if self.topics.is_empty() {
            return "there are no topics; make one with `millrace topic create NAME`".to_owned();
        }
        self.topics.iter().map(Topic::text).collect::<Vec<_>>().join("\n\n")
    }
}

impl Topic {
    fn text(&self) -> String {
        let list = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
        let offset = |offset: Option<i64>| offset.map_or_else(|| "?".to_owned(), |o| o.to_string());
        let row = |p: &Partition| {
            let cells = [p.partition.to_string(), p.leader.to_string(), list(&p.replicas), list(&p.isr)];
            cells.into_iter().chain([offset(p.start_offset), offset(p.end_offset)]).collect()
        };
        let rows: Vec<Vec<String>> = self.partitions.iter().map(row).collect();
        let set = |(name, value): (&String, &Option<String>)| {
            format!("\n  {name} = {}", value.as_deref().unwrap_or("(unset)"))
        };
        let configs: String = self.configs.iter().map(set).collect();
        let head = ["PARTITION", "LEADER", "REPLICAS", "ISR", "START", "END"];
        format!(
            "{} (id {}, {} partitions){configs}\n{}",
            self.name,
            self.topic_id,
            self.partitions.len(),
            table(&head, &rows)
        )
    }
}

/// The topics of these names, or all of them, sorted by name.
pub(crate) fn find(cluster: &mut Cluster, names: &[String]) -> Result<Vec<Topic>, Failure> {
    let topic =
        |name: &String| MetadataRequestTopic { name: Some(Str::from(name.clone())), ..Default::default() };
    let request = MetadataRequest {
        topics: (!names.is_empty()).then(|| names.iter().map(topic).collect()),
        // Asking must not create.
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    let metadata = cluster.metadata(&request)?;
    let mut problems = Vec::new();
    let mut found = Vec::new();
    for topic in metadata.topics {
        let name = topic.name.as_ref().map(ToString::to_string).unwrap_or_default();
        if topic.error_code == ErrorCode::None.code() {
            found.push(from_metadata(name, topic));
        } else {
            problems.extend(refused(&format!("topic {name}"), topic.error_code, None).problems);
        }
    }
    if !problems.is_empty() {
        return Err(Failure { exit: Exit::Refused, problems });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn from_metadata(name: String, topic: MetadataResponseTopic) -> Topic {
    let mut partitions: Vec<Partition> = topic
        .partitions
        .into_iter()
        .map(|p| Partition {
            partition: p.partition_index,
            leader: p.leader_id,
            leader_epoch: p.leader_epoch,
            replicas: p.replica_nodes,
            isr: p.isr_nodes,
            start_offset: None,
            end_offset: None,
        })
        .collect();
    partitions.sort_by_key(|p| p.partition);
    let (topic_id, internal) = (topic.topic_id.to_string(), topic.is_internal);
    Topic { name, topic_id, internal, partitions, configs: BTreeMap::new() }
}

/// Both ends of every partition that has a leader, asked of that leader.
pub(crate) fn add_offsets(cluster: &mut Cluster, topics: &mut [Topic]) -> Result<(), Failure> {
    let starts = end_offsets(cluster, topics, EARLIEST)?;
    let ends = end_offsets(cluster, topics, LATEST)?;
    for topic in topics {
        for partition in &mut topic.partitions {
            let key = (topic.name.clone(), partition.partition);
            partition.start_offset = starts.get(&key).copied();
            partition.end_offset = ends.get(&key).copied();
        }
    }
    Ok(())
}

/// The high watermark of every partition that has a leader, by topic and partition.
pub(crate) fn high_watermarks(
    cluster: &mut Cluster,
    topics: &[Topic],
) -> Result<BTreeMap<(String, i32), i64>, Failure> {
    end_offsets(cluster, topics, LATEST)
}

fn end_offsets(
    cluster: &mut Cluster,
    topics: &[Topic],
    timestamp: i64,
) -> Result<BTreeMap<(String, i32), i64>, Failure> {
    let mut found = BTreeMap::new();
    for broker in cluster.broker_ids() {
        let led = |topic: &Topic| ListOffsetsTopic {
            name: Str::from(topic.name.clone()),
            partitions: topic
                .partitions
                .iter()
                .filter(|p| p.leader == broker)
                .map(|p| ListOffsetsPartition {
                    partition_index: p.partition,
                    timestamp,
                    ..Default::default()
                })
                .collect(),
        };
        let asked: Vec<_> = topics.iter().map(led).filter(|topic| !topic.partitions.is_empty()).collect();
        if asked.is_empty() {
            continue;
        }
        let request = ListOffsetsRequest { replica_id: -1, topics: asked, ..Default::default() };
        for topic in cluster.call_broker(broker, &request, NEWEST)?.topics {
            for partition in topic.partitions.iter().filter(|p| p.error_code == ErrorCode::None.code()) {
                found.insert((topic.name.to_string(), partition.partition_index), partition.offset);
            }
        }
    }
    Ok(found)
}

/// The configurations that are set on each topic itself.
pub(crate) fn add_configs(cluster: &mut Cluster, topics: &mut [Topic]) -> Result<(), Failure> {
    let resource = |topic: &Topic| DescribeConfigsResource {
        resource_type: TOPIC_RESOURCE,
        resource_name: Str::from(topic.name.clone()),
        configuration_keys: None,
    };
    if topics.is_empty() {
        return Ok(());
    }
    let request =
        DescribeConfigsRequest { resources: topics.iter().map(resource).collect(), ..Default::default() };
    for result in cluster.call(&request, NEWEST)?.results {
        let name = result.resource_name.to_string();
        if result.error_code != ErrorCode::None.code() {
            let asked = format!("configuration of {name}");
            return Err(refused(&asked, result.error_code, result.error_message.as_deref()));
        }
        let own = result.configs.iter().filter(|config| config.config_source == SOURCE_TOPIC);
        let own = own.map(|c| (c.name.to_string(), c.value.as_ref().map(ToString::to_string)));
        if let Some(topic) = topics.iter_mut().find(|topic| topic.name == name) {
            topic.configs = own.collect();
        }
    }
    Ok(())
}
