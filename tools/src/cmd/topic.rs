//! `millrace topic`: create, list, describe, delete and extend topics of any Kafka-compatible cluster.

use clap::{Args, Subcommand};
use protocol::messages::create_partitions_request::CreatePartitionsTopic;
use protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use protocol::messages::{CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest};
use protocol::{ErrorCode, Str};
use serde::Serialize;

use crate::cli::ConnectArgs;
use crate::client::{Cluster, NEWEST, refused};
use crate::exit::{Exit, Failure, Problem};
use crate::output::{Format, Report, print};
use crate::topics::{self, Topics};

/// The newest version of DeleteTopics that takes names alone; later ones take ids as well.
const DELETE_BY_NAME: i16 = 5;

/// What to do with topics.
#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// Create topics
    #[command(after_long_help = "\
Examples:
  millrace topic create orders --partitions 6
  millrace topic create audit --config retention.ms=604800000 --config cleanup.policy=compact
  millrace topic create orders --if-not-exists --bootstrap broker-1:9092 --format json")]
    Create(CreateArgs),
    /// List the names of topics
    #[command(after_long_help = "\
Examples:
  millrace topic list
  millrace topic list --internal --format json")]
    List {
        /// Include the topics that brokers keep for themselves
        #[arg(long)]
        internal: bool,
        #[command(flatten)]
        connect: ConnectArgs,
    },
    /// Show partitions, leaders, replicas and offsets, and what is configured on each topic
    #[command(after_long_help = "\
Examples:
  millrace topic describe                 every topic
  millrace topic describe orders audit --format json")]
    Describe {
        /// Topics; all when none is named
        names: Vec<String>,
        #[command(flatten)]
        connect: ConnectArgs,
    },
    /// Delete topics and all their records
    #[command(after_long_help = "\
Examples:
  millrace topic delete orders
  millrace topic delete orders audit --if-exists")]
    Delete {
        /// Topics
        #[arg(required = true)]
        names: Vec<String>,
        /// A topic that does not exist is no error
        #[arg(long)]
        if_exists: bool,
        #[command(flatten)]
        connect: ConnectArgs,
    },
    /// Give a topic more partitions; keys may then map to other partitions than before
    #[command(after_long_help = "\
Example:
  millrace topic add-partitions orders --partitions 12     12 in total")]
    AddPartitions {
        /// Topic
        name: String,
        /// Partitions that the topic has afterwards, in total
        #[arg(long, value_name = "TOTAL")]
        partitions: i32,
        #[command(flatten)]
        connect: ConnectArgs,
    },
}

/// What to create.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Names
    #[arg(required = true)]
    names: Vec<String>,
    /// Partitions of each; -1 leaves it to the broker (num.partitions)
    #[arg(long, default_value_t = -1, allow_negative_numbers = true)]
    partitions: i32,
    /// Replicas of each partition; -1 leaves it to the broker (default.replication.factor)
    #[arg(long, default_value_t = -1, allow_negative_numbers = true)]
    replication_factor: i16,
    /// Configuration of the topic, repeatable (retention.ms=3600000)
    #[arg(long = "config", value_name = "NAME=VALUE")]
    configs: Vec<String>,
    /// A topic that exists is no error
    #[arg(long)]
    if_not_exists: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// What became of each topic.
#[derive(Debug, Serialize)]
struct Outcome {
    topics: Vec<TopicOutcome>,
}

#[derive(Debug, Serialize)]
struct TopicOutcome {
    name: String,
    /// `created`, `exists`, `deleted`, `missing` or `extended`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    partitions: Option<i32>,
}

