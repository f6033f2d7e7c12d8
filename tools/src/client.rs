//! A small blocking Kafka client for admin commands: one request at a time per connection, to any Kafka-compatible broker.
//!
//! Owns: connecting, version negotiation, framing. Does not own: what the answers mean.
//!
//! 1. A request travels in the newest version that both sides know (KIP-35).
//! 2. A frame's length is checked before anything is allocated.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::Bytes;
use protocol::messages::{ApiVersionsRequest, Message, MetadataRequest, MetadataResponse, Request};
use protocol::wire::Decoder;
use protocol::{ErrorCode, Str, frame};
use runtime::time;

use crate::cli::ConnectArgs;
use crate::exit::{Exit, Failure};

/// How the client names itself to the broker.
const CLIENT_ID: Str = Str::from_static("millrace");

/// Largest answer that is read, in bytes.
const FRAME_BYTES_MAX: usize = 256 << 20;

/// Pause between two questions to a coordinator that is not there yet.
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// No bound on the version of a request.
pub(crate) const NEWEST: i16 = i16::MAX;

/// One connection to one broker.
pub(crate) struct Client {
    stream: TcpStream,
    address: String,
    versions: BTreeMap<i16, (i16, i16)>,
    correlation_id: i32,
}

impl Client {
    /// Connects and learns which versions the broker serves.
    pub(crate) fn connect(address: &str, timeout: Duration) -> Result<Client, Failure> {
        let lost = |reason: &dyn std::fmt::Display| unreachable_broker(address, reason);
        let found = address.to_socket_addrs().map_err(|e| lost(&e))?;
        let mut last = Err(lost(&"the name has no address"));
        for candidate in found {
            last = TcpStream::connect_timeout(&candidate, timeout).map_err(|e| lost(&e));
            if last.is_ok() {
                break;
            }
        }
        let stream = last?;
        let set =
            stream.set_read_timeout(Some(timeout)).and_then(|()| stream.set_write_timeout(Some(timeout)));
        set.and_then(|()| stream.set_nodelay(true)).map_err(|e| lost(&e))?;
        let mut client =
            Client { stream, address: address.to_owned(), versions: BTreeMap::new(), correlation_id: 0 };
        // Version 0 of the question is one that every broker answers.
        let answer = client.exchange(&ApiVersionsRequest::default(), 0)?;
        if answer.error_code != ErrorCode::None.code() {
            return Err(refused("ApiVersions", answer.error_code, None));
        }
        client.versions =
            answer.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version))).collect();
        Ok(client)
    }

    /// Sends a request in the newest version that both sides know, up to `newest`, and waits for its answer. The bound is for
    /// requests that newer versions word differently, where the older wording says all that is asked here.
    pub(crate) fn call<R: Request>(&mut self, request: &R, newest: i16) -> Result<R::Response, Failure> {
        let (ours_min, ours_max) = R::KEY.versions();
        let theirs = self.versions.get(&(R::KEY as i16)).copied();
        let common = theirs.map(|(min, max)| (min.max(ours_min), max.min(ours_max).min(newest)));
        match common {
            Some((min, max)) if min <= max => self.exchange(request, max),
            _ => Err(Failure::new(
                Exit::Refused,
                format!(
                    "the broker at {} serves no version of {} that is known here",
                    self.address,
                    R::KEY.name()
                ),
                "use a newer broker, or a millrace of its time",
            )),
        }
    }

    fn exchange<R: Request>(&mut self, request: &R, version: i16) -> Result<R::Response, Failure> {
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let malformed = |reason: &dyn std::fmt::Display| {
            let what = format!("the answer to {} could not be read: {reason}", R::KEY.name());
            Failure::new(
                Exit::Unreachable,
                what,
                "check that the address is that of a Kafka-compatible broker",
            )
        };
        let frame = frame::encode_request(self.correlation_id, Some(&CLIENT_ID), version, request);
        let out = frame.map_err(|e| malformed(&e))?;
        let answer = self.send(&out).and_then(|()| self.receive());
        let answer = answer.map_err(|error| {
            let timed_out =
                matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
            let reason =
                if timed_out { "no answer in time (see --timeout)".to_owned() } else { error.to_string() };
            unreachable_broker(&self.address, &reason)
        })?;
        let mut decoder = Decoder::new(answer);
        let correlation_id =
            frame::decode_response_header(&mut decoder, R::KEY, version).map_err(|e| malformed(&e))?;
        if correlation_id != self.correlation_id {
            return Err(malformed(&"it answers another request"));
        }
        R::Response::decode(&mut decoder, version).map_err(|e| malformed(&e))
    }

    fn send(&mut self, chunks: &[Bytes]) -> std::io::Result<()> {
        chunks.iter().try_for_each(|chunk| self.stream.write_all(chunk))
    }

    fn receive(&mut self) -> std::io::Result<Bytes> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        let len = usize::try_from(i32::from_be_bytes(head)).unwrap_or(usize::MAX);
        if len > FRAME_BYTES_MAX {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                format!("a frame of {len} bytes"),
            ));
        }
        let mut body = vec![0; len];
        self.stream.read_exact(&mut body)?;
        Ok(body.into())
    }
}

