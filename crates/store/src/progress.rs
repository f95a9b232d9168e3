//! Progress of a long operation, observed from another thread, which may also stop it.

use error::{Error, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of documents done, of a total.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    /// The reason to stop.
    stopped: OnceLock<Error>,
}

impl Progress {
    /// Starts with `total` documents to go.
    pub fn begin(&self, total: u64) {
        self.done.store(0, Relaxed);
        self.total.store(total, Relaxed);
    }

    /// Sets how much is done. The count never decreases: a server at the end of its statement
    /// reports none.
    pub fn set(&self, done: u64) {
        self.done.fetch_max(done, Relaxed);
    }

    /// Returns done and total; `None` before the start. The total is that of the start.
    pub fn get(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Relaxed);
        (total > 0).then(|| (self.done.load(Relaxed).min(total), total))
    }

    /// Asks the operation to stop, for this reason, where it can.
    pub fn stop(&self, reason: Error) {
        let _ = self.stopped.set(reason);
    }

    /// Fails with the reason if the operation must stop.
    pub fn check(&self) -> Result<()> {
        self.stopped.get().map_or(Ok(()), |reason| Err(reason.clone()))
    }

    pub fn percent(&self) -> u64 {
        self.get().map_or(0, |(done, total)| done.saturating_mul(100) / total)
    }
}
