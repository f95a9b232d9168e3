//! Transactions of several statements.
//!
//! A transaction has a connection of its own, which is pinned to the snapshot of its first
//! statement. Its writes are kept in temporary tables of that connection ([`overlay`]), which
//! shadow the tables of the file ([`shadows`]). So every plan reads the snapshot with the
//! transaction's own writes, by the same statements. The writes are also logged ([`log`]). The
//! commit sends the log to the writer, which replays it in one commit. [`ending`] is the end of a
//! transaction, and [`statement`] a worker's half of the store while it executes a statement of
//! one.
//!
//! The writer begins transactions, so that the snapshot, the catalog and the index entries belong
//! together, and it keeps the intents of all transactions
//! ([`intents`](crate::write::intents)).

pub mod ending;
pub mod log;
mod overlay;
mod shadows;
pub mod statement;

use crate::catalog::Catalog;
use crate::shared::Shared;
use ending::Ending;
use error::Result;
use log::Log;
use rusqlite::Connection;
pub use shadows::Shadows;
use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{SnapshotTimes, Transaction};

/// The limit of idle connections for transactions.
const IDLE_MAX: usize = 16;

/// A transaction, as its clients hold it.
pub struct SqliteTransaction {
    pub ending: Arc<Ending>,
    /// `None` while a statement uses it, and once the transaction is over.
    snapshot: Mutex<Option<Snapshot>>,
    times: Option<SnapshotTimes>,
}

/// The state of a transaction between two statements.
pub struct Snapshot {
    pub connection: Pinned,
    /// The catalog of the snapshot, with the transaction's own collections.
    pub catalog: Arc<Catalog>,
    pub log: Log,
}

/// A connection that is pinned to a snapshot until it is dropped.
pub struct Pinned {
    connection: Option<Connection>,
    pub shadows: Shadows,
    shared: Arc<Shared>,
}

impl SqliteTransaction {
    pub fn new(snapshot: Snapshot, ending: Arc<Ending>, times: Option<SnapshotTimes>) -> SqliteTransaction {
        SqliteTransaction { ending, snapshot: Mutex::new(Some(snapshot)), times }
    }

    /// Takes the state for a statement. Fails with 251 if the transaction is over.
    pub fn take(&self) -> Result<Snapshot> {
        let snapshot = self.lock().take();
        snapshot.filter(|_| !self.ending.is_over()).ok_or_else(store::transaction::aborted)
    }

    /// Puts the state back after a statement.
    pub fn put_back(&self, snapshot: Snapshot) {
        let mut place = self.lock();
        // Checked under the lock: an abort empties the place after it has set the mark.
        if !self.ending.is_over() {
            *place = Some(snapshot);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Snapshot>> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transaction for SqliteTransaction {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn snapshot_times(&self) -> Option<SnapshotTimes> {
        self.times
    }

    fn abort(&self) {
        if self.ending.abort() {
            let snapshot = self.lock().take();
            drop(snapshot);
        }
    }
}

impl Drop for SqliteTransaction {
    fn drop(&mut self) {
        self.abort();
    }
}

impl Pinned {
    /// Pins a connection that has begun to read.
    pub fn new((connection, shadows): IdleConnection, shared: Arc<Shared>) -> Pinned {
        shared.pinned_snapshots.fetch_add(1, Ordering::AcqRel);
        Pinned { connection: Some(connection), shadows, shared }
    }

    /// Takes the connection out for a statement.
    pub fn take(&mut self) -> Option<Connection> {
        self.connection.take()
    }

    pub fn put_back(&mut self, connection: Connection) {
        self.connection = Some(connection);
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.shared.idle_transactions.give_back((connection, std::mem::take(&mut self.shadows)));
        }
        self.shared.pinned_snapshots.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Idle connections for transactions, which any worker uses.
#[derive(Default)]
pub struct IdleConnections(Mutex<Vec<IdleConnection>>);

pub type IdleConnection = (Connection, Shadows);

impl IdleConnections {
    pub fn take(&self) -> Option<IdleConnection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Releases the snapshot, with all that was written on the connection, and keeps the
    /// connection.
    fn give_back(&self, (connection, mut shadows): IdleConnection) {
        // Closing the connection releases the snapshot as well.
        if let Err(error) = execute(&connection, "ROLLBACK") {
            tracing::debug!(%error, "a transaction's snapshot could not be released");
            return;
        }
        match shadows.keep(&connection) {
            Ok(true) => {}
            Ok(false) => return,
            Err(failure) => {
                tracing::debug!(?failure, "the shadows of a transaction could not be kept");
                return;
            }
        }
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push((connection, shadows));
        }
    }
}

/// Executes a statement that stays prepared with the connection.
pub fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}
