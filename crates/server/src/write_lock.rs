//! `fsync` with `lock`: writes wait until `fsyncUnlock`, so that files can be copied meanwhile.
//!
//! The lock is this process's own: on MariaDB it does not hold back other gateways and SQL clients.

use crate::running::Running;
use crate::server::Server;
use crate::table::{self, Access, Spec};
use document::Doc;
use error::Result;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How often the lock looks whether the writes that were under way have ended.
const LOOKS_AGAIN: Duration = Duration::from_millis(5);

/// How many times writes have been locked.
#[derive(Debug)]
pub struct WriteLock {
    count: watch::Sender<u32>,
    /// The count is above zero. Each command asks, and the count itself is behind a lock.
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

    /// Locks writes once more; returns how many times they are locked.
    pub fn lock(&self) -> u32 {
        self.count.send_modify(|count| {
            *count += 1;
            self.is_locked.store(true, Ordering::Relaxed);
        });
        *self.count.borrow()
    }

    /// Takes one lock back; returns how many are left, and `None` if there was none.
    pub fn unlock(&self) -> Option<u32> {
        let unlocked = self.count.send_if_modified(|count| {
            let was_locked = *count > 0;
            *count = count.saturating_sub(1);
            self.is_locked.store(*count > 0, Ordering::Relaxed);
            was_locked
        });
        unlocked.then(|| *self.count.borrow())
    }

    /// Waits until writes are not locked.
    pub async fn wait(&self, running: &Running) -> Result<()> {
        let mut count = self.count.subscribe();
        let unlocked = async { count.wait_for(|count| *count == 0).await.map(drop) };
        let mut unlocked = pin!(unlocked);
        let waiting = poll_fn(|context| {
            running.note_lock(true);
            // The sender lives as long as the server.
            unlocked.as_mut().poll(context).map(|_| Ok(()))
        });
        let outcome = running.within(waiting).await;
        running.note_lock(false);
        outcome
    }
}

/// Waits until no write is under way that does not wait for the lock itself.
pub async fn drain(server: &Server) {
    loop {
        tokio::time::sleep(LOOKS_AGAIN).await;
        let workers = server.workers();
        let mut operations = workers.iter().flat_map(|worker| worker.operations.list());
        if !operations.any(|operation| !operation.waits_for_lock() && writes_by_name(operation.command())) {
            return;
        }
    }
}

fn writes_by_name(command: Doc<'_>) -> bool {
    let spec = command.first().and_then(|first| table::COMMANDS.get(table::find(first.key_bytes())?));
    spec.is_some_and(|spec| writes(spec, command))
}

/// Whether a command changes documents or the catalog.
pub fn writes(spec: &Spec, command: Doc<'_>) -> bool {
    match spec.access {
        Access::Write => true,
        Access::Read => spec.name == "aggregate" && !table::only_reads(command),
        Access::Admin => spec.takes_write_concern,
        Access::Nothing => false,
    }
}
