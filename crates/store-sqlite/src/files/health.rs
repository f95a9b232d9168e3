//! Detects that new writes would not survive a restart.
//!
//! Once that is so, no write is acknowledged until Selkie is restarted; reads continue. The
//! reasons:
//!
//! - A sync failed. The system may have dropped the pages that it could not write, and report
//!   success for the next sync, so that success means nothing.
//! - The database's file or its log is no longer at its path. Writes would go to files that cannot
//!   be found again.

use error::{Code, Error, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a check of the files' identity is valid.
const INTERVAL: Duration = Duration::from_millis(50);

#[derive(Default)]
pub struct Health {
    failed: OnceLock<Error>,
    files: Mutex<Vec<(PathBuf, Identity)>>,
    /// The time of the last check, in milliseconds since `begun`.
    checked_at: AtomicU64,
    begun: OnceLock<Instant>,
}

/// Device and inode: two files never share them while one of them is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(u64, u64);

fn identity(path: &Path) -> std::io::Result<Identity> {
    std::fs::metadata(path).map(|metadata| Identity(metadata.dev(), metadata.ino()))
}

impl Health {
    /// Watches these files, which are open.
    pub fn watch(&self, paths: impl IntoIterator<Item = PathBuf>) -> std::io::Result<()> {
        let watched = paths.into_iter().map(|path| identity(&path).map(|identity| (path, identity)));
        let watched: Vec<_> = watched.collect::<std::io::Result<_>>()?;
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = watched;
        Ok(())
    }

    /// Stops all writes for good. Only the first reason is reported.
    pub fn fail(&self, reason: &str) {
        let error = Error::new(
            Code::INTERNAL_ERROR,
            format!("the embedded store does not write any more: {reason}; restart Selkie once that is mended"),
        );
        if self.failed.set(error).is_ok() {
            tracing::error!("{reason}: no write is acknowledged any more until Selkie is started again");
        }
    }

    /// Fails if a write must not be acknowledged. Checks the files every [`INTERVAL`].
    pub fn check(&self) -> Result<()> {
        let now = self.begun.get_or_init(Instant::now).elapsed().as_millis() as u64 + INTERVAL.as_millis() as u64;
        if now >= self.checked_at.load(Ordering::Relaxed) + INTERVAL.as_millis() as u64 {
            self.checked_at.store(now, Ordering::Relaxed);
            self.look();
        }
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Fails if a write must not be acknowledged, after checking the files.
    pub fn check_now(&self) -> Result<()> {
        self.look();
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn look(&self) {
        for (path, known) in &*self.files.lock().unwrap_or_else(PoisonError::into_inner) {
            match identity(path) {
                Ok(found) if found == *known => {}
                Ok(_) => self.fail(&format!("{} was replaced by another file", path.display())),
                Err(error) => self.fail(&format!("{} is not there any more ({error})", path.display())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_gone_or_replaced_end_writing() {
        for replaced in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            std::fs::write(&path, "a").unwrap();
            let _open = std::fs::File::open(&path).unwrap();
            let health = Health::default();
            health.watch([path.clone()]).unwrap();
            assert!(health.check().is_ok());
            std::fs::remove_file(&path).unwrap();
            if replaced {
                std::fs::write(&path, "a").unwrap();
            }
            std::thread::sleep(INTERVAL);
            assert!(health.check().is_err());
            assert!(health.check().is_err());
        }
    }

    #[test]
    fn the_first_reason_stays() {
        let health = Health::default();
        assert!(health.check().is_ok());
        health.fail("one");
        health.fail("two");
        assert!(health.check().unwrap_err().message().contains("one"));
    }
}
