//! How far something is that takes long, for whoever looks from elsewhere, and may want it to stop.

use error::{Error, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// So many of so many documents.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    /// Why it is to stop.
    stopped: OnceLock<Error>,
}

impl Progress {
    /// Begins, with so many documents to go.
    pub fn begin(&self, total: u64) {
        self.done.store(0, Relaxed);
        self.total.store(total, Relaxed);
    }

    /// Notes how much is done. It never becomes less: a server that has come to an end of its statement tells of none.
    pub fn set(&self, done: u64) {
        self.done.fetch_max(done, Relaxed);
    }

    /// Done, and in total; `None` before it has begun. The total is what was there at the beginning.
    pub fn get(&self) -> Option<(u64, u64)> {
        let total = self.total.load(Relaxed);
        (total > 0).then(|| (self.done.load(Relaxed).min(total), total))
    }

    /// Has it stop, for this reason, where it can.
    pub fn stop(&self, reason: Error) {
        let _ = self.stopped.set(reason);
    }

    /// Fails with the reason, once it is to stop.
    pub fn check(&self) -> Result<()> {
        self.stopped.get().map_or(Ok(()), |reason| Err(reason.clone()))
    }

    pub fn percent(&self) -> u64 {
        self.get().map_or(0, |(done, total)| done.saturating_mul(100) / total)
    }
}
