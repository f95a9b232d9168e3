//! The end of a transaction, which its clients, the writer and those that wait for it share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Waiting for a transaction checks this often whether it must stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

const OPEN: u8 = 0;
const COMMITTING: u8 = 1;
const OVER: u8 = 2;

/// Whether a transaction is over. It passes from open to over by an abort, and through committing
/// by a commit.
#[derive(Debug)]
pub struct Ending {
    phase: AtomicU8,
    over: watch::Sender<bool>,
}

impl Ending {
    pub fn new() -> Arc<Ending> {
        Arc::new(Ending { phase: AtomicU8::new(OPEN), over: watch::Sender::new(false) })
    }

    pub fn is_over(&self) -> bool {
        self.phase.load(Ordering::Acquire) == OVER
    }

    /// Begins the commit. Returns false if the transaction was aborted; afterwards it cannot be.
    pub fn begin_commit(&self) -> bool {
        self.phase.compare_exchange(OPEN, COMMITTING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends the transaction after its commit has succeeded or failed.
    pub fn finish(&self) {
        self.phase.store(OVER, Ordering::Release);
        self.over.send_replace(true);
    }

    /// Aborts the transaction, unless it is being committed. Returns whether it was open.
    pub fn abort(&self) -> bool {
        let aborted = self.phase.compare_exchange(OPEN, OVER, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if aborted {
            self.over.send_replace(true);
        }
        aborted
    }

    /// Waits until the transaction is over. Calls `check` now and then, and fails with its error.
    pub async fn wait_unless<E>(&self, check: impl Fn() -> Result<(), E>) -> Result<(), E> {
        while tokio::time::timeout(CHECK_INTERVAL, self.wait()).await.is_err() {
            check()?;
        }
        check()
    }

    async fn wait(&self) {
        // Fails only if the sender is gone, which `self` has.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_has_begun_is_not_aborted() {
        let ending = Ending::new();
        assert!(ending.begin_commit() && !ending.abort() && !ending.is_over());
        ending.finish();
        assert!(ending.is_over() && !ending.begin_commit());
        let ending = Ending::new();
        assert!(ending.abort() && ending.is_over() && !ending.begin_commit() && !ending.abort());
    }
}
