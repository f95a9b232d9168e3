//! The outcome of a transaction: recorded in its commit, and asked for if there was no answer.
//!
//! The record is a row of `selkie.retryable_writes`, as that of a retryable write. It names the
//! session, so that the binary log shows which transaction has made the changes before it. If the
//! connection is lost before the commit is answered, the outcome is asked for by inserting the
//! opposite one: that waits for a commit in progress, is refused if the transaction was committed,
//! and otherwise prevents that it ever is. The same is done for a transaction of another gateway,
//! which may have been killed while MariaDB commits.

use super::outcome_record;
use crate::catalog::own_schema;
use crate::store::MariaDbStore;
use crate::write::retry_record;
use document::{Doc, DocBuf};
use mariadb_client::{Connection, DedicatedConnection, Failure, Result, server_error};
use mariadb_wire::Param;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use store::transaction::{aborted, may_be_committed, write_conflict};
use store::{RecordedWrite, RetryKey, TransactionKey};

/// How long the outcome of a commit is asked for, and the pause after each failure.
const ASK_FOR: Duration = Duration::from_secs(15);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Commits a transaction that has written.
pub(super) async fn commit(
    store: &MariaDbStore,
    mut connection: DedicatedConnection,
    key: &TransactionKey,
) -> error::Result<()> {
    let outcome = outcome_record::committed(key);
    let key = &key.retry;
    if let Err(failure) = record(&mut connection, key, &outcome).await {
        let is_lost = failure.is_lost();
        if !is_lost {
            store.transactions.roll_back(connection);
        }
        // Nothing was committed.
        return Err(match failure {
            Failure::Other(error) if !may_be_committed(&error) => error,
            // The number is not new, or MariaDB rolls back because the connection is lost.
            failure if is_lost || failure.sql_code() == Some(server_error::COLUMN_NOT_NULL) => aborted(),
            _ => write_conflict(),
        });
    }
    connection.queue_query("COMMIT");
    match connection.finish().await {
        Ok(_) => {
            store.transactions.give_back(connection);
            Ok(())
        }
        Err(failure) if failure.is_lost() || failure.is_interrupted() => {
            drop(connection);
            settle(store, key).await
        }
        // A node of a Galera cluster that meets a conflict with another node's transaction, or a
        // server without space, has rolled back.
        Err(failure) => {
            tracing::debug!("a transaction was not committed: {failure}");
            store.transactions.roll_back(connection);
            Err(write_conflict())
        }
    }
}

/// Finds out how a commit has ended whose answer was lost.
async fn settle(store: &MariaDbStore, key: &RetryKey) -> error::Result<()> {
    let in_doubt = || store.transactions.in_doubt.lock().unwrap_or_else(PoisonError::into_inner);
    in_doubt().insert(key.session, key.txn_number);
    let until = Instant::now() + ASK_FOR;
    loop {
        match ask(store, key).await {
            Ok(committed) => {
                in_doubt().remove(&key.session);
                return if committed { Ok(()) } else { Err(aborted()) };
            }
            Err(failure) if Instant::now() > until => return Err(failure.into()),
            Err(failure) => {
                tracing::debug!("the outcome of a commit is not known yet: {failure}");
                tokio::time::sleep(ASK_AGAIN_AFTER).await;
            }
        }
    }
}

/// Asks for the outcome of a commit, and settles it. Returns whether it has succeeded.
async fn ask(store: &MariaDbStore, key: &RetryKey) -> Result<bool> {
    let mut lease = store.pool.lease().await?;
    match record(&mut lease, key, &outcome_record::aborted()).await {
        Ok(()) => Ok(false),
        Err(failure) if failure.sql_code() == Some(server_error::COLUMN_NOT_NULL) => {
            let known = load(&mut lease, key.session).await?;
            Ok(known.is_some_and(|write| write.is_transaction && write.txn_number == key.txn_number))
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the recorded write of a session. `commits`: as in
/// [`store::DocumentStore::recorded_write`].
pub(crate) async fn recorded(
    store: &MariaDbStore,
    session: [u8; 16],
    commits: Option<i64>,
) -> Result<Option<RecordedWrite>> {
    let doubtful = {
        let in_doubt = store.transactions.in_doubt.lock().unwrap_or_else(PoisonError::into_inner);
        in_doubt.get(&session).copied()
    };
    if let Some(txn_number) = doubtful.max(commits) {
        ask(store, &RetryKey { session, txn_number }).await?;
        store.transactions.in_doubt.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }
    load(&mut *store.pool.lease().await?, session).await
}

/// Records how a transaction ends, unless its number is not new: then fails with 1048.
async fn record(connection: &mut Connection, key: &RetryKey, outcome: &DocBuf) -> Result<()> {
    let params = [
        Param::Bytes(&key.session),
        Param::Signed(key.txn_number),
        Param::Unsigned(0),
        Param::Bytes(outcome.as_bytes()),
    ];
    connection.queue_execute(&retry_record::BEGIN.into(), &params);
    connection.finish().await.map(drop)
}

async fn load(connection: &mut Connection, session: [u8; 16]) -> Result<Option<RecordedWrite>> {
    let mut found = None;
    own_schema::query(connection, &retry_record::LOAD.into(), &[Param::Bytes(&session)], |row| {
        if let [Some(number), Some(outcome)] = row {
            let txn_number = number.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
            let record = Doc::from_bytes(outcome).unwrap_or(Doc::EMPTY);
            let is_transaction = outcome_record::is_committed(record);
            found = (!outcome_record::is_aborted(record)).then_some(RecordedWrite { txn_number, is_transaction });
        }
        Ok(())
    })
    .await?;
    Ok(found)
}
