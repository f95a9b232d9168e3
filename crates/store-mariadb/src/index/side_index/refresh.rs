//! Refreshes the keys of pending rows.
//!
//! One transaction takes some pending rows that no other session has locked, reads their documents,
//! replaces their keys and deletes their notes. A row's note is locked from its insertion until the
//! document is visible. So a document read here is the one of the note, or a later one. A session
//! that writes it meanwhile waits for the note, which it inserts again afterwards.

use crate::catalog::own_schema;
use crate::catalog::table::Table;
use crate::encoding;
use crate::index::Index;
use crate::index::side_index::claims_table;
use crate::index::side_index::side_table::{ARRAYS, Duplicates, SideTable, UNKNOWN, stored_key};
use crate::plan::MariaDbPlan;
use crate::plan::access::RowSource;
use crate::plan::parameters::{in_list, padded};
use crate::store::MariaDbStore;
use crate::write::transaction;
use document::Doc;
use index_keys::{IndexShape, keys};
use mariadb_client::{Connection, Event, Result};
use mariadb_wire::Param;
use std::sync::Arc;
use std::time::Duration;
use store::{Namespace, read_preference};

/// Rows of one transaction.
pub(crate) const BATCH_ROWS: usize = 256;

/// The most rows that a read refreshes before it continues: it reads the other pending rows as
/// well.
const READ_ROWS_MAX: usize = 2_048;

/// How long after a write its rows are refreshed: further writes may follow.
const REFRESH_AFTER: Duration = Duration::from_millis(20);

/// Keys of one statement.
const KEYS_AT_ONCE: usize = 512;

/// A row of a side table.
type KeyRow = (Vec<u8>, u64);

/// Refreshes the pending rows of a plan's side indexes if there are many, since the plan reads them
/// as well. Of very many, as during an index build, some are left for the background. A read on a
/// replica refreshes nothing: the keys would arrive there too late.
pub(crate) async fn refresh_before_read(store: &MariaDbStore, plan: &MariaDbPlan) -> Result<()> {
    let Some(table) = plan.table.as_ref().filter(|_| !read_preference::is_elsewhere()) else { return Ok(()) };
    for side in plan.all_rows().filter_map(RowSource::side) {
        // If this query fails, reading the rows will fail too, or be correct nevertheless.
        if !matches!(store.shared_connection.lookup(&side.table.pending_probe(&table.schema), &[]).await, Ok(Some(_))) {
            continue;
        }
        let of_keys = |index: &&Index| index.side_table().is_some_and(|keys| keys.name() == side.table.name());
        let Some(index) = table.indexes.iter().find(of_keys) else { continue };
        let mut lease = store.pool.lease_for(&plan.namespace).await?;
        match refresh_some(&mut lease, table, index, READ_ROWS_MAX).await {
            Ok(Refreshed { arrays, all }) => {
                if arrays {
                    store.catalog.invalidate_all();
                }
                if !all {
                    refresh_in_background(store, &plan.namespace);
                }
            }
            Err(failure) => tracing::debug!("keys of {} are behind: {failure}", table.quoted),
        }
    }
    Ok(())
}

/// Refreshes the side indexes of a collection in the background, after a write.
pub(crate) fn refresh_in_background(store: &MariaDbStore, namespace: &Namespace) {
    let Some(table) = store.catalog.cached(namespace) else { return };
    for (at, index) in table.indexes.iter().enumerate().filter(|(_, index)| index.serves_by_side_table()) {
        let Some(name) = index.side_table().map(SideTable::name) else { continue };
        if !store.refreshing.borrow_mut().insert(name.clone()) {
            continue;
        }
        let (pool, table, draining) = (store.pool.clone(), table.clone(), store.refreshing.clone());
        let namespace = namespace.clone();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(REFRESH_AFTER).await;
            let Some(index) = table.indexes.get(at) else { return };
            let mut refreshed = Ok(Refreshed { arrays: false, all: true });
            if let Ok(mut lease) = pool.lease_for(&namespace).await {
                refreshed = refresh_some(&mut lease, &table, index, usize::MAX).await;
                draining.borrow_mut().remove(&name);
                // Rows written at the last moment by sessions that saw this refresh running.
                if refreshed.is_ok() {
                    refreshed = refresh_some(&mut lease, &table, index, usize::MAX).await;
                }
            }
            draining.borrow_mut().remove(&name);
            if let Err(failure) = refreshed {
                tracing::debug!("keys of {} are behind: {failure}", table.quoted);
            }
        });
    }
}

/// The result of refreshing.
struct Refreshed {
    /// Arrays were found in path components that had none before.
    arrays: bool,
    /// No rows are left except those locked by other sessions.
    all: bool,
}

/// Refreshes up to about this many rows.
async fn refresh_some(connection: &mut Connection, table: &Table, index: &Index, at_most: usize) -> Result<Refreshed> {
    let Some(mut keys) = index.side_table().cloned() else { return Ok(Refreshed { arrays: false, all: true }) };
    let (before, mut count) = (keys.arrays, 0);
    let all = loop {
        let refreshed = refresh_batch(connection, table, index, &mut keys, Duplicates::Tolerated).await?;
        count += refreshed;
        if refreshed < BATCH_ROWS || count >= at_most {
            break refreshed < BATCH_ROWS;
        }
        tokio::task::yield_now().await;
    };
    Ok(Refreshed { arrays: keys.arrays != before, all })
}

