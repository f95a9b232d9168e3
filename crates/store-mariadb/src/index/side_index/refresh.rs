//! Bringing the keys of pending rows up to date.
//!
//! One transaction takes some rows that are pending and that nobody else has locked, reads their documents, replaces their keys and
//! takes back their notes. A row's note is locked from the moment on that somebody notes it until the document can be seen, so that a document
//! read here is the one the note is about, or a later one; who writes it meanwhile waits for the note, and it is there again when this is done.

use crate::catalog::own_schema;
use crate::catalog::table::Table;
use crate::encoding;
use crate::index::Index;
use crate::index::side_index::claims_table;
use crate::index::side_index::side_table::{ARRAYS, Duplicates, SideTable, UNKNOWN, kept};
use crate::plan::MariaDbPlan;
use crate::plan::access::Rows;
use crate::plan::parameters::{in_list, padded};
use crate::store::MariaDbStore;
use crate::write::transaction;
use document::Doc;
use index_keys::{IndexShape, keys};
use mariadb_client::{Connection, Event, Result};
use mariadb_wire::Param;
use std::sync::Arc;
use std::time::Duration;
use store::Namespace;

/// Rows of one transaction.
pub(crate) const DRAINED_AT_ONCE: usize = 256;

/// Rows that a read has drained at the most, before it goes on: it looks at the others besides.
const DRAINED_BY_READ_MAX: usize = 2_048;

/// How long after a write its rows are drained: others may follow.
const DRAIN_AFTER: Duration = Duration::from_millis(20);

/// Keys of one statement.
const KEYS_AT_ONCE: usize = 512;

/// A row of the table of keys.
type KeyRow = (Vec<u8>, u64);

/// Has the rows that are pending in the indexes of a plan drained, if they are many: they are read besides what is looked for. Of very many, as
/// while an index is being built, some are left to be drained beside requests.
pub(crate) async fn bring_up(store: &MariaDbStore, plan: &MariaDbPlan) -> Result<()> {
    let Some(table) = &plan.table else { return Ok(()) };
    for side in plan.all_rows().filter_map(Rows::side) {
        // What cannot be asked here fails where the rows are read, or is right all the same.
        if !matches!(store.shared_connection.lookup(&side.table.probe(&table.schema), &[]).await, Ok(Some(_))) {
            continue;
        }
        let of_keys = |index: &&Index| index.side_table().is_some_and(|keys| keys.name() == side.table.name());
        let Some(index) = table.indexes.iter().find(of_keys) else { continue };
        let mut lease = store.pool.lease_for(&plan.namespace).await?;
        match drain_some(&mut lease, table, index, DRAINED_BY_READ_MAX).await {
            Ok(Drained { arrays, all }) => {
                if arrays {
                    store.catalog.invalidate_all();
                }
                if !all {
                    bring_up_later(store, &plan.namespace);
                }
            }
            Err(failure) => tracing::debug!("keys of {} are behind: {failure}", table.quoted),
        }
    }
    Ok(())
}

/// Has what has been written to a collection drained in the background.
pub(crate) fn bring_up_later(store: &MariaDbStore, namespace: &Namespace) {
    let Some(table) = store.catalog.cached(namespace) else { return };
    for (at, index) in table.indexes.iter().enumerate().filter(|(_, index)| index.serves_by_side_table()) {
        let Some(name) = index.side_table().map(SideTable::name) else { continue };
        if !store.refreshing.borrow_mut().insert(name.clone()) {
            continue;
        }
        let (pool, table, draining) = (store.pool.clone(), table.clone(), store.refreshing.clone());
        let namespace = namespace.clone();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(DRAIN_AFTER).await;
            let Some(index) = table.indexes.get(at) else { return };
            let mut drained = Ok(Drained { arrays: false, all: true });
            if let Ok(mut lease) = pool.lease_for(&namespace).await {
                drained = drain_some(&mut lease, &table, index, usize::MAX).await;
                draining.borrow_mut().remove(&name);
                // What was written at the last moment, by somebody who saw that this was going on.
                if drained.is_ok() {
                    drained = drain_some(&mut lease, &table, index, usize::MAX).await;
                }
            }
            draining.borrow_mut().remove(&name);
            if let Err(failure) = drained {
                tracing::debug!("keys of {} are behind: {failure}", table.quoted);
            }
        });
    }
}

