//! A transaction: its connection, its phase, and what it has used so far.

use crate::transaction::shared::{SharedTransactions, Slot};
use ahash::AHashSet;
use error::Error;
use mariadb_client::{DedicatedConnection, SessionKiller};
use std::any::Any;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{Changes, Namespace, Transaction};

const OPEN: u8 = 0;
const COMMITTING: u8 = 1;
const OVER: u8 = 2;

/// A transaction, as its clients hold it.
pub(crate) struct MariaDbTransaction {
    /// `None` once it is over. Locked by the statement that runs.
    pub connection: Arc<tokio::sync::Mutex<Option<DedicatedConnection>>>,
    phase: AtomicU8,
    used: Mutex<Use>,
    killer: SessionKiller,
    pub shared: Arc<SharedTransactions>,
    _slot: Slot,
}

/// What a transaction has used so far.
#[derive(Default)]
pub(crate) struct Use {
    /// To be reported before the commit.
    pub changes: Changes,
    pub written: AHashSet<Namespace>,
    /// Collections that its connection has read or written, whose definitions cannot be changed.
    pub opened: AHashSet<Namespace>,
    /// Collections that it has created.
    pub created: AHashSet<Namespace>,
}

/// Returns this store's transaction behind a handle.
pub(crate) fn of(transaction: &Arc<dyn Transaction>) -> error::Result<&MariaDbTransaction> {
    let transaction: Option<&MariaDbTransaction> = transaction.as_any().downcast_ref();
    transaction.ok_or_else(|| Error::internal("a transaction of another store"))
}

impl MariaDbTransaction {
    /// `connection`: has taken the snapshot.
    pub fn new(connection: DedicatedConnection, shared: Arc<SharedTransactions>, slot: Slot) -> MariaDbTransaction {
        MariaDbTransaction {
            killer: connection.session_killer(),
            connection: Arc::new(tokio::sync::Mutex::new(Some(connection))),
            phase: AtomicU8::new(OPEN),
            used: Mutex::default(),
            shared,
            _slot: slot,
        }
    }

    pub fn is_over(&self) -> bool {
        self.phase.load(Ordering::Acquire) == OVER
    }

    /// Begins the commit. Returns false if the transaction was aborted; afterwards it cannot be.
    pub fn begin_commit(&self) -> bool {
        self.passes(OPEN, COMMITTING)
    }

    /// Ends the transaction after its commit has succeeded or failed.
    pub fn finish(&self) {
        self.phase.store(OVER, Ordering::Release);
    }

    fn passes(&self, from: u8, to: u8) -> bool {
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub fn uses(&self) -> MutexGuard<'_, Use> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transaction for MariaDbTransaction {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn abort(&self) {
        if !self.passes(OPEN, OVER) {
            return;
        }
        match self.connection.try_lock() {
            Ok(mut place) => place.take().into_iter().for_each(|connection| self.shared.roll_back(connection)),
            // The statement finds out when it ends.
            Err(_) => self.killer.kill(),
        }
    }
}

impl Drop for MariaDbTransaction {
    fn drop(&mut self) {
        self.abort();
    }
}
