//! Sockets that take and do not give: slow ones, ones that announce and do not send, ones that do not read, many.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{FetchRequest, TopicName};
use kafka_protocol::protocol::{Request, StrBytes};
use kafka_protocol::records::Compression;
use millrace_tests::suite::{self, Cost, Outcome};
use millrace_tests::wire;

use crate::victim::{Victim, framed, payload};

const SOCKETS: usize = 200;

fn open(victim: &Victim, count: usize) -> Result<Vec<TcpStream>> {
    (0..count).map(|_| victim.connect()).collect()
}

/// One byte a second on each of many connections.
#[test]
fn slow_loris() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        let mut sockets = open(&victim, SOCKETS)?;
        let frame = framed(&[0, 3, 0, 12, 0, 0, 0, 7, 0, 2, b'i', b'd', 0, 0, 0]);
        for byte in &frame[..8] {
            for socket in &mut sockets {
                socket.write_all(&[*byte])?;
            }
            victim.check("a byte on each slow connection")?;
            sleep(Duration::from_secs(1));
        }
        drop(sockets);
        victim.check("slow connections")
    })
}

/// The largest frame that is allowed, announced on many connections; nothing of it, or a little, is sent.
#[test]
fn announced_and_not_sent() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        let mut sockets = open(&victim, SOCKETS)?;
        for (at, socket) in sockets.iter_mut().enumerate() {
            socket.write_all(&(100 * 1024 * 1024_i32).to_be_bytes())?;
            if at % 2 == 0 {
                socket.write_all(&[0, 0, 0, 9, 0, 0, 0, 7, 0xff, 0xff])?;
            }
        }
        victim.check("announced frames")?;
        sleep(Duration::from_secs(1));
        victim.check("announced frames, a second later")?;
        drop(sockets);
        victim.check("announced frames that were given up")
    })
}

/// Large frames that do arrive, up to their last byte, on several connections at once: together more than the budget.
#[test]
fn large_frames_without_their_end() -> Outcome {
    suite::run(Cost::Light, || {
        const SIZE: usize = 12 * 1024 * 1024;
        let mut victim = Victim::start()?;
        let mut frame = framed(&vec![0; SIZE]);
        frame.truncate(SIZE);
        frame[4..14].copy_from_slice(&[0, 0, 0, 9, 0, 0, 0, 7, 0xff, 0xff]);
        let mut sockets = open(&victim, 16)?;
        for socket in &mut sockets {
            socket.set_write_timeout(Some(Duration::from_millis(300)))?;
            // Where memory is short the node stops reading, and the rest cannot be sent.
            let _ = socket.write_all(&frame);
        }
        drop(sockets);
        victim.check("large frames")
    })
}

/// Connections that ask for much and read nothing.
#[test]
fn answers_that_nobody_reads() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        let topic = millrace_tests::broker::unique("unread");
        let mut client = victim.client()?;
        client.create_topic(&topic, 1, &[])?;
        for first in (0..40_000).step_by(500) {
            let batch = wire::batch(first..first + 500, 1000, Compression::None)?;
            ensure!(client.produce(&topic, 0, batch)?.error == 0, "produce failed");
        }
        let partition = FetchPartition::default().with_partition_max_bytes(8 * 1024 * 1024);
        let topic = FetchTopic::default()
            .with_topic(TopicName(StrBytes::from_string(topic)))
            .with_partitions(vec![partition]);
        let fetch = FetchRequest::default()
            .with_max_bytes(8 * 1024 * 1024)
            .with_session_epoch(-1)
            .with_topics(vec![topic]);
        let request = framed(&payload(FetchRequest::KEY, 12, &fetch)?);
        let mut sockets = open(&victim, 50)?;
        for socket in &mut sockets {
            socket.set_write_timeout(Some(Duration::from_millis(300)))?;
            for _ in 0..20 {
                let _ = socket.write_all(&request);
            }
        }
        victim.check("answers that nobody reads")?;
        sleep(Duration::from_secs(1));
        victim.check("answers that nobody reads, a second later")?;
        drop(sockets);
        victim.check("answers that nobody read")
    })
}

/// Connections that come and go, with and without a word, in both orders of closing.
#[test]
fn connections_that_come_and_go() -> Outcome {
    suite::run(Cost::Light, || {
        let mut victim = Victim::start()?;
        let request = framed(&[0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff]);
        for round in 0..1000 {
            let mut socket = victim.connect()?;
            if round % 2 == 0 {
                socket.write_all(&request[..request.len() - round % 7])?;
            }
            if round % 3 == 0 {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        victim.check("connections that came and went")?;
        let idle = open(&victim, 500)?;
        victim.check("500 idle connections")?;
        drop(idle);
        victim.check("500 idle connections that went")
    })
}
