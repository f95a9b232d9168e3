//! What the transactions of all workers share: the limit of their number, and idle connections.

use super::state;
use ahash::AHashMap;
use error::{Code, Error, Result};
use mariadb_client::DedicatedConnection;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use store::transaction::TRANSIENT;
use store::{Namespace, SnapshotLimits, Transaction};
use tokio::sync::watch;

/// The default for transactions that may be open. Each has a connection, and MariaDB allows 151 by
/// default.
const OPEN_MAX: usize = 64;

/// Snapshots are at most one in so many of the transactions that may be open.
const SNAPSHOTS_PART: usize = 4;

/// Idle connections kept, and for how long.
const IDLE_MAX: usize = 16;
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a rollback may take before its connection is closed, and others no longer wait for it.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct SharedTransactions {
    open: AtomicUsize,
    open_max: usize,
    idle: Mutex<Vec<IdleConnection>>,
    /// Rollbacks that have not been answered.
    rollbacks: watch::Sender<usize>,
    /// Sessions with a commit whose outcome is unknown, and its number.
    pub in_doubt: Mutex<AHashMap<[u8; 16], i64>>,
    /// Those that are snapshots of reads outside of transactions.
    snapshots: Mutex<Vec<Weak<dyn Transaction>>>,
}

struct IdleConnection {
    connection: DedicatedConnection,
    has_role: bool,
    since: Instant,
}

/// The right to have a transaction open.
pub(crate) struct Slot(Arc<SharedTransactions>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl SharedTransactions {
    pub fn new(open_max: Option<usize>) -> Arc<SharedTransactions> {
        Arc::new(SharedTransactions {
            open: AtomicUsize::new(0),
            open_max: open_max.unwrap_or(OPEN_MAX),
            idle: Mutex::default(),
            rollbacks: watch::Sender::new(0),
            in_doubt: Mutex::default(),
            snapshots: Mutex::default(),
        })
    }

    /// Fails with 24 if too many transactions are open.
    pub fn take_slot(self: &Arc<Self>) -> Result<Slot> {
        let slot = Slot(self.clone());
        if self.open.fetch_add(1, Ordering::AcqRel) >= self.open_max {
            let message = format!("Unable to begin a transaction: {} are open", self.open_max);
            return Err(Error::new(Code::LOCK_TIMEOUT, message).with_labels(&[TRANSIENT]));
        }
        Ok(slot)
    }

    /// Returns the limits of snapshots. They leave most connections to transactions.
    pub fn snapshot_limits(&self) -> SnapshotLimits {
        SnapshotLimits { count: self.open_max / SNAPSHOTS_PART, delays_definitions: true }
    }

    /// Notes that a transaction is a snapshot.
    pub fn add_snapshot(&self, snapshot: &Arc<dyn Transaction>) {
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        snapshots.retain(|snapshot| snapshot.strong_count() > 0);
        snapshots.push(Arc::downgrade(snapshot));
    }

    /// Ends the snapshots that have read these collections, whose definitions MariaDB would not
    /// change before. A namespace without a collection is a whole database.
    pub fn release_snapshots(&self, namespaces: &[&Namespace]) {
        let snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for snapshot in snapshots.iter().filter_map(Weak::upgrade) {
            let Ok(transaction) = state::of(&snapshot) else { continue };
            let uses_any = transaction.uses().opened.iter().any(|opened| {
                let is_in = |changed: &&Namespace| {
                    changed.database == opened.database
                        && (changed.collection.is_empty() || changed.collection == opened.collection)
                };
                namespaces.iter().any(is_in)
            });
            if uses_any {
                snapshot.abort();
            }
        }
    }

    /// Returns an idle connection with the settings of transactions.
    pub fn take_idle(&self, has_role: bool) -> Option<DedicatedConnection> {
        let mut idle = self.idle();
        idle.retain(|idle| idle.since.elapsed() < IDLE_TIMEOUT);
        while let Some(position) = idle.iter().rposition(|idle| idle.has_role == has_role) {
            let mut connection = idle.remove(position).connection;
            if connection.is_current() && !connection.has_hung_up() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose transaction has ended.
    pub fn give_back(&self, mut connection: DedicatedConnection) {
        connection.end_client_transaction();
        if !connection.is_at_rest() || !connection.is_current() {
            return;
        }
        let has_role = connection.wanted_role().is_some();
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(IdleConnection { connection, has_role, since: Instant::now() });
        }
    }

    /// Rolls a transaction back without waiting for it. Outside of a worker the connection is
    /// closed instead, which the server notices later.
    pub fn roll_back(self: &Arc<Self>, connection: DedicatedConnection) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        self.rollbacks.send_modify(|count| *count += 1);
        let done = RollbackDone(self.clone());
        runtime.spawn(async move {
            let rolling_back = roll_back_on(connection);
            if let Ok(Some(connection)) = tokio::time::timeout(ROLLBACK_TIMEOUT, rolling_back).await {
                done.0.give_back(connection);
            }
            drop(done);
        });
    }

    /// Waits for the rollbacks that have begun: what they have written would be conflicts.
    pub async fn wait_for_rollbacks(&self) {
        if *self.rollbacks.borrow() == 0 {
            return;
        }
        let mut rollbacks = self.rollbacks.subscribe();
        let _ = tokio::time::timeout(ROLLBACK_TIMEOUT, rollbacks.wait_for(|count| *count == 0)).await;
    }

    pub fn close(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<IdleConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct RollbackDone(Arc<SharedTransactions>);

impl Drop for RollbackDone {
    fn drop(&mut self) {
        self.0.rollbacks.send_modify(|count| *count -= 1);
    }
}

/// Returns the connection if it can be used again.
async fn roll_back_on(mut connection: DedicatedConnection) -> Option<DedicatedConnection> {
    connection.end_client_transaction();
    connection.queue_query("ROLLBACK");
    // Answers of statements behind one that failed come first.
    while !connection.is_at_rest() {
        if connection.finish().await.is_err_and(|failure| failure.is_lost()) {
            return None;
        }
    }
    Some(connection)
}