/// Refreshes a batch of rows; returns how many. If fewer than [`BATCH_ROWS`], none is left except
/// those locked by other sessions.
pub(crate) async fn refresh_batch(
    connection: &mut Connection,
    table: &Table,
    index: &Index,
    keys: &mut SideTable,
    duplicates: Duplicates,
) -> Result<usize> {
    if index.side_index().is_none() {
        return Ok(0);
    }
    transaction::queue_begin(connection);
    connection.finish().await?;
    // Reads after taking locks must see the current rows, and lock no gaps.
    connection.queue_query("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    // The table is opened before notes are locked. Otherwise it could wait for a change of its
    // definition, which waits for writers, which wait for the notes: MariaDB does not detect this
    // deadlock.
    connection.queue_query(&format!("DO (SELECT 1 FROM {} LIMIT 0)", table.quoted));
    let (isolated, opened) = (connection.finish().await, connection.finish().await);
    isolated?;
    let refreshed = match opened {
        Ok(_) => refresh_within(connection, table, index, keys, duplicates).await,
        Err(failure) => Err(failure),
    };
    match refreshed {
        Ok((count, arrays)) => {
            transaction::commit(connection).await?;
            if arrays & !keys.arrays != 0 {
                keys.arrays |= arrays;
                let (before, after) = (keys.record_prefix(), keys.record());
                own_schema::update_index_table(connection, table.record_key(index), &before, &after).await?;
            }
            Ok(count)
        }
        Err(failure) => {
            if !failure.is_lost() {
                transaction::roll_back(connection).await?;
            }
            Err(failure)
        }
    }
}

/// Refreshes a batch within a transaction. Returns the number of rows, and the path components in
/// which they have arrays.
pub(crate) async fn refresh_within(
    connection: &mut Connection,
    table: &Table,
    index: &Index,
    keys: &SideTable,
    duplicates: Duplicates,
) -> Result<(usize, u64)> {
    let Some(shape) = index.side_index().map(|form| &form.shape) else { return Ok((0, 0)) };
    let (own, pending) = (keys.keys(&table.schema), keys.pending(&table.schema));
    connection
        .queue_execute(&format!("SELECT seq FROM {pending} LIMIT {BATCH_ROWS} FOR UPDATE SKIP LOCKED").into(), &[]);
    let mut rows = Vec::new();
    while let Event::Row(range) = connection.next().await? {
        rows.push(connection.row(range)?.next_u64()?);
    }
    if rows.is_empty() {
        return Ok((0, 0));
    }
    let (among, params) = in_list(&rows);
    connection.queue_execute(&format!("SELECT seq, doc FROM {} WHERE seq {among}", table.quoted).into(), &params);
    let (mut found, mut claimed, mut bson, mut arrays) = (Vec::new(), Vec::new(), Vec::new(), 0);
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        let seq = row.next_u64()?;
        bson.clear();
        let document = match row.next_bytes()? {
            Some(json) if encoding::decode(json, &mut bson).is_ok() => Doc::from_bytes(&bson),
            _ => None,
        };
        arrays |= add_keys(document, shape, seq, &mut found);
        if index.spec.unique {
            claims_table::add(document, shape, seq, &mut claimed);
        }
    }
    connection.queue_execute(&format!("DELETE FROM {own} WHERE seq {among}").into(), &params);
    connection.finish().await?;
    for some in found.chunks(KEYS_AT_ONCE) {
        insert(connection, &own, some).await?;
    }
    if index.spec.unique {
        claims_table::replace(connection, &keys.claims(&table.schema), &among, &params, &claimed, duplicates).await?;
    }
    connection.queue_execute(&format!("DELETE FROM {pending} WHERE seq {among}").into(), &params);
    connection.finish().await?;
    Ok((rows.len(), arrays))
}

async fn insert(connection: &mut Connection, own: &str, rows: &[KeyRow]) -> Result<()> {
    let Some(last) = rows.last() else { return Ok(()) };
    let length = padded(rows.len());
    let all = rows.iter().chain(std::iter::repeat(last)).take(length);
    let params: Vec<Param<'_>> = all.flat_map(|(key, seq)| [Param::Bytes(key), Param::Unsigned(*seq)]).collect();
    let sql: Arc<str> =
        format!("INSERT IGNORE INTO {own} (key_bytes, seq) VALUES (?, ?){}", ", (?, ?)".repeat(length - 1)).into();
    connection.queue_execute(&sql, &params);
    connection.finish().await.map(drop)
}

/// Adds a document's rows; returns the path components in which it has arrays.
fn add_keys(document: Option<Doc<'_>>, shape: &IndexShape, seq: u64, found: &mut Vec<KeyRow>) -> u64 {
    let mut arrays = 0;
    // A document that cannot be indexed may have been written by SQL.
    let keys = document.and_then(|document| keys::index_keys_with_features(document, shape, &mut arrays).ok());
    let Some(keys) = keys else {
        found.push((UNKNOWN.to_vec(), seq));
        return 0;
    };
    arrays &= if shape.kind.is_ordered() { keys::PARTS } else { 0 };
    if arrays != 0 {
        found.push(([&[ARRAYS][..], &arrays.to_be_bytes()].concat(), seq));
    }
    found.extend(keys.iter().map(|key| (stored_key(key), seq)));
    arrays
}
