//! Beginning and ending transactions.

use crate::catalog::table::Table;
use crate::index::side_index::claims_table;
use mariadb_client::{Connection, Result};
use std::time::Duration;

/// Queues the beginning of a transaction, which [`commit`] or [`roll_back`] ends.
///
/// Statements are pipelined, and the server may roll the transaction back in the middle of them (a
/// deadlock). After a `BEGIN` it would then commit each of the remaining statements. Without
/// autocommit they are a new transaction, which is rolled back with the failure.
///
/// Within a client's transaction it is only a part of that, which can be undone.
pub(crate) fn queue_begin(connection: &mut Connection) {
    if connection.is_in_client_transaction() {
        return connection.queue_query("SAVEPOINT selkie_write");
    }
    connection.altered = true;
    connection.queue_query("SET autocommit = 0");
}

/// As [`queue_begin`], for a transaction that writes to a table: also names the indexes whose keys
/// it claims (see [`claims_table`]).
pub(super) fn queue_begin_on(connection: &mut Connection, table: &Table) {
    match claims_table::are_needed(table) {
        true => {
            connection.altered = true;
            connection.queue_query(&claims_table::beginning(table));
        }
        false => queue_begin(connection),
    }
}

pub(crate) async fn commit(connection: &mut Connection) -> Result<()> {
    if connection.is_in_client_transaction() {
        return Ok(());
    }
    end(connection, "COMMIT").await
}

pub(crate) async fn roll_back(connection: &mut Connection) -> Result<()> {
    if connection.is_in_client_transaction() {
        connection.queue_query("ROLLBACK TO SAVEPOINT selkie_write");
        return connection.finish().await.map(drop);
    }
    end(connection, "ROLLBACK").await
}

/// Ends the transaction. If that fails, or autocommit cannot be restored, the connection stays
/// marked as altered, and is closed rather than reused.
async fn end(connection: &mut Connection, how: &str) -> Result<()> {
    connection.queue_query(how);
    connection.queue_query("SET autocommit = 1");
    let (ended, restored) = (connection.finish().await, connection.finish().await);
    ended?;
    connection.altered = restored.is_err();
    Ok(())
}

/// Pauses after a conflict, longer after several, so that many writers of one document get through.
pub(super) async fn back_off(attempt: usize) {
    if attempt > 2 {
        let limit = (attempt as u64 * 50).min(5_000);
        tokio::time::sleep(Duration::from_micros(rand::random_range(0..=limit))).await;
    }
}
