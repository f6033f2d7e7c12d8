//! What breaks the world, one fault after the other, each followed by what an operator would do.
//!
//! Every fault has an end: when it returns, the node serves again or is about to.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use runtime::sim::{Fault as DiskFault, Host};
use runtime::time;

use crate::checks;
use crate::dice::Dice;
use crate::plan::{DISK_ANSWER_MAX, Fault};
use crate::timeline::{self, Sometimes};
use crate::world::{NODE, Status, World};

/// Room of a disk that is not full.
const PLENTY: u64 = 1 << 40;
/// Size and beginning of a journal block, and where its sequence number stands (docs/storage-format.md, section 2.1).
const BLOCK_BYTES: usize = 4096;
const BLOCK_MAGIC: &[u8] = b"MJBK";
const SEQUENCE_AT: usize = 32;
/// Bytes of a block that are never padding: its head and the beginning of its first entry.
const SOLID_BYTES: u64 = 80;

/// Breaks things as planned.
pub(crate) async fn run(world: Rc<World>) {
    let dice = Dice::new(world.plan.seed, "nemesis");
    for (after, fault) in world.plan.faults.clone() {
        time::sleep(after).await;
        timeline::note(format_args!("--- {fault:?}"));
        strike(&world, &dice, fault).await;
        if !world.ensure_up().await {
            return;
        }
    }
}

/// Takes back everything that is still broken.
pub(crate) fn heal(world: &World) {
    timeline::note("--- all is healed");
    world.disk().disarm();
    world.armed.set(false);
    world.disk().set_capacity(PLENTY);
    world.disk_full.set(false);
    world.changed_at.set(time::now());
    world.sim.net().heal();
}

async fn strike(world: &Rc<World>, dice: &Dice, fault: Fault) {
    match fault {
        Fault::PowerCut => cut(world, dice).await,
        Fault::PowerCutsDuringStart => cut_during_start(world, dice).await,
        Fault::Kill => {
            timeline::note("kill -9");
            world.sim.kill(NODE);
        }
        Fault::Stop => stop(world).await,
        Fault::FailedFlush => fail(world, dice, DiskFault::SyncError).await,
        Fault::FailedWrite => fail(world, dice, DiskFault::WriteError).await,
        Fault::FailedRead => fail(world, dice, DiskFault::ReadError).await,
        Fault::FullDisk => {
            fill(world, dice);
            time::sleep(dice.millis(300..=3000)).await;
            empty(world);
        }
        Fault::FullDiskAtStart => {
            fill(world, dice);
            time::sleep(dice.millis(1..=300)).await;
            cut(world, dice).await;
            world.ensure_up().await;
            time::sleep(dice.millis(1..=1500)).await;
            empty(world);
        }
        Fault::StalledDisk => {
            let duration = dice.millis(50..=2500);
            world.disk().stall(duration);
            world.stalled_until.set(Some(time::now() + duration));
        }
        Fault::Resets => world.sim.net().reset(Host::Node(NODE), Host::Clients),
        Fault::Partition => {
            if dice.chance(50) {
                world.sim.net().partition(Host::Node(NODE), Host::Clients);
            } else if dice.chance(50) {
                world.sim.net().block(Host::Node(NODE), Host::Clients);
            } else {
                world.sim.net().block(Host::Clients, Host::Node(NODE));
            }
            time::sleep(dice.millis(20..=2000)).await;
            world.sim.net().heal();
        }
        Fault::Rot => rot(world, dice).await,
    }
}

async fn cut(world: &World, dice: &Dice) {
    world.cut_power();
    time::sleep(dice.millis(0..=300)).await;
}

async fn cut_during_start(world: &World, dice: &Dice) {
    world.cut_power();
    for _ in 0..dice.between(1..=3) {
        world.start();
        time::sleep(Duration::from_micros(dice.between(0..=60_000))).await;
        if matches!(world.status(), Status::Starting) {
            timeline::met(Sometimes::CutDuringStart);
        }
        world.cut_power();
    }
}

async fn stop(world: &World) {
    if let Status::Ready(handle) = world.status() {
        timeline::note("the node is told to stop");
        world.changed_at.set(time::now());
        handle.stop();
        world.gone(checks::STARTS_AGAIN).await;
    }
}

