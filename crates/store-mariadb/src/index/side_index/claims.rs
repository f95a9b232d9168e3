//! Claims: uniqueness of side indexes (with a collation, with a filter that SQL does not decide, or
//! whose columns do not fit into the table).
//!
//! Each key of a document is claimed: its hash is inserted into a table under a unique key, in the
//! transaction that writes the document. So of two gateways that write one key at the same time the
//! second waits for the first, and is refused. Writes of SQL clients are noted by triggers like all
//! changes, and claim the keys that are still free when they are refreshed. A document by SQL that
//! has a taken key stays: MariaDB cannot refuse a key that it cannot compute.
//!
//! A gateway that does not know the index yet would write without a claim. Triggers prevent that: a
//! gateway's session names the indexes whose keys it claims, and a session that does not name this
//! one fails with a missing table, after which the gateway reads the table's definition again.

use crate::catalog::table::Table;
use crate::index::Index;
use crate::index::side_index::refresh::{BATCH_ROWS, refresh_batch, refresh_within};
use crate::index::side_index::side_table::{Duplicates, KEY, SideTable};
use mariadb_client::{Connection, Event, Failure, Result, server_error};

/// Refreshes rows that other sessions have written, in transactions of its own, so that only the
/// caller's rows are left. Returns false if other sessions are still refreshing some, so that free
/// keys may seem taken.
pub(crate) async fn refresh_pending(connection: &mut Connection, table: &Table) -> Result<bool> {
    let mut settled = true;
    for (index, keys) in claimed(table) {
        let mut keys = keys.clone();
        while is_any_pending(connection, table, &keys).await? {
            if refresh_batch(connection, table, index, &mut keys, Duplicates::Tolerated).await? < BATCH_ROWS {
                settled &= !is_any_pending(connection, table, &keys).await?;
                break;
            }
        }
    }
    Ok(settled)
}

/// Classifies the failure of a write that was rolled back. If other sessions have written
/// meanwhile, or are still refreshing, the duplicate may be temporary, and the write must be
/// retried.
pub(crate) async fn check_duplicate(
    connection: &mut Connection,
    table: &Table,
    settled: bool,
    failure: Failure,
) -> Failure {
    if failure.sql_code() != Some(server_error::DUPLICATE_ENTRY) {
        return failure;
    }
    match settled && !is_pending(connection, table).await.unwrap_or(false) {
        true => failure,
        false => Failure::Sql { code: server_error::RECORD_CHANGED, message: failure.to_string() },
    }
}

/// Returns whether rows of other sessions are pending.
async fn is_pending(connection: &mut Connection, table: &Table) -> Result<bool> {
    for (_, keys) in claimed(table) {
        if is_any_pending(connection, table, keys).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether any notes are visible, including those that a transaction is about to delete.
async fn is_any_pending(connection: &mut Connection, table: &Table, keys: &SideTable) -> Result<bool> {
    match finds(connection, &format!("SELECT seq FROM {} LIMIT 1", keys.pending(&table.schema))).await {
        // The tables are being created.
        Err(failure) if failure.is_missing_table() => Ok(false),
        outcome => outcome,
    }
}

async fn finds(connection: &mut Connection, sql: &str) -> Result<bool> {
    connection.queue_execute(&sql.into(), &[]);
    let mut any = false;
    while let Event::Row(_) = connection.next().await? {
        any = true;
    }
    Ok(any)
}

/// Notes the documents with unclaimed keys, after all refreshes have ended. Returns whether there
/// is anything to refresh.
pub(crate) async fn note_unclaimed(connection: &mut Connection, table: &Table, keys: &SideTable) -> Result<bool> {
    let (own, pending, claims) = (keys.keys(&table.schema), keys.pending(&table.schema), keys.claims(&table.schema));
    if finds(connection, &format!("SELECT seq FROM {pending} LIMIT 1 LOCK IN SHARE MODE")).await? {
        return Ok(true);
    }
    connection.queue_query(&format!(
        "INSERT IGNORE INTO {pending} SELECT entered.seq FROM \
         (SELECT seq, COUNT(*) keys_count FROM {own} WHERE key_bytes >= x'{KEY:02x}' GROUP BY seq) entered \
         LEFT JOIN (SELECT seq, COUNT(*) keys_count FROM {claims} GROUP BY seq) claimed ON claimed.seq = entered.seq \
         WHERE COALESCE(claimed.keys_count, 0) < entered.keys_count"
    ));
    Ok(connection.finish().await?.affected_rows > 0)
}

/// Claims the keys of the rows that the transaction has written; fails with 1062 if another
/// document has one of them.
pub(crate) async fn claim(connection: &mut Connection, table: &Table) -> Result<()> {
    for (index, keys) in claimed(table) {
        loop {
            match refresh_within(connection, table, index, keys, Duplicates::Refused).await {
                Ok((count, _)) if count < BATCH_ROWS => break,
                Ok(_) => {}
                // The tables are being created.
                Err(failure) if failure.is_missing_table() => break,
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok(())
}

fn claimed(table: &Table) -> impl Iterator<Item = (&Index, &SideTable)> {
    table.indexes.iter().filter_map(|index| Some((index, index.claims()?)))
}
