//! `millrace group`: list, describe and delete consumer groups of any Kafka-compatible cluster.

use clap::Subcommand;
use protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse, ListGroupsRequest};
use protocol::{ErrorCode, Str};
use serde::Serialize;

use crate::cli::ConnectArgs;
use crate::client::{Cluster, NEWEST, refused};
use crate::exit::{Exit, Failure};
use crate::groups::{self, Groups};
use crate::output::{Format, Report, print, table};

/// What to do with consumer groups.
#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// List consumer groups with their states
    #[command(after_long_help = "\
Example:
  millrace group list --format json")]
    List {
        #[command(flatten)]
        connect: ConnectArgs,
    },
    /// Show the members of consumer groups, what each reads, and how far behind the group is
    #[command(after_long_help = "\
Examples:
  millrace group describe billing
  millrace group describe billing audit --bootstrap broker-1:9092 --format json")]
    Describe {
        /// Consumer groups
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        connect: ConnectArgs,
    },
    /// Delete consumer groups without members, and their offsets
    #[command(after_long_help = "\
Example:
  millrace group delete billing")]
    Delete {
        /// Consumer groups
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        connect: ConnectArgs,
    },
}

impl GroupCommand {
    pub(crate) fn format(&self) -> Format {
        match self {
            GroupCommand::List { connect }
            | GroupCommand::Describe { connect, .. }
            | GroupCommand::Delete { connect, .. } => connect.output.format,
        }
    }
}

/// A listed group.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Listed {
    name: String,
    state: String,
    protocol_type: String,
    coordinator: i32,
}

#[derive(Debug, Serialize)]
struct List {
    groups: Vec<Listed>,
}

impl Report for List {
    fn text(&self) -> String {
        if self.groups.is_empty() {
            return "there are no consumer groups".to_owned();
        }
        let row = |g: &Listed| {
            vec![g.name.clone(), g.state.clone(), g.protocol_type.clone(), g.coordinator.to_string()]
        };
        table(&["NAME", "STATE", "PROTOCOL", "COORDINATOR"], &self.groups.iter().map(row).collect::<Vec<_>>())
    }
}

#[derive(Debug, Serialize)]
struct Deleted {
    deleted: Vec<String>,
}

impl Report for Deleted {
    fn text(&self) -> String {
        self.deleted.iter().map(|name| format!("{name}: deleted")).collect::<Vec<_>>().join("\n")
    }
}

pub(crate) fn run(command: GroupCommand) -> Result<(), Failure> {
    match command {
        GroupCommand::List { connect } => list(&connect),
        GroupCommand::Describe { names, connect } => {
            let mut cluster = Cluster::connect(&connect)?;
            let groups = groups::describe(&mut cluster, &names)?;
            print(connect.output.format, &Groups { groups });
            Ok(())
        }
        GroupCommand::Delete { names, connect } => delete(&names, &connect),
    }
}

fn list(connect: &ConnectArgs) -> Result<(), Failure> {
    let mut cluster = Cluster::connect(connect)?;
    groups::learn_brokers(&mut cluster)?;
    let mut groups = Vec::new();
    for coordinator in cluster.broker_ids() {
        let request = ListGroupsRequest::default();
        let answer = cluster.call_settled(Some(coordinator), &request, NEWEST, |answer| answer.error_code)?;
        if answer.error_code != ErrorCode::None.code() {
            return Err(refused(&format!("groups of broker {coordinator}"), answer.error_code, None));
        }
        groups.extend(answer.groups.into_iter().map(|group| Listed {
            name: group.group_id.to_string(),
            state: group.group_state.to_string(),
            protocol_type: group.protocol_type.to_string(),
            coordinator,
        }));
    }
    groups.sort();
    print(connect.output.format, &List { groups });
    Ok(())
}

fn delete(names: &[String], connect: &ConnectArgs) -> Result<(), Failure> {
    let mut cluster = Cluster::connect(connect)?;
    groups::learn_brokers(&mut cluster)?;
    let (mut deleted, mut problems) = (Vec::new(), Vec::new());
    for name in names {
        let coordinator = groups::coordinator(&mut cluster, name)?;
        let request = DeleteGroupsRequest { groups_names: vec![Str::from(name.clone())] };
        let code_of =
            |answer: &DeleteGroupsResponse| answer.results.first().map_or(0, |result| result.error_code);
        for result in cluster.call_settled(Some(coordinator), &request, NEWEST, code_of)?.results {
            if result.error_code == ErrorCode::None.code() {
                deleted.push(result.group_id.to_string());
            } else {
                problems.extend(refused(&format!("delete {name}"), result.error_code, None).problems);
            }
        }
    }
    if !deleted.is_empty() {
        print(connect.output.format, &Deleted { deleted });
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure { exit: Exit::Refused, problems }) }
}