/// Arms a fault of the disk, and lets it strike or not; then the node must end, or serve as before. Often the power is cut
/// afterwards: what a failed flush was to make durable is gone then, whatever the disk showed meanwhile.
async fn fail(world: &World, dice: &Dice, fault: DiskFault) {
    let under = dice.pick(&["/", "/data/shard-0", "/data/shard-0/journal", "/data/shard-0/partitions"]);
    timeline::note(format_args!("{fault:?} is to strike under {under}"));
    world.armed.set(true);
    world.disk().inject(fault, under);
    if dice.chance(30) {
        world.sim.kill(NODE);
        world.ensure_up().await;
    }
    time::sleep(dice.millis(20..=700)).await;
    if matches!(world.status(), Status::Failed) {
        timeline::met(Sometimes::FailedFlush);
        if dice.chance(50) {
            world.gone(checks::ENDS_AFTER_FAILURE).await;
        }
    }
    if dice.chance(50) {
        world.cut_power();
    }
    world.ensure_up().await;
    world.disk().disarm();
    // What has struck comes to light when the disk answers.
    let stalled = world.stalled_until.get().map(|until| until.duration_since(time::now()));
    time::sleep(stalled.unwrap_or_default() + 2 * DISK_ANSWER_MAX).await;
    world.ensure_up().await;
    world.armed.set(false);
}

fn fill(world: &World, dice: &Dice) {
    let room = dice.pick(&[0, 4096, 100 << 10, 2 << 20]);
    let capacity = world.disk().used_bytes() + room;
    timeline::note(format_args!("the disk has {room} bytes left"));
    world.disk().set_capacity(capacity);
    world.disk_full.set(true);
}

fn empty(world: &World) {
    timeline::note("the disk has room again");
    world.changed_at.set(time::now());
    world.disk().set_capacity(PLENTY);
    world.disk_full.set(false);
}

/// Flips a bit of a journal block that is not among the last two while the node is down. It must refuse to start then, unless
/// it did not need the block; healed, it must start.
async fn rot(world: &World, dice: &Dice) {
    cut(world, dice).await;
    let Some((path, position)) = middle_block(world, dice) else { return };
    timeline::note(format_args!("a bit rots in {} at {position}", path.display()));
    let disk = world.disk();
    disk.corrupt(&path, position);
    let rotten = block_at(world, &path, position);
    world.start();
    if let Status::Refused(reason) = world.started().await {
        timeline::note(format_args!("the damage is refused: {reason}"));
        timeline::met(Sometimes::DamageRefused);
        if !reason.contains("journal") {
            world.breach(checks::DAMAGE_IS_NAMED, reason);
        }
        world.gone(checks::STARTS_AGAIN).await;
        if block_at(world, &path, position) == rotten {
            disk.corrupt(&path, position);
        }
    }
}

fn block_at(world: &World, path: &PathBuf, position: u64) -> Option<Vec<u8>> {
    let start = position as usize / BLOCK_BYTES * BLOCK_BYTES;
    let contents = world.disk().contents(path)?;
    contents.get(start..start + BLOCK_BYTES).map(<[u8]>::to_vec)
}

/// A byte of a block that at least two later blocks of its journal follow: the last one may be torn, the one before it is
/// whole and proves all others.
fn middle_block(world: &World, dice: &Dice) -> Option<(PathBuf, u64)> {
    let shard = dice.between(0..=u64::from(world.plan.shards) - 1);
    let under = format!("/data/shard-{shard}/journal");
    let disk = world.disk();
    let mut blocks = Vec::new();
    for path in disk.files().into_iter().filter(|path| path.starts_with(&under)) {
        let Some(contents) = disk.contents(&path) else { continue };
        for (position, block) in (0..).step_by(BLOCK_BYTES).zip(contents.chunks(BLOCK_BYTES)) {
            let sequence = block.get(SEQUENCE_AT..).and_then(|rest| rest.first_chunk::<8>());
            if let (true, Some(sequence)) = (block.starts_with(BLOCK_MAGIC), sequence) {
                blocks.push((u64::from_le_bytes(*sequence), path.clone(), position));
            }
        }
    }
    blocks.sort();
    let newest = blocks.len().checked_sub(3)?;
    // Old blocks are not needed any more: the newest that qualify are the interesting ones.
    let chosen = newest.saturating_sub(dice.between(0..=6) as usize);
    let (_, path, position) = blocks.swap_remove(chosen);
    Some((path, position + dice.between(0..=SOLID_BYTES - 1)))
}