/// What came of draining.
struct Drained {
    /// Arrays have turned up where there were none before.
    arrays: bool,
    /// No rows are left but what others are at.
    all: bool,
}

/// Drains so many rows and a few more at the most.
async fn drain_some(connection: &mut Connection, table: &Table, index: &Index, at_most: usize) -> Result<Drained> {
    let Some(mut keys) = index.side_table().cloned() else { return Ok(Drained { arrays: false, all: true }) };
    let (before, mut count) = (keys.arrays, 0);
    let all = loop {
        let drained = drain(connection, table, index, &mut keys, Duplicates::Kept).await?;
        count += drained;
        if drained < DRAINED_AT_ONCE || count >= at_most {
            break drained < DRAINED_AT_ONCE;
        }
        tokio::task::yield_now().await;
    };
    Ok(Drained { arrays: keys.arrays != before, all })
}

/// Drains some rows; gives how many. Fewer than [`DRAINED_AT_ONCE`]: none is left but what others are at.
pub(crate) async fn drain(
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
    // What is read behind a lock is to be what is there then, and no gaps are to be locked.
    connection.queue_query("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    // The table is opened before notes are locked. Behind them it would wait for a change of its
    // definition, which waits for writers, which wait for the notes: MariaDB sees no deadlock
    // there.
    connection.queue_query(&format!("DO (SELECT 1 FROM {} LIMIT 0)", table.quoted));
    let (isolated, opened) = (connection.finish().await, connection.finish().await);
    isolated?;
    let drained = match opened {
        Ok(_) => drain_within(connection, table, index, keys, duplicates).await,
        Err(failure) => Err(failure),
    };
    match drained {
        Ok((count, arrays)) => {
            transaction::commit(connection).await?;
            if arrays & !keys.arrays != 0 {
                keys.arrays |= arrays;
                let (before, after) = (keys.remembered_state(), keys.remembered());
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

/// Enters the keys of some rows that are pending, within a transaction. Gives how many rows there were, and the parts of the index's paths in
/// which they have arrays.
pub(crate) async fn drain_within(
    connection: &mut Connection,
    table: &Table,
    index: &Index,
    keys: &SideTable,
    duplicates: Duplicates,
) -> Result<(usize, u64)> {
    let Some(shape) = index.side_index().map(|form| &form.shape) else { return Ok((0, 0)) };
    let (own, pending) = (keys.keys(&table.schema), keys.pending(&table.schema));
    connection.queue_execute(
        &format!("SELECT seq FROM {pending} LIMIT {DRAINED_AT_ONCE} FOR UPDATE SKIP LOCKED").into(),
        &[],
    );
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

/// Adds a document's rows; gives the parts of the index's paths in which it has arrays.
fn add_keys(document: Option<Doc<'_>>, shape: &IndexShape, seq: u64, found: &mut Vec<KeyRow>) -> u64 {
    let mut arrays = 0;
    // What MongoDB could not index may have come by SQL.
    let keys = document.and_then(|document| keys::index_keys_with_features(document, shape, &mut arrays).ok());
    let Some(keys) = keys else {
        found.push((UNKNOWN.to_vec(), seq));
        return 0;
    };
    arrays &= if shape.kind.is_ordered() { keys::PARTS } else { 0 };
    if arrays != 0 {
        found.push(([&[ARRAYS][..], &arrays.to_be_bytes()].concat(), seq));
    }
    found.extend(keys.iter().map(|key| (kept(key), seq)));
    arrays
}
