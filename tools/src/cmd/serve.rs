//! `millrace serve`: run a broker.

use broker::config::{Entry, Listener, Loaded, load};
use clap::Args;
use runtime::time;

use crate::cli::{File, SourceArgs};
use crate::cmd::config::print_settings;
use crate::exit::{EXIT_CODES, Failure};
use crate::logging;
use crate::node::Node;
use crate::output::OutputArgs;
use crate::settings::set_flags;
use crate::startup::prepare;

/// How to run a broker.
#[derive(Debug, Args)]
#[command(after_long_help = format!("\
Examples:
  millrace serve --data-dir /var/lib/millrace
  millrace serve --data-dir ./data --listener PLAINTEXT://0.0.0.0:9092 \\
                 --advertised-listener PLAINTEXT://broker-1.example.com:9092 --shards 4 --memory 8GiB
  millrace serve --config /etc/millrace/millrace.toml --set log.retention.hours=48
  millrace serve --config kafka/config/server.properties
  millrace serve --help-config                           every setting, with type, default and bounds

Flags win over the file, and the file over the defaults. One line \"ready\" in the log, on standard error,
says that clients are served, and where.

{EXIT_CODES}"))]
pub(crate) struct ServeArgs {
    /// The configuration, TOML or Kafka's server.properties
    #[arg(long, value_name = "FILE")]
    config: Option<File>,
    /// The directory that holds all data (log.dirs)
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Where clients connect, repeatable (listeners); port 0 takes a free one
    #[arg(long = "listener", value_name = "PLAINTEXT://HOST:PORT")]
    listeners: Vec<String>,
    /// What clients are told to connect to, one for each listener (advertised.listeners)
    #[arg(long = "advertised-listener", value_name = "PLAINTEXT://HOST:PORT")]
    advertised: Vec<String>,
    /// Number of shards, each one thread (shards); by default one for each CPU
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    shards: Option<String>,
    /// Memory of the whole node, such as 4GiB (memory.bytes)
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    memory: Option<String>,
    /// Address of metrics and health, or off (http.listener)
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    #[command(flatten)]
    source: SourceArgs,
    /// What is logged: a level, or directives such as info,millrace_storage=debug
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log_level: String,
    /// Print every setting and end
    #[arg(long)]
    help_config: bool,
    /// The form of the log, and of failures
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    if args.help_config {
        print_settings(args.output.format);
        return Ok(());
    }
    let started = time::now();
    let Loaded { config, warnings } = load(args.config.as_deref(), entries(args)?)?;
    logging::start(&args.log_level, args.output.format)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let node = Node::start(prepare(config)?)?;
    let config = &node.config;
    let join =
        |listeners: &[Listener]| listeners.iter().map(Listener::to_string).collect::<Vec<_>>().join(",");
    tracing::info!(
        listeners = join(&config.listeners),
        advertised = join(&config.advertised_listeners),
        http = node.http_address().map_or_else(|| "off".to_owned(), |address| address.to_string()),
        shards = config.shards,
        memory_bytes = config.memory_per_shard_bytes(config.shards) * u64::from(config.shards),
        data_dir = %config.data_dir.display(),
        after_ms = started.elapsed().as_millis(),
        "ready"
    );
    node.serve()?;
    tracing::info!("stopped");
    Ok(())
}

/// The flags as settings.
fn entries(args: &ServeArgs) -> Result<Vec<Entry>, Failure> {
    let single = [
        ("--data-dir", "log.dirs", args.data_dir.clone()),
        ("--shards", "shards", args.shards.clone()),
        ("--memory", "memory.bytes", args.memory.clone()),
        ("--http", "http.listener", args.http.clone()),
    ];
    let lists = [
        ("--listener", "listeners", &args.listeners),
        ("--advertised-listener", "advertised.listeners", &args.advertised),
    ];
    let lists = lists.map(|(flag, key, values)| (flag, key, (!values.is_empty()).then(|| values.join(","))));
    let given = single.into_iter().chain(lists);
    let named = given.filter_map(|(flag, key, value)| Some(Entry::flag(flag, key, &value?)));
    Ok(named.chain(set_flags(&args.source.set)?).collect())
}
