//! Side indexes: indexes whose keys SQL cannot compute (text, geospatial, wildcard, with a
//! collation), and those whose columns do not fit into the table.
//!
//! Gateways compute the keys ([`index_keys`]) and keep them in a side table beside the
//! collection's, a row per key. Each writer of a document, a gateway or an SQL client, only leaves
//! a note: triggers insert the row key into a second table, of pending rows. A read by the index
//! finds the rows whose keys meet the conditions, and all pending rows, and re-checks the
//! documents. So an index that lags costs time and is never wrong. [`refresh`] updates the keys of
//! pending rows: after writes, and before a read that would find many of them.
//!
//! A document has a row per key, and one more if arrays in it make the bounds of single keys
//! inexact ([`side_table::ARRAYS`]), or if its keys are unknown.
//!
//! A unique side index has a third table, in which gateways claim keys in the transaction that
//! writes the document ([`claims`]).

pub(crate) mod claims;
pub(crate) mod claims_table;
pub(crate) mod refresh;
pub(crate) mod side_table;

use crate::accounts::documents_account;
use crate::catalog::own_schema;
use crate::catalog::row_key::RowKey;
use crate::catalog::table::Table;
use crate::index::Index;
use crate::index::side_index::side_table::{CLAIMS, Duplicates, KEY_BYTES_MAX, PENDING, SideTable};
use crate::store::MariaDbStore;
use mariadb_client::{Connection, Result, quote};
use refresh::{BATCH_ROWS, refresh_batch};
use std::time::Duration;
use store::{IndexKind, Progress};

/// The most consecutive conflicts of a build with other transactions, and the pause after each.
const CONTENTIONS_MAX: u32 = 100;
const CONTENTION_PAUSE: Duration = Duration::from_millis(5);

/// Returns whether an index may have a side table.
pub(crate) fn is_suitable(index: &Index, table: &Table) -> bool {
    let known = index.side_index().is_some_and(|form| form.shape.kind != IndexKind::Hashed);
    known && table.row_key == RowKey::Sequence && !table.is_sharded
}

/// Creates and fills the side tables of new indexes. If that fails for an index that is useful
/// without, because it refuses documents, it is created without a side table. Otherwise the failure
/// is returned.
pub(crate) async fn make(
    store: &MariaDbStore,
    connection: &mut Connection,
    table: &Table,
    indexes: &[Index],
    duplicates: Duplicates,
    progress: Option<&Progress>,
) -> Result<()> {
    let mut made = Vec::new();
    let outcome = make_each(connection, table, indexes, duplicates, progress, &mut made).await;
    if outcome.as_ref().is_err_and(|failure| !failure.is_lost()) {
        // Drop those that were created, with their triggers.
        for (index, keys) in &made {
            drop_tables(connection, &table.schema, keys).await?;
            remember(connection, table, index, None).await?;
        }
    }
    store.catalog.invalidate_all();
    outcome
}

async fn make_each<'i>(
    connection: &mut Connection,
    table: &Table,
    indexes: &'i [Index],
    duplicates: Duplicates,
    progress: Option<&Progress>,
    made: &mut Vec<(&'i Index, SideTable)>,
) -> Result<()> {
    for index in indexes.iter().filter(|index| is_suitable(index, table) && index.side_table().is_none()) {
        let mut keys = SideTable::new();
        remember(connection, table, index, Some(&keys)).await?;
        made.push((index, keys.clone()));
        match create(connection, table, index, &keys).await {
            Ok(()) => {}
            Err(failure) if failure.is_lost() => return Err(failure),
            Err(failure) if index.needs_side_table() => return Err(index.without_side_table(failure)),
            Err(failure) => {
                made.pop();
                drop_tables(connection, &table.schema, &keys).await?;
                remember(connection, table, index, None).await?;
                tracing::warn!("index '{}' of {} does not serve queries: {failure}", index.spec.name, table.quoted);
                continue;
            }
        }
        let is_claimed = index.is_claimed();
        (keys.ready, keys.filled) = (true, !is_claimed);
        remember(connection, table, index, Some(&keys)).await?;
        let (mut done, mut refused) = (0, 0);
        loop {
            let refreshed = match refresh_batch(connection, table, index, &mut keys, duplicates).await {
                // Reads refresh as well. Rows of a transaction that was rolled back are still
                // pending.
                Err(failure) if failure.is_contention() && refused < CONTENTIONS_MAX => {
                    refused += 1;
                    tokio::time::sleep(CONTENTION_PAUSE).await;
                    continue;
                }
                refreshed => refreshed?,
            };
            refused = 0;
            done += refreshed;
            if let Some(progress) = progress {
                progress.set(done as u64);
                progress.check()?;
            }
            if refreshed < BATCH_ROWS
                && (!is_claimed || duplicates == Duplicates::Tolerated || are_claimed(connection, table, &keys).await?)
            {
                break;
            }
        }
        if is_claimed {
            keys.filled = true;
            remember(connection, table, index, Some(&keys)).await?;
        }
    }
    Ok(())
}

