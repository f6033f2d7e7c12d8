//! A full disk: produce is refused with a retryable error while everything else goes on, and works again without a
//! restart when space returns. What was acknowledged is intact throughout.

use std::fs::File;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kafka_protocol::error::ResponseError;
use kafka_protocol::records::{Compression, Record};
use millrace_tests::broker::{Broker, Options};
use millrace_tests::mount::Mount;
use millrace_tests::suite::{self, Cost, Outcome};
use millrace_tests::wire::{self, Wire};

const DISK_BYTES: u64 = 192 * 1024 * 1024;
const RECORD_BYTES: usize = 10_000;
const BATCH: i64 = 10;
const RECOVERY: Duration = Duration::from_secs(10);

/// A node on a small disk, and what it acknowledged: per topic, how many records numbered from 0.
struct Rig {
    broker: Broker,
    pid: u32,
    written: [i64; 2],
    // Last: unmounted when the node is gone.
    disk: Mount,
}

/// `KEEP` is never deleted; `FILL` takes the space.
const KEEP: usize = 0;
const FILL: usize = 1;
const TOPICS: [&str; 2] = ["keep", "fill"];

impl Rig {
    fn start(min_free: &str) -> Result<Rig> {
        let disk = Mount::ext4(DISK_BYTES)?;
        let mut settings =
            vec![("journal.file.bytes", "4MiB".to_owned()), ("journal.files.max", "4".to_owned())];
        settings.push(("storage.min.free.bytes", min_free.to_owned()));
        let broker = Broker::start(Options {
            shards: 1,
            data_dir: Some(disk.path().join("data")),
            settings,
            allowed_logs: vec!["full", "space", "Full", "Space"],
            ..Options::default()
        })?;
        let mut rig = Rig { pid: broker.pid()?, broker, written: [0; 2], disk };
        let mut client = rig.client()?;
        for topic in TOPICS {
            client.create_topic(topic, 1, &[("segment.bytes", "4194304")])?;
        }
        for _ in 0..20 {
            ensure!(rig.produce(&mut client, KEEP)? == 0, "produce on an empty disk failed");
        }
        Ok(rig)
    }

    fn client(&self) -> Result<Wire> {
        Wire::connect(&self.broker.bootstrap())
    }

    fn produce(&mut self, client: &mut Wire, topic: usize) -> Result<i16> {
        let first = self.written[topic];
        let batch = wire::batch(first..first + BATCH, RECORD_BYTES, Compression::None)?;
        let answer = client.produce(TOPICS[topic], 0, batch)?;
        if answer.error == 0 {
            ensure!(answer.base_offset == first, "produced at {} instead of {first}", answer.base_offset);
            self.written[topic] += BATCH;
        }
        Ok(answer.error)
    }

    /// Produces until it is refused; the refusal must be one that clients retry.
    fn fill(&mut self) -> Result<()> {
        let mut client = self.client()?;
        for _ in 0..DISK_BYTES / (RECORD_BYTES as u64) {
            let error = self.produce(&mut client, FILL)?;
            if error != 0 {
                let known = ResponseError::try_from_code(error).context("an unknown error")?;
                ensure!(known.is_retriable(), "a full disk is answered with {}", wire::error_name(error));
                return Ok(());
            }
        }
        bail!("the disk does not fill: {} bytes are free", self.disk.free_bytes()?)
    }

    /// Everything but produce works: what was acknowledged is read, new clients are served, produce stays refused.
    fn goes_on(&mut self) -> Result<()> {
        self.intact()?;
        let mut client = self.client()?;
        for _ in 0..5 {
            let error = self.produce(&mut client, KEEP)?;
            ensure!(error != 0, "produce succeeds although the disk is full");
            sleep(Duration::from_millis(50));
        }
        self.intact()
    }

    fn intact(&mut self) -> Result<()> {
        ensure!(self.broker.pid()? == self.pid, "the node was started anew");
        ensure!(self.broker.process()?.ended()?.is_none(), "the node ended");
        let mut client = self.client()?;
        for (topic, written) in TOPICS.iter().zip(self.written) {
            if written > 0 {
                let records: Vec<Record> = client.read_all(topic, 0, 0)?;
                wire::expect(&records, 0..written, RECORD_BYTES).with_context(|| format!("topic {topic}"))?;
            }
        }
        Ok(())
    }

    /// Space came back: produce succeeds in time, without a restart.
    fn recovers(&mut self, topic: usize) -> Result<()> {
        let end = Instant::now() + RECOVERY;
        let mut client = self.client()?;
        loop {
            let error = self.produce(&mut client, topic)?;
            if error == 0 {
                break;
            }
            ensure!(Instant::now() < end, "still refused with {}", wire::error_name(error));
            sleep(Duration::from_millis(100));
        }
        for _ in 0..20 {
            ensure!(self.produce(&mut client, topic)? == 0, "refused again although there is space");
        }
        self.intact()
    }

    /// Takes all but `leave` bytes of the disk, beside the node's data.
    fn filler(&self, leave: u64) -> Result<PathBuf> {
        let path = self.disk.path().join("filler");
        let bytes = self.disk.free_bytes()?.saturating_sub(leave);
        let file = File::create(&path)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)?;
        Ok(path)
    }
}

fn scenario(min_free: &str, leave: u64) -> Result<()> {
    let mut rig = Rig::start(min_free)?;
    // Somebody else takes the space, and gives it back.
    let filler = rig.filler(leave)?;
    rig.fill().context("with a foreign file")?;
    rig.goes_on().context("while the disk is full of a foreign file")?;
    std::fs::remove_file(filler)?;
    rig.recovers(FILL).context("after the foreign file went")?;
    // The topics take the space, and the largest is deleted.
    rig.fill().context("with a topic")?;
    rig.goes_on().context("while the disk is full of a topic")?;
    rig.client()?.delete_topic(TOPICS[FILL])?;
    rig.written[FILL] = 0;
    rig.recovers(KEEP).context("after the topic was deleted")?;
    // Nothing of this is lost by a restart.
    rig.broker.stop()?;
    rig.broker.start_again()?;
    rig.pid = rig.broker.pid()?;
    rig.intact().context("after a restart")
}

/// The node stops in time, at the space that it is told to leave.
#[test]
fn space_that_is_kept_back() -> Outcome {
    suite::run(Cost::Heavy, || scenario("24MiB", 48 * 1024 * 1024))
}

/// Nothing is kept back: writes fail where they happen to fail.
#[test]
fn no_space_at_all() -> Outcome {
    suite::run(Cost::Heavy, || scenario("0", 1024 * 1024))
}