impl Report for Outcome {
    fn text(&self) -> String {
        let line = |t: &TopicOutcome| {
            let partitions = t.partitions.map(|n| format!(", {n} partitions")).unwrap_or_default();
            format!("{}: {}{partitions}", t.name, t.outcome)
        };
        self.topics.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Names of topics.
#[derive(Debug, Serialize)]
struct Names {
    topics: Vec<String>,
}

impl Report for Names {
    fn text(&self) -> String {
        if self.topics.is_empty() {
            return "there are no topics; make one with `millrace topic create NAME`".to_owned();
        }
        self.topics.join("\n")
    }
}

impl TopicCommand {
    pub(crate) fn format(&self) -> Format {
        match self {
            TopicCommand::Create(args) => args.connect.output.format,
            TopicCommand::List { connect, .. }
            | TopicCommand::Describe { connect, .. }
            | TopicCommand::Delete { connect, .. }
            | TopicCommand::AddPartitions { connect, .. } => connect.output.format,
        }
    }
}

pub(crate) fn run(command: TopicCommand) -> Result<(), Failure> {
    match command {
        TopicCommand::Create(args) => create(&args),
        TopicCommand::List { internal, connect } => {
            let mut cluster = Cluster::connect(&connect)?;
            let found = topics::find(&mut cluster, &[])?;
            let shown = found.iter().filter(|topic| internal || !topic.internal);
            print(connect.output.format, &Names { topics: shown.map(|topic| topic.name.clone()).collect() });
            Ok(())
        }
        TopicCommand::Describe { names, connect } => {
            let mut cluster = Cluster::connect(&connect)?;
            let mut found = topics::find(&mut cluster, &names)?;
            topics::add_offsets(&mut cluster, &mut found)?;
            topics::add_configs(&mut cluster, &mut found)?;
            print(connect.output.format, &Topics { topics: found });
            Ok(())
        }
        TopicCommand::Delete { names, if_exists, connect } => delete(&names, if_exists, &connect),
        TopicCommand::AddPartitions { name, partitions, connect } => extend(&name, partitions, &connect),
    }
}

fn timeout_ms(connect: &ConnectArgs) -> i32 {
    i32::try_from(connect.timeout_s).unwrap_or(i32::MAX).saturating_mul(1000)
}

/// Prints what was done, and fails with all that was refused.
fn finish(format: Format, topics: Vec<TopicOutcome>, problems: Vec<Problem>) -> Result<(), Failure> {
    if !topics.is_empty() {
        print(format, &Outcome { topics });
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure { exit: Exit::Refused, problems }) }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let mut configs = Vec::new();
    for config in &args.configs {
        let Some((name, value)) = config.split_once('=') else {
            let cure = "write for example --config retention.ms=3600000";
            return Err(Failure::new(Exit::Usage, "--config takes NAME=VALUE, and there is no =", cure));
        };
        let (name, value) = (Str::from(name.trim().to_owned()), Some(Str::from(value.trim().to_owned())));
        configs.push(CreatableTopicConfig { name, value });
    }
    let topic = |name: &String| CreatableTopic {
        name: Str::from(name.clone()),
        num_partitions: args.partitions,
        replication_factor: args.replication_factor,
        configs: configs.clone(),
        ..Default::default()
    };
    let request = CreateTopicsRequest {
        topics: args.names.iter().map(topic).collect(),
        timeout_ms: timeout_ms(&args.connect),
        ..Default::default()
    };
    let answer = Cluster::connect(&args.connect)?.call(&request, NEWEST)?;
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for topic in answer.topics {
        let name = topic.name.to_string();
        match ErrorCode::from_code(topic.error_code) {
            Some(ErrorCode::None) => {
                let partitions = (topic.num_partitions > 0).then_some(topic.num_partitions);
                done.push(TopicOutcome { name, outcome: "created", partitions });
            }
            Some(ErrorCode::TopicAlreadyExists) if args.if_not_exists => {
                done.push(TopicOutcome { name, outcome: "exists", partitions: None });
            }
            _ => {
                let failure =
                    refused(&format!("create {name}"), topic.error_code, topic.error_message.as_deref());
                problems.extend(failure.problems);
            }
        }
    }
    finish(args.connect.output.format, done, problems)
}

fn delete(names: &[String], if_exists: bool, connect: &ConnectArgs) -> Result<(), Failure> {
    let request = DeleteTopicsRequest {
        topic_names: names.iter().map(|name| Str::from(name.clone())).collect(),
        timeout_ms: timeout_ms(connect),
        ..Default::default()
    };
    let answer = Cluster::connect(connect)?.call(&request, DELETE_BY_NAME)?;
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for topic in answer.responses {
        let name = topic.name.as_ref().map(ToString::to_string).unwrap_or_default();
        match ErrorCode::from_code(topic.error_code) {
            Some(ErrorCode::None) => done.push(TopicOutcome { name, outcome: "deleted", partitions: None }),
            Some(ErrorCode::UnknownTopicOrPartition) if if_exists => {
                done.push(TopicOutcome { name, outcome: "missing", partitions: None });
            }
            _ => {
                let failure =
                    refused(&format!("delete {name}"), topic.error_code, topic.error_message.as_deref());
                problems.extend(failure.problems);
            }
        }
    }
    finish(connect.output.format, done, problems)
}

fn extend(name: &str, partitions: i32, connect: &ConnectArgs) -> Result<(), Failure> {
    let topic =
        CreatePartitionsTopic { name: Str::from(name.to_owned()), count: partitions, assignments: None };
    let request = CreatePartitionsRequest {
        topics: vec![topic],
        timeout_ms: timeout_ms(connect),
        ..Default::default()
    };
    let answer = Cluster::connect(connect)?.call(&request, NEWEST)?;
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for topic in answer.results {
        let name = topic.name.to_string();
        if topic.error_code == ErrorCode::None.code() {
            done.push(TopicOutcome { name, outcome: "extended", partitions: Some(partitions) });
        } else {
            let failure =
                refused(&format!("extend {name}"), topic.error_code, topic.error_message.as_deref());
            problems.extend(failure.problems);
        }
    }
    finish(connect.output.format, done, problems)
}
