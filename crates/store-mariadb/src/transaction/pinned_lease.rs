//! A connection for statements on documents: of the worker's pool, or pinned to a transaction.

use crate::transaction::{snapshot, state};
use mariadb_client::{Connection, DedicatedConnection, Lease};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use store::Transaction;
use tokio::sync::OwnedMutexGuard;

pub(crate) enum DocumentsLease {
    Pooled(Lease),
    Pinned(PinnedLease),
}

impl DocumentsLease {
    /// Closes the idle connections of the pool, which are likely to be dead after one proved so.
    pub fn close_idle(&self) {
        if let DocumentsLease::Pooled(lease) = self {
            lease.close_idle();
        }
    }
}

impl Deref for DocumentsLease {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        match self {
            DocumentsLease::Pooled(lease) => lease,
            DocumentsLease::Pinned(lease) => lease,
        }
    }
}

impl DerefMut for DocumentsLease {
    fn deref_mut(&mut self) -> &mut Connection {
        match self {
            DocumentsLease::Pooled(lease) => lease,
            DocumentsLease::Pinned(lease) => lease,
        }
    }
}

/// The connection of a transaction, while a statement uses it. If it is dropped while an answer is
/// due, the transaction ends.
pub(crate) struct PinnedLease {
    /// `None` only while it is dropped.
    connection: Option<DedicatedConnection>,
    place: OwnedMutexGuard<Option<DedicatedConnection>>,
    transaction: Arc<dyn Transaction>,
}

impl PinnedLease {
    pub fn new(
        connection: DedicatedConnection,
        place: OwnedMutexGuard<Option<DedicatedConnection>>,
        transaction: Arc<dyn Transaction>,
    ) -> PinnedLease {
        PinnedLease { connection: Some(connection), place, transaction }
    }

    /// Takes a new snapshot.
    pub async fn begin_again(&mut self) -> mariadb_client::Result<()> {
        match &mut self.connection {
            Some(connection) => snapshot::take_again(connection).await,
            None => Ok(()),
        }
    }
}

#[allow(clippy::expect_used, reason = "the connection is taken in drop only")]
impl Deref for PinnedLease {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("present until dropped")
    }
}

#[allow(clippy::expect_used, reason = "the connection is taken in drop only")]
impl DerefMut for PinnedLease {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("present until dropped")
    }
}

impl Drop for PinnedLease {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        // After a failure the answers behind it are not awaited.
        let is_usable = connection.is_at_rest() || connection.transaction_failure().is_some();
        if is_usable && let Ok(transaction) = state::of(&self.transaction) {
            match transaction.is_over() {
                true => transaction.shared.roll_back(connection),
                false => *self.place = Some(connection),
            }
        }
    }
}
