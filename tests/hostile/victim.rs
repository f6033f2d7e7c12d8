//! The node under attack, and the check that it does not mind.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::RequestHeader;
use kafka_protocol::protocol::{Encodable, StrBytes, encode_request_header_into_buffer};
use kafka_protocol::records::Compression;
use millrace_tests::broker::{Options, Target, unique};
use millrace_tests::wire::{self, Wire};

/// Memory budget of the node, and what its program, stacks and allocator may take beyond it.
const MEMORY: &str = "64MiB";
const RESIDENT_LIMIT_BYTES: u64 = (64 + 64) * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(20);

/// A node with little memory and a canary topic.
pub(crate) struct Victim {
    target: Target,
    canary: String,
    written: i64,
    pid: Option<u32>,
}

/// How a connection ended after hostile bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Closed without an answer.
    Closed,
    /// The first answer, without its length.
    Answered(Bytes),
}

impl Victim {
    pub(crate) fn start() -> Result<Victim> {
        let target = Target::start(Options { memory: MEMORY, ..Options::default() })?;
        let canary = unique("canary");
        Wire::connect(&target.bootstrap())?.create_topic(&canary, 1, &[])?;
        let pid = match &target {
            Target::Own(broker) => Some(broker.pid()?),
            Target::Given(_) => None,
        };
        let mut victim = Victim { target, canary, written: 0, pid };
        victim.check("before any attack")?;
        Ok(victim)
    }

    /// A normal client's produce and fetch succeed in time, in the same process, which is within its budget.
    pub(crate) fn check(&mut self, after: &str) -> Result<()> {
        self.serves().with_context(|| format!("a normal client after: {after}"))?;
        let Target::Own(broker) = &mut self.target else { return Ok(()) };
        ensure!(broker.process()?.ended()?.is_none(), "the node ended after: {after}");
        ensure!(Some(broker.pid()?) == self.pid, "the node was started anew after: {after}");
        let resident = broker.resident_bytes()?;
        ensure!(resident < RESIDENT_LIMIT_BYTES, "{resident} bytes are resident after: {after}");
        Ok(())
    }

    fn serves(&mut self) -> Result<()> {
        let begin = Instant::now();
        let mut client = self.client()?;
        let (from, to) = (self.written, self.written + 5);
        let answer = client.produce(&self.canary, 0, wire::batch(from..to, 100, Compression::None)?)?;
        ensure!(answer.error == 0, "produce: {}", wire::error_name(answer.error));
        ensure!(answer.base_offset == from, "produced at {} instead of {from}", answer.base_offset);
        self.written = to;
        wire::expect(&client.read_all(&self.canary, 0, from)?, from..to, 100)?;
        ensure!(begin.elapsed() < PATIENCE, "it took {:?}", begin.elapsed());
        Ok(())
    }

    pub(crate) fn client(&self) -> Result<Wire> {
        Wire::connect(&self.target.bootstrap())
    }

    pub(crate) fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(self.target.bootstrap())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Sends bytes, ends the sending side, and reads until the node closes; it must do so in time.
    pub(crate) fn attack(&self, bytes: &[u8]) -> Result<Reaction> {
        let mut stream = self.connect()?;
        // The node may close before it has read all, or even before this sends.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        read_reaction(&mut stream)
    }

    /// Sends bytes and reads one answer; the sending side stays open.
    pub(crate) fn ask(&self, bytes: &[u8]) -> Result<Bytes> {
        let mut stream = self.connect()?;
        stream.write_all(bytes)?;
        let mut length = [0; 4];
        stream.read_exact(&mut length).context("the node did not answer")?;
        let mut answer = vec![0; usize::try_from(i32::from_be_bytes(length))?];
        stream.read_exact(&mut answer).context("the node did not finish its answer")?;
        Ok(answer.into())
    }

    /// As `attack`, but the sending side stays open: it is the node that must close.
    pub(crate) fn expect_close(&self, bytes: &[u8]) -> Result<()> {
        let mut stream = self.connect()?;
        let _ = stream.write_all(bytes);
        match read_reaction(&mut stream)? {
            Reaction::Closed => Ok(()),
            Reaction::Answered(answer) => bail!("answered {answer:?} instead of closing"),
        }
    }
}

fn read_reaction(stream: &mut TcpStream) -> Result<Reaction> {
    let mut received = Vec::new();
    match stream.take(1024 * 1024).read_to_end(&mut received) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {}
        Err(error) => return Err(error).context("the node neither answered nor closed"),
    }
    match received.get(4..) {
        Some(answer) => Ok(Reaction::Answered(Bytes::copy_from_slice(answer))),
        None => Ok(Reaction::Closed),
    }
}

/// A frame: length and payload.
pub(crate) fn framed(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 4);
    frame.put_u32(u32::try_from(payload.len()).unwrap_or(u32::MAX));
    frame.extend_from_slice(payload);
    frame
}

/// The payload of a request: its header as the version wants it, and its body.
pub(crate) fn payload(key: i16, version: i16, body: &impl Encodable) -> Result<Vec<u8>> {
    let mut payload = BytesMut::new();
    let header = RequestHeader::default()
        .with_request_api_key(key)
        .with_request_api_version(version)
        .with_correlation_id(7)
        .with_client_id(Some(StrBytes::from_static_str("hostile")));
    encode_request_header_into_buffer(&mut payload, &header)?;
    body.encode(&mut payload, version)?;
    Ok(payload.to_vec())
}

/// Numbers that look random and are the same in each run.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn byte(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0.to_be_bytes()[1]
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}
