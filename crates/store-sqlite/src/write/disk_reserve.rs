//! Disk space reserved for deletions on a full disk.
//!
//! A deletion needs space first: changed pages go to the log. So a file of some size is stored
//! beside the database. When the disk is full and a client deletes, that file is removed and the
//! deletion is tried again. From then on, writes that would only fill the disk again are refused
//! until there is space for the file.

use crate::failure::Failure;
use rusqlite::ffi;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BYTES: u64 = 8 << 20;

/// The file is created if at least this much is free.
const FREE_MIN: u64 = 3 * BYTES;

/// The free space is checked this often.
const INTERVAL: Duration = Duration::from_millis(100);

pub struct DiskReserve {
    path: PathBuf,
    /// The file was removed for deletions.
    released: bool,
    checked_at: Option<Instant>,
    /// A transaction has failed because the disk is full.
    pub disk_is_full: bool,
}

impl DiskReserve {
    pub fn beside(database: &Path) -> DiskReserve {
        let path = database.with_extension("reserve");
        let mut reserve = DiskReserve { path, released: false, checked_at: None, disk_is_full: false };
        if !reserve.path.exists() {
            reserve.make();
        }
        reserve
    }

    /// Creates the file if there is space for it.
    fn make(&mut self) -> bool {
        let free = self.path.parent().and_then(|folder| statvfs(folder).ok()).map(|it| it.f_bavail * it.f_frsize);
        if free.is_none_or(|free| free < FREE_MIN) {
            return false;
        }
        let made = File::create(&self.path).and_then(|file| Ok(fallocate(file, FallocateFlags::empty(), 0, BYTES)?));
        if let Err(error) = &made {
            tracing::debug!(%error, "no disk space could be reserved for deletions on a full disk");
            // A partial reserve is of no use.
            let _ = std::fs::remove_file(&self.path);
        }
        made.is_ok()
    }

    pub fn release(&mut self) {
        if !self.released {
            tracing::error!("the disk is full: the reserved space is used for deletions, and other writes are refused");
        }
        self.released = true;
        let _ = std::fs::remove_file(&self.path);
    }

    /// Returns whether writes may use more of the disk.
    pub fn has_room(&mut self) -> bool {
        if !self.released {
            return true;
        }
        if self.checked_at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return false;
        }
        self.checked_at = Some(Instant::now());
        if self.make() {
            tracing::info!("there is space on the disk again");
            self.released = false;
        }
        !self.released
    }
}

pub fn is_full(failure: &Failure) -> bool {
    let Failure::Engine(error) = failure else { return false };
    error.sqlite_error().is_some_and(|error| error.extended_code & 0xFF == ffi::SQLITE_FULL)
}
