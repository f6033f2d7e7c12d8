//! Work beside the acknowledgement path: segment writing, checkpoints, retention, compaction, disk space, journal files kept ready.
//! Owns: when each of these runs. Does not own: how.
//!
//! Invariant: a full disk stops this work for a while, any other failure stops the shard.

use std::time::Duration;

use futures::future::{self, Either};

use crate::error::StorageError;
use crate::log::handle::LARGE_WRITE_BYTES;
use crate::shared::Shared;
use crate::storage::Storage;

/// Time after which work that met a full disk is tried again.
const FULL_DISK_RETRY: Duration = Duration::from_secs(1);
/// Time after the last checkpoint at which files that are to be deleted are worth one of their own.
const DELETE_DELAY: Duration = Duration::from_secs(1);
/// Time between two rounds of the segment writer at least.
const ROUND_PAUSE: Duration = Duration::from_millis(5);
/// Time between two measurements of free space.
const SPACE_INTERVAL: Duration = Duration::from_millis(500);

impl Storage {
    /// Does all background work until the storage closes or fails. To be spawned in `Queue::Background`.
    pub async fn run_background(self) {
        let shared = &self.0.shared;
        let allocator = async {
            let stop = std::pin::pin!(stopped(shared));
            let run = std::pin::pin!(shared.journal.files.run_allocator(FULL_DISK_RETRY));
            if let Either::Left((error, _)) = future::select(run, stop).await {
                shared.failure.set(error);
            }
        };
        future::join4(allocator, self.run_writer(), self.run_retention(), run_space(shared)).await;
    }

    /// Writes segments and checkpoints when there is reason to.
    async fn run_writer(&self) {
        let shared = &self.0.shared;
        let interval = Duration::from_millis(shared.config.checkpoint_interval_ms);
        while !shared.is_stopping() {
            let urged = shared.urge.listen();
            let rolled = shared.journal.files.rolled();
            if !shared.after_work(self.write_round(interval).await).await {
                continue;
            }
            // Batches that are not durable yet urge, too: without a pause each of them would cost a round.
            if !shared.sleep(ROUND_PAUSE).await {
                return;
            }
            let interval = if self.has_doomed() { DELETE_DELAY.min(interval) } else { interval };
            let wait = interval.saturating_sub(self.0.saved_at.get().elapsed());
            let stop = std::pin::pin!(stopped(shared));
            let _ = runtime::time::timeout(wait, future::select(future::select(urged, rolled), stop)).await;
        }
    }

    async fn write_round(&self, interval: Duration) -> Result<(), StorageError> {
        let shared = &self.0.shared;
        let since_saved = self.0.saved_at.get().elapsed();
        let due = since_saved >= interval;
        let delete = since_saved >= DELETE_DELAY && self.has_doomed();
        if (due && self.has_unsaved()) || delete || shared.journal.files.pressed() {
            return self.checkpoint().await;
        }
        if due {
            self.0.saved_at.set(runtime::time::now());
        }
        let pressed = shared.cache.pressed();
        for (_, log) in self.logs() {
            let (dirty, damaged) = {
                let state = log.0.state.borrow();
                (state.dirty_bytes, !state.damaged_indexes.is_empty())
            };
            if dirty >= LARGE_WRITE_BYTES || (pressed && dirty > 0) || damaged {
                let _permit = shared.maintenance.acquire(1).await;
                self.write_log(&log).await?;
                log.0.repair_indexes().await?;
            }
        }
        Ok(())
    }

    /// Applies retention, forgets silent producers, and compacts.
    async fn run_retention(&self) {
        let shared = &self.0.shared;
        let interval = Duration::from_millis(shared.config.retention_interval_ms);
        while shared.sleep(interval).await {
            if shared.after_work(self.retain_once().await).await {
                shared.after_work(self.compact_once().await).await;
            }
        }
    }

    /// One run of retention over all logs, and the checkpoint that lets the files go.
    pub(crate) async fn retain_once(&self) -> Result<(), StorageError> {
        let shared = &self.0.shared;
        let now_ms = runtime::time::wall_ms();
        for (_, log) in self.logs() {
            log.0.state.borrow_mut().producers.expire(now_ms, shared.config.producer_id_expiration_ms);
            log.0.retain(now_ms).await?;
            let _permit = shared.maintenance.acquire(1).await;
            log.0.drop_segments_below_start();
            runtime::task::yield_if_needed().await;
        }
        let unneeded = !shared.doomed.borrow().is_empty();
        if unneeded { self.checkpoint().await } else { Ok(()) }
    }
}

/// Measures free space again and again.
async fn run_space(shared: &Shared) {
    loop {
        if let Err(error) = shared.measure_space().await {
            tracing::warn!(%error, "free space is unknown");
        }
        if !shared.sleep(SPACE_INTERVAL).await {
            return;
        }
    }
}

/// Waits for the storage to close or fail.
async fn stopped(shared: &Shared) {
    loop {
        let stirred = shared.failure.listen();
        if shared.is_stopping() {
            return;
        }
        stirred.await;
    }
}

impl Shared {
    /// Whether background work ends.
    pub(crate) fn is_stopping(&self) -> bool {
        self.closing.get() || self.failure.get().is_some()
    }

    /// Takes a measurement of free space.
    pub(crate) async fn measure_space(&self) -> Result<(), StorageError> {
        let dir = &self.config.dir;
        let free = runtime::disk::free_space(dir).await.map_err(StorageError::during("inspect", dir))?;
        self.journal.files.measured(free);
        let was_full = self.space.is_full();
        self.space.measured(free, self.cache.dirty_bytes() as u64);
        if was_full && !self.space.is_full() {
            self.urge.notify_all();
            self.relief.notify_all();
        }
        Ok(())
    }

    /// Waits; false when the storage closes or fails meanwhile.
    async fn sleep(&self, duration: Duration) -> bool {
        runtime::time::timeout(duration, stopped(self)).await.is_err()
    }

    /// Judges the outcome of background work; false when it met a full disk, after a pause.
    async fn after_work(&self, result: Result<(), StorageError>) -> bool {
        match result {
            Ok(()) | Err(StorageError::Closed) => true,
            Err(error) if error.is_no_space() && self.failure.get().is_none() => {
                self.space.exhausted();
                self.sleep(FULL_DISK_RETRY).await;
                false
            }
            // A damaged segment is the matter of its readers; the journal keeps what could not be written behind it.
            Err(error) => {
                self.failure.set(error);
                true
            }
        }
    }
}
