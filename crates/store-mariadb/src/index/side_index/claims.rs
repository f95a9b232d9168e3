//! Unique indexes whose keys SQL cannot compute: those with a collation, with a filter that SQL does not decide, and those whose columns a
//! table has no room for.
//!
//! Each key of a document is claimed: its hash is inserted into a table under a unique key, in the transaction that writes the document.
//! So of two gateways that write one key at the same time the second waits for the first, and is refused. What SQL clients write is noted
//! by triggers like all changes, and claims what is still free when it is drained. A document by SQL that has a taken key stays: MariaDB
//! cannot refuse what it cannot compute.
//!
//! A gateway that has not heard of the index would write without a claim. Triggers keep it from that: a gateway's session says which indexes
//! it claims keys of, and a session that does not name this one gets the error of a missing table, whereupon gateways look at the table anew.

use crate::catalog::table::Table;
use crate::index::Index;
use crate::index::side_index::refresh::{DRAINED_AT_ONCE, drain, drain_within};
use crate::index::side_index::side_table::{Duplicates, KEY, SideTable};
use mariadb_client::{Connection, Event, Failure, Result, server_error};

/// Has what others have written drained, in transactions of its own, so that what is left is the
/// caller's. False: others are still draining some of it, and keys may be claimed that are free.
pub(crate) async fn refresh_pending(connection: &mut Connection, table: &Table) -> Result<bool> {
    let mut settled = true;
    for (index, keys) in claimed(table) {
        let mut keys = keys.clone();
        while is_any_pending(connection, table, &keys).await? {
            if drain(connection, table, index, &mut keys, Duplicates::Kept).await? < DRAINED_AT_ONCE {
                settled &= !is_any_pending(connection, table, &keys).await?;
                break;
            }
        }
    }
    Ok(settled)
}

/// Returns what became of a write that was refused and rolled back: where others have written
/// meanwhile, or their keys are still being drained, the key may be free, or taken by a document
/// that is not the caller's. The write is then to be tried again.
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

/// Whether others have written what is not drained.
async fn is_pending(connection: &mut Connection, table: &Table) -> Result<bool> {
    for (_, keys) in claimed(table) {
        if is_any_pending(connection, table, keys).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether notes can be seen: those that a transaction is about to take back are among them.
async fn is_any_pending(connection: &mut Connection, table: &Table, keys: &SideTable) -> Result<bool> {
    match finds(connection, &format!("SELECT seq FROM {} LIMIT 1", keys.pending(&table.schema))).await {
        // The tables are being made.
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

/// Notes the documents of which a key is not claimed, when all who drain are through. Returns
/// whether there is anything to drain.
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

/// Claims the keys of what the transaction has written; fails with 1062 where another document has one of them.
pub(crate) async fn claim(connection: &mut Connection, table: &Table) -> Result<()> {
    for (index, keys) in claimed(table) {
        loop {
            match drain_within(connection, table, index, keys, Duplicates::Refused).await {
                Ok((count, _)) if count < DRAINED_AT_ONCE => break,
                Ok(_) => {}
                // The tables are being made.
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
