//! Transactions of several statements, which clients begin and end.
//!
//! A transaction has a connection of its own, pinned to it until its end ([`state`]; [`shared`]
//! keeps idle ones). MariaDB's own transaction on it gives the snapshot (REPEATABLE READ), the own
//! writes, and one commit. Statements read their documents in the snapshot, and write rows by their
//! keys on the condition that they have not changed, so that the first writer wins. A lock that
//! another transaction holds is not awaited. A statement executes on the store of [`inside`], which
//! lends the pinned connection wherever the worker's store would lend one of its pool.
//!
//! The commit records the outcome ([`outcome`]), for clients that have not received the answer.
//! [`conflicts`] decides whether a duplicate key belongs to the snapshot.

pub(crate) mod conflicts;
pub(crate) mod definitions;
pub(crate) mod inside;
pub(crate) mod outcome;
pub(crate) mod outcome_record;
pub(crate) mod pinned_lease;
pub(crate) mod shared;
pub(crate) mod snapshot;
pub(crate) mod state;
pub(crate) mod writes;

use crate::store::MariaDbStore;
use error::{Code, Error};
use mariadb_client::{DedicatedConnection, Failure, Result};
use state::MariaDbTransaction;
use std::sync::Arc;
use store::transaction::{TRANSIENT, aborted, may_be_committed, write_conflict};
use store::{Changes, Namespace, Transaction, TransactionKey};

/// Settings of a transaction's session. Every written row is verified by its content, which is why
/// InnoDB need not do so (`innodb_snapshot_isolation`): it would also refuse rows of indexes that
/// have changed for other reasons.
const SETTINGS: &str = "SET SESSION autocommit = 0, SESSION tx_isolation = 'REPEATABLE-READ', \
     SESSION innodb_lock_wait_timeout = 0, SESSION lock_wait_timeout = 2";
const NO_SNAPSHOT_ISOLATION: &str = "SET SESSION innodb_snapshot_isolation = OFF";

/// Begins a transaction.
pub(crate) async fn begin(store: &MariaDbStore) -> error::Result<Arc<dyn Transaction>> {
    store.prepare().await?;
    crate::write::delete_old_records(store).await?;
    let slot = store.transactions.take_slot()?;
    store.transactions.wait_for_rollbacks().await;
    let role = store.role_for(&"a transaction")?;
    let connection = match store.transactions.take_idle(role.is_some()) {
        Some(mut idle) => {
            role.iter().for_each(|role| idle.use_role(role));
            match begin_on(&mut idle).await {
                Ok(()) => Some(idle),
                Err(_) => None,
            }
        }
        None => None,
    };
    let connection = match connection {
        Some(connection) => connection,
        None => {
            let mut opened = store.pool.dedicate(role.as_ref()).await.map_err(unavailable)?;
            set_up(&mut opened).await?;
            begin_on(&mut opened).await?;
            opened
        }
    };
    Ok(Arc::new(MariaDbTransaction::new(connection, store.transactions.clone(), slot)))
}

/// Makes the failure to get a connection one after which the client may begin again.
fn unavailable(failure: Failure) -> Error {
    let error = Error::from(failure);
    match error.code() {
        Code::NETWORK_INTERFACE_EXCEEDED_TIME_LIMIT => {
            let message = format!("Unable to begin a transaction: {}", error.message());
            Error::new(Code::LOCK_TIMEOUT, message).with_labels(&[TRANSIENT])
        }
        _ => error,
    }
}

async fn set_up(connection: &mut DedicatedConnection) -> Result<()> {
    connection.altered = true;
    connection.queue_query(SETTINGS);
    connection.queue_query(NO_SNAPSHOT_ISOLATION);
    let (set, other) = (connection.finish().await, connection.finish().await);
    set?;
    match other {
        // A server without that variable does not refuse such rows.
        Err(failure) if failure.is_lost() => Err(failure),
        _ => Ok(()),
    }
}

/// Takes the snapshot.
async fn begin_on(connection: &mut DedicatedConnection) -> Result<()> {
    snapshot::take(connection).await?;
    connection.begin_client_transaction(write_conflict());
    Ok(())
}

/// Commits a transaction; returns the collections that it has written.
pub(crate) async fn commit(
    store: &MariaDbStore,
    transaction: &Arc<dyn Transaction>,
    key: &TransactionKey,
) -> error::Result<Vec<Namespace>> {
    let transaction = state::of(transaction)?;
    if !transaction.begin_commit() {
        return Err(aborted());
    }
    let place = transaction.connection.lock().await.take();
    let used = std::mem::take(&mut *transaction.uses());
    let written: Vec<Namespace> = used.written.into_iter().collect();
    let outcome = match place {
        None => Err(aborted()),
        Some(connection) if written.is_empty() => {
            store.transactions.roll_back(connection);
            Ok(())
        }
        Some(connection) => {
            let committing = outcome::commit(store, connection, key);
            let note = |changes: &mut Changes, _: &dyn store::ChangeObserver| *changes = used.changes;
            store.change_observer.observe_write(note, may_be_committed, committing).await
        }
    };
    transaction.finish();
    outcome.map(|()| written)
}
