//! Limits of the space on disk: the write-ahead log's size, and deletions on a full disk.

use super::state::Writer;
use crate::failure::Attempt;
use crate::files::sync;
use crate::shared::Options;
use error::{Code, Error};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long writers wait for the disk when the log is too long.
const DISK_PATIENCE: Duration = Duration::from_secs(5);

/// Whether a transaction's snapshot has kept the log from being reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WalPin {
    #[default]
    None,
    Pinned,
    /// The snapshot is gone, and the log is longer than writers alone would make it. They do not
    /// wait for its checkpoint.
    Released,
}

impl Writer {
    /// Has the log checkpointed in the background, and resets it when it is long. Only this thread
    /// can reset it. Except for recent writes the log has been checkpointed by then, so that no
    /// writer waits for the disk to take all of it.
    pub(super) fn limit_wal_size(&mut self) {
        let Options { page_bytes, checkpoint_bytes, log_bytes_max, .. } = self.shared.options;
        let pages = self.wal_pages.load(Ordering::Relaxed);
        if pages < self.wal_pages_at_checkpoint {
            // The log has been reset.
            self.wal_pages_at_checkpoint = 0;
            self.wal_is_long = false;
            self.wal_pin = WalPin::None;
        }
        if self.wal_is_long && self.checkpoints.is_idle() {
            self.reset_wal();
        }
        if (pages - self.wal_pages_at_checkpoint) * u64::from(page_bytes) < checkpoint_bytes {
            return;
        }
        self.wal_pages_at_checkpoint = pages;
        let bytes = pages * u64::from(page_bytes);
        if bytes >= 2 * log_bytes_max && self.wal_pin == WalPin::None {
            // The disk is slower than the writers, so they wait for it.
            self.checkpoints.wait_until_idle(DISK_PATIENCE);
            self.reset_wal();
        } else {
            self.checkpoints.ask();
            self.wal_is_long = bytes >= log_bytes_max;
        }
    }

    /// Resets the log. A long read (validate) prevents it; it is tried again when the log has grown
    /// by as much once more.
    pub(super) fn reset_wal(&mut self) {
        // The snapshot of a transaction prevents it as well, for longer than a read may wait.
        if self.shared.pinned_snapshots.load(Ordering::Acquire) > 0 {
            self.wal_pin = WalPin::Pinned;
            self.wal_is_long = true;
            return;
        }
        if self.wal_pin == WalPin::Pinned {
            // Nothing behind the snapshot has been checkpointed: that is not the writer's work.
            self.wal_pin = WalPin::Released;
            self.wal_is_long = true;
            return self.checkpoints.ask();
        }
        self.wal_is_long = false;
        if !self.checkpoints.is_idle() {
            return;
        }
        let restarted = self.shared.with_reads_paused(|| sync::checkpoint(&self.connection, "RESTART"));
        if let Err(error) = restarted {
            tracing::debug!(%error, "the write-ahead log could not be reset");
        }
    }
    /// Refuses writes that would use the space that deletions need.
    pub(super) fn check_room(&mut self, deletes: bool) -> Attempt<()> {
        match deletes {
            false if !self.reserve.has_room() => {
                Err(Error::new(Code::OUT_OF_DISK_SPACE, "the disk is full: documents can be deleted, and nothing else")
                    .into())
            }
            _ => Ok(()),
        }
    }

    /// Makes room for deletions on a full disk.
    pub(super) fn make_room(&mut self) {
        self.reserve.disk_is_full = false;
        self.reserve.release();
        let begun_anew = self.shared.with_reads_paused(|| sync::checkpoint(&self.connection, "RESTART"));
        if let Err(error) = begun_anew {
            tracing::warn!(%error, "the write-ahead log could not be checkpointed");
        }
    }
}
