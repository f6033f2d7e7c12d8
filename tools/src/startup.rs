//! From a loaded configuration to one that a node can start with on this machine: everything that does not serve is found at
//! once, each with its cure.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use broker::config::{Listener, NodeConfig};
use runtime::check;

use crate::exit::{Exit, Failure, Problem};

/// Partitions that the check of the open-file limit reckons with.
const PARTITIONS_HINT: usize = 1024;

/// The least memory that a shard works with: a few requests of a megabyte, and their answers.
const SHARD_MEMORY_MIN_BYTES: u64 = 16 << 20;

/// The kernel takes rings down after the process is gone: for five seconds, a killed node may still seem to listen.
const BIND_TRIES: u32 = 250;
const BIND_INTERVAL: Duration = Duration::from_millis(20);

/// What is needed beside the configuration.
pub(crate) struct Prepared {
    /// With shards, ports and advertised addresses filled in.
    pub(crate) config: NodeConfig,
    /// Bound already, so that nobody takes the port meanwhile.
    pub(crate) http: Option<TcpListener>,
}

/// Fills in what depends on the machine, and checks the machine.
pub(crate) fn prepare(mut config: NodeConfig) -> Result<Prepared, Failure> {
    let mut problems = Vec::new();
    if config.shards == 0 {
        one_shard_for_each_cpu(&mut config);
    }
    check_memory(&config, &mut problems);
    config.listeners = config.listeners.iter().map(|listener| free_port(listener, &mut problems)).collect();
    advertise(&mut config, &mut problems);
    let http = config.http_listener.0.and_then(|address| bind(address, "http.listener", &mut problems));
    if check_directory(&config.data_dir, &mut problems) {
        let found = check::environment(&config.data_dir, config.shards, PARTITIONS_HINT);
        problems.extend(found.err().into_iter().flatten().map(|p| Problem::new(p.what, p.cure)));
    }
    if problems.is_empty() {
        Ok(Prepared { config, http })
    } else {
        Err(Failure { exit: Exit::Environment, problems })
    }
}

/// One shard, pinned, for each CPU that the configuration names, or that the process may use.
fn one_shard_for_each_cpu(config: &mut NodeConfig) {
    let usable = || runtime::shard::usable_cpus().ok().filter(|cpus| !cpus.is_empty());
    config.cpus = config.cpus.take().or_else(usable);
    config.shards = config.cpus.as_ref().map_or(1, |cpus| u16::try_from(cpus.len()).unwrap_or(u16::MAX));
}

fn check_memory(config: &NodeConfig, problems: &mut Vec<Problem>) {
    let each = config.memory_per_shard_bytes(config.shards);
    if each < SHARD_MEMORY_MIN_BYTES {
        let enough = (SHARD_MEMORY_MIN_BYTES * u64::from(config.shards)) >> 20;
        problems.push(Problem::new(
            format!(
                "memory.bytes: {} bytes for {} shards are {each} for each",
                config.memory_bytes, config.shards
            ),
            format!("set memory.bytes to {enough}MiB or more, or take fewer shards"),
        ));
    }
}

/// The listener with a port that nobody listens on: the kernel would let a second node share it, and halve the clients
/// between the two.
fn free_port(listener: &Listener, problems: &mut Vec<Problem>) -> Listener {
    match listener.resolve() {
        Ok(address) => {
            let bound = bind(address, "listeners", problems).and_then(|bound| bound.local_addr().ok());
            Listener { port: bound.map_or(listener.port, |address| address.port()), ..listener.clone() }
        }
        Err(error) => {
            problems.push(Problem::new(
                format!("listeners: {} has no address: {error}", listener.host),
                "name an address of this machine, or a host that resolves to one",
            ));
            listener.clone()
        }
    }
}

fn bind(address: SocketAddr, key: &str, problems: &mut Vec<Problem>) -> Option<TcpListener> {
    let mut tries = 1..=BIND_TRIES;
    let error = loop {
        match TcpListener::bind(address) {
            Ok(listener) => return Some(listener),
            Err(error) if error.kind() == ErrorKind::AddrInUse && tries.next().is_some() => {
                std::thread::sleep(BIND_INTERVAL);
            }
            Err(error) => break error,
        }
    };
    let port = address.port();
    let cure = match error.kind() {
        ErrorKind::AddrInUse => {
            format!(
                "stop who has it (`ss -ltnp 'sport = :{port}'` names the process), or set {key} to another port"
            )
        }
        ErrorKind::PermissionDenied => {
            format!("set {key} to a port above 1023, or grant CAP_NET_BIND_SERVICE")
        }
        ErrorKind::AddrNotAvailable => {
            format!("set {key} to an address of this machine (`ip address` lists them)")
        }
        _ => format!("set {key} to an address and port of this machine that are free"),
    };
    let what = match error.kind() {
        ErrorKind::AddrInUse => format!("{key}: port {port} of {} is in use", address.ip()),
        _ => format!("{key}: {address} cannot be listened on: {error}"),
    };
    problems.push(Problem::new(what, cure));
    None
}

/// Fills in what clients are told to connect to: a wildcard is replaced by this machine's name, if that resolves.
fn advertise(config: &mut NodeConfig, problems: &mut Vec<Problem>) {
    if !config.advertised_listeners.is_empty() {
        return;
    }
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    let resolves = !name.is_empty() && Listener::plaintext(&name, 0).resolve().is_ok();
    for listener in config.listeners.clone() {
        let host = if listener.is_wildcard() { name.clone() } else { listener.host.clone() };
        if listener.is_wildcard() && !resolves {
            problems.push(Problem::new(
                format!("advertised.listeners: {listener} is every interface, and this machine's name {name:?} has no address"),
                format!("tell clients where to connect: --advertised-listener PLAINTEXT://HOST:{}", listener.port),
            ));
        }
        config.advertised_listeners.push(Listener { host, ..listener });
    }
}

/// Makes the directory and writes into it; false when that failed.
fn check_directory(dir: &Path, problems: &mut Vec<Problem>) -> bool {
    let probe = dir.join(".millrace-probe");
    let tried =
        fs::create_dir_all(dir).and_then(|()| fs::write(&probe, b"")).and_then(|()| fs::remove_file(&probe));
    let Err(error) = tried else { return true };
    let cure = match error.kind() {
        ErrorKind::PermissionDenied => "give the user that runs millrace the right to write there",
        ErrorKind::ReadOnlyFilesystem => "remount the file system for writing, or name another directory",
        ErrorKind::StorageFull => "make space, or name a directory on another file system",
        _ => "name a directory that can be made and written",
    };
    problems.push(Problem::new(format!("log.dirs: {} cannot be written: {error}", dir.display()), cure));
    false
}