/// The brokers of a cluster, each connected to when it is first asked.
pub(crate) struct Cluster {
    bootstrap: Client,
    brokers: BTreeMap<i32, String>,
    clients: BTreeMap<i32, Client>,
    timeout: Duration,
}

impl Cluster {
    /// Connects to the bootstrap broker.
    pub(crate) fn connect(args: &ConnectArgs) -> Result<Cluster, Failure> {
        let timeout = Duration::from_secs(u64::from(args.timeout_s.max(1)));
        let bootstrap = Client::connect(&args.bootstrap, timeout)?;
        Ok(Cluster { bootstrap, brokers: BTreeMap::new(), clients: BTreeMap::new(), timeout })
    }

    /// Asks the bootstrap broker, which forwards to the controller what belongs there.
    pub(crate) fn call<R: Request>(&mut self, request: &R, newest: i16) -> Result<R::Response, Failure> {
        self.bootstrap.call(request, newest)
    }

    /// Asks for metadata, and remembers where the brokers are.
    pub(crate) fn metadata(&mut self, request: &MetadataRequest) -> Result<MetadataResponse, Failure> {
        let metadata = self.bootstrap.call(request, NEWEST)?;
        let address = |host: &str, port: i32| {
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
        };
        self.brokers = metadata.brokers.iter().map(|b| (b.node_id, address(&b.host, b.port))).collect();
        Ok(metadata)
    }

    /// The brokers that the last metadata named.
    pub(crate) fn broker_ids(&self) -> Vec<i32> {
        self.brokers.keys().copied().collect()
    }

    /// Asks one broker, or the bootstrap broker, and again while the answer says that a coordinator is still being made or
    /// loaded, for as long as an answer may take.
    pub(crate) fn call_settled<R: Request>(
        &mut self,
        broker: Option<i32>,
        request: &R,
        newest: i16,
        code_of: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, Failure> {
        let deadline = time::now() + self.timeout;
        loop {
            let answer = match broker {
                Some(broker) => self.call_broker(broker, request, newest)?,
                None => self.call(request, newest)?,
            };
            let code = ErrorCode::from_code(code_of(&answer));
            let waits = matches!(
                code,
                Some(ErrorCode::CoordinatorNotAvailable | ErrorCode::CoordinatorLoadInProgress)
            );
            if !waits || time::now() >= deadline {
                return Ok(answer);
            }
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    /// Asks one broker by its node id.
    pub(crate) fn call_broker<R: Request>(
        &mut self,
        broker: i32,
        request: &R,
        newest: i16,
    ) -> Result<R::Response, Failure> {
        if let Some(client) = self.clients.get_mut(&broker) {
            return client.call(request, newest);
        }
        let Some(address) = self.brokers.get(&broker) else {
            let what = format!("broker {broker} is not known to the cluster");
            return Err(Failure::new(Exit::Unreachable, what, "try again when every broker is up"));
        };
        let mut client = Client::connect(address, self.timeout)?;
        let answer = client.call(request, newest);
        self.clients.insert(broker, client);
        answer
    }
}

fn unreachable_broker(address: &str, reason: &dyn std::fmt::Display) -> Failure {
    let cure = "start a broker (`millrace serve`), or name another with --bootstrap HOST:PORT";
    Failure::new(Exit::Unreachable, format!("no broker answers at {address}: {reason}"), cure)
}

/// A refusal by the broker: what was asked, Kafka's name of the error, the broker's own words.
pub(crate) fn refused(asked: &str, code: i16, message: Option<&str>) -> Failure {
    let known = ErrorCode::from_code(code);
    let name = known.map_or_else(|| format!("error {code}"), |code| code.name().to_owned());
    let words = message.filter(|m| !m.is_empty()).map(|m| format!(": {m}")).unwrap_or_default();
    let cure = match known {
        Some(code) => cure(code),
        None => "look the number up in Kafka's protocol guide",
    };
    Failure::new(Exit::Refused, format!("{asked}: {name}{words}"), cure)
}

/// What to do about an error that admin commands meet.
fn cure(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::TopicAlreadyExists => "choose another name, or pass --if-not-exists",
        ErrorCode::UnknownTopicOrPartition => "see the names with `millrace topic list`",
        ErrorCode::InvalidTopicException => "use up to 249 letters, digits, dots, underscores and hyphens",
        ErrorCode::InvalidPartitions => "name a count above what the topic has",
        ErrorCode::InvalidReplicationFactor => "name at most as many replicas as there are brokers",
        ErrorCode::InvalidConfig => "see the names and values in docs/configuration.md",
        ErrorCode::GroupIdNotFound => "see the names with `millrace group list`",
        ErrorCode::NonEmptyGroup => "stop the members first, `millrace group describe` names them",
        code if code.is_retriable() => "try again in a moment",
        _ => "the broker's log may say more",
    }
}