/// Returns whether every key of every document is claimed. Other sessions refresh during a build,
/// and skip keys that are taken: those documents are noted again, so that the build fails or claims
/// their keys.
async fn are_claimed(connection: &mut Connection, table: &Table, keys: &SideTable) -> Result<bool> {
    match claims::note_unclaimed(connection, table, keys).await {
        Err(failure) if failure.is_contention() => {
            tokio::time::sleep(CONTENTION_PAUSE).await;
            Ok(false)
        }
        outcome => outcome.map(|any| !any),
    }
}

/// Creates the tables and the triggers, and notes all rows as pending, in this order, so that no
/// write is missed.
async fn create(connection: &mut Connection, table: &Table, index: &Index, keys: &SideTable) -> Result<()> {
    let (main, own, pending) = (&table.quoted, keys.keys(&table.schema), keys.pending(&table.schema));
    let trigger = |event: &str, row: &str| {
        let note = format!("INSERT IGNORE INTO {pending} VALUES ({row}.seq)");
        let body = match index.spec.unique && event != "DELETE" {
            true => format!("BEGIN {} {note}; END", claims_table::guard(keys)),
            false => note,
        };
        let name = keys.trigger(&table.schema, &event.to_ascii_lowercase());
        format!("CREATE TRIGGER {name} AFTER {event} ON {main} FOR EACH ROW {body}")
    };
    if index.spec.unique {
        connection.queue_query(&claims_table::definition(table, index, keys));
        connection.finish().await?;
    }
    for sql in [
        format!(
            "CREATE TABLE {own} (key_bytes VARBINARY({}) NOT NULL, seq BIGINT UNSIGNED NOT NULL, \
             PRIMARY KEY (key_bytes, seq), KEY (seq)) ENGINE = InnoDB",
            KEY_BYTES_MAX + 1
        ),
        format!("CREATE TABLE {pending} (seq BIGINT UNSIGNED NOT NULL PRIMARY KEY) ENGINE = InnoDB"),
        trigger("INSERT", "NEW"),
        trigger("UPDATE", "NEW"),
        trigger("DELETE", "OLD"),
    ] {
        connection.queue_query(&sql);
        connection.finish().await?;
    }
    for name in [keys.name(), format!("{PENDING}{}", keys.hash), format!("{CLAIMS}{}", keys.hash)] {
        documents_account::grant_on_table_beside(connection, &table.schema, &name).await?;
    }
    for refused in 0.. {
        // Writers need not wait for it: the triggers note their rows.
        connection.queue_query("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
        connection.finish().await?;
        connection.queue_query(&format!("INSERT IGNORE INTO {pending} SELECT seq FROM {main}"));
        match connection.finish().await {
            Err(failure) if failure.is_contention() && refused < CONTENTIONS_MAX => {
                tokio::time::sleep(CONTENTION_PAUSE).await;
            }
            outcome => return outcome.map(drop),
        }
    }
    Ok(())
}

async fn remember(connection: &mut Connection, table: &Table, index: &Index, keys: Option<&SideTable>) -> Result<()> {
    own_schema::set_index_table(connection, table.record_key(index), keys.map(SideTable::record)).await
}

async fn drop_tables(connection: &mut Connection, schema: &str, keys: &SideTable) -> Result<()> {
    for event in ["insert", "update", "delete"] {
        connection.queue_query(&format!("DROP TRIGGER IF EXISTS {}", keys.trigger(schema, event)));
        connection.finish().await?;
    }
    for name in [keys.name(), format!("{PENDING}{}", keys.hash), format!("{CLAIMS}{}", keys.hash)] {
        connection.queue_query(&format!("DROP TABLE IF EXISTS {}.{}", quote(schema), quote(&name)));
        connection.finish().await?;
    }
    Ok(())
}

/// Drops the side tables of these indexes.
pub(crate) async fn drop_all(connection: &mut Connection, table: &Table, indexes: &[Index]) -> Result<()> {
    for index in indexes {
        let Some(keys) = index.side_table() else { continue };
        // If the gateway is killed in between, other gateways still know the table to claim in and
        // to drop.
        let begun = SideTable { ready: false, filled: false, ..keys.clone() };
        remember(connection, table, index, Some(&begun)).await?;
        drop_tables(connection, &table.schema, keys).await?;
        remember(connection, table, index, None).await?;
    }
    Ok(())
}
