//! `fsync` with `lock`: writes wait until `fsyncUnlock`, so that files can be copied meanwhile.
//!
//! The lock is this process's own: on MariaDB it does not hold back other gateways and SQL clients.

use crate::operation::OperationContext;
use error::Result;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// The number of times that writes have been locked.
#[derive(Debug)]
pub struct WriteLock {
    count: watch::Sender<u32>,
    /// Whether the count is above zero. Each command reads it, and the count itself is behind a
    /// lock.
    is_locked: AtomicBool,
}

impl Default for WriteLock {
    fn default() -> Self {
        WriteLock { count: watch::Sender::new(0), is_locked: AtomicBool::new(false) }
    }
}

impl WriteLock {
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.is_locked.load(Ordering::Relaxed)
    }

    /// Locks writes once more; returns the new count.
    pub fn lock(&self) -> u32 {
        self.count.send_modify(|count| {
            *count += 1;
            self.is_locked.store(true, Ordering::Relaxed);
        });
        *self.count.borrow()
    }

    /// Releases one lock; returns the remaining count, or `None` if writes were not locked.
    pub fn unlock(&self) -> Option<u32> {
        let unlocked = self.count.send_if_modified(|count| {
            let was_locked = *count > 0;
            *count = count.saturating_sub(1);
            self.is_locked.store(*count > 0, Ordering::Relaxed);
            was_locked
        });
        unlocked.then(|| *self.count.borrow())
    }

    /// Waits until writes are not locked. Fails if the operation is killed or its time is up.
    pub async fn wait(&self, operation: &OperationContext) -> Result<()> {
        let mut count = self.count.subscribe();
        let unlocked = async { count.wait_for(|count| *count == 0).await.map(drop) };
        let mut unlocked = pin!(unlocked);
        let waiting = poll_fn(|context| {
            operation.set_waiting_for_lock(true);
            // The sender lives as long as the server.
            unlocked.as_mut().poll(context).map(|_| Ok(()))
        });
        let outcome = operation.run_interruptible(waiting).await;
        operation.set_waiting_for_lock(false);
        outcome
    }
}
