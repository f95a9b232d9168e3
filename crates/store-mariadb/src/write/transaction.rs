//! Beginning and ending transactions.

use crate::catalog::table::Table;
use crate::index::side_index::claims_table;
use mariadb_client::{Connection, Result};
use std::time::Duration;

/// Begins a transaction, which [`commit`] or [`roll_back`] ends.
///
/// Statements are sent ahead of their answers, and the server may undo the transaction in the midst of them (a deadlock). Behind a
/// `BEGIN` it would then commit each of those that are still on their way; without autocommit they are a transaction of their
/// own, which is rolled back with the failure.
pub(crate) fn queue_begin(connection: &mut Connection) {
    connection.altered = true;
    connection.queue_query("SET autocommit = 0");
}

/// Begins a transaction that writes to a table: see [`queue_begin`], and [`claims_table`] for what unique indexes may have to know.
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
    end(connection, "COMMIT").await
}

pub(crate) async fn roll_back(connection: &mut Connection) -> Result<()> {
    end(connection, "ROLLBACK").await
}

/// Where this fails, or the session cannot be set as before, the connection stays marked as
/// altered, and is closed rather than used again.
async fn end(connection: &mut Connection, how: &str) -> Result<()> {
    connection.queue_query(how);
    connection.queue_query("SET autocommit = 1");
    let (ended, restored) = (connection.finish().await, connection.finish().await);
    ended?;
    connection.altered = restored.is_err();
    Ok(())
}

/// Waits a little, longer the more often others were in the way, so that many writers of one document get through.
pub(super) async fn back_off(attempt: usize) {
    if attempt > 2 {
        let limit = (attempt as u64 * 50).min(5_000);
        tokio::time::sleep(Duration::from_micros(rand::random_range(0..=limit))).await;
    }
}
