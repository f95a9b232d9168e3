//! Opens the log at the start of the store, creates it, or drops that of an earlier start.

use super::{IMAGES_SQL, IMAGES_TABLE, Oplog, OplogOptions, namespace, position_of, seq_of};
use crate::catalog::{Catalog, Collection};
use crate::failure::Attempt;
use document::{Collation, Doc, DocBuf, doc};
use error::{Code, Error};
use index_keys::keys;
use rusqlite::{Connection, OptionalExtension};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};
use store::catalog::random_uuid;
use store::change_feed::RecentEntries;
use store::{FeedPosition, LoggedChange, Operation};
use tokio::sync::watch;

/// The message of a log's first entry, if the log began with the store.
const INITIAL: &str = "initiating set";

/// The last positions of earlier logs.
const LAST_SQL: &str = "CREATE TABLE IF NOT EXISTS oplog_last(seq INTEGER)";

/// Opens the log. `options`: its limits; `None` drops it.
pub fn start(connection: &Connection, catalog: &mut Catalog, options: Option<&OplogOptions>) -> Attempt<Option<Oplog>> {
    let found = catalog.get(&namespace()).cloned();
    let is_log = match &found {
        Some(collection) => !has_id_index(connection, collection)?,
        None => false,
    };
    let Some(options) = options else {
        if let Some(collection) = found.filter(|_| is_log) {
            drop_log(connection, &collection)?;
            catalog.remove(&namespace());
        }
        return Ok(None);
    };
    let collection = match found {
        Some(collection) if is_log => collection,
        Some(_) => {
            let message = "there is a collection local.oplog.rs that is not a log of changes: drop or rename it";
            return Err(Error::new(Code::NAMESPACE_EXISTS, message).into());
        }
        None => {
            let collection = Arc::new(create(connection, options, catalog.collections().next().is_none())?);
            catalog.put(collection.clone());
            collection
        }
    };
    connection.execute_batch(IMAGES_SQL)?;
    let collection = with_options(connection, collection, options)?;
    catalog.put(collection.clone());
    let latest = last_position(connection, &collection)?;
    let mut id_key = Vec::new();
    keys::id_key(Doc::EMPTY, &Collation::SIMPLE, &mut id_key);
    Ok(Some(Oplog {
        options: *options,
        initial: initial_entry(connection, &collection)?,
        collection,
        id_key,
        latest: watch::Sender::new(latest),
        recent: RecentEntries::since(latest).into(),
        floor: AtomicI64::new(0),
    }))
}

/// The log has no index on `_id`, which all other collections have.
fn has_id_index(connection: &Connection, collection: &Collection) -> Attempt<bool> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?1";
    let name = format!("{}_id", collection.sql.table);
    Ok(connection.query_row(sql, [name], |row| row.get::<_, i64>(0))? > 0)
}

fn drop_log(connection: &Connection, collection: &Collection) -> Attempt<()> {
    let transaction = connection.unchecked_transaction()?;
    for sql in ["DELETE FROM collections WHERE id = ?1", "DELETE FROM counters WHERE collection = ?1"] {
        transaction.execute(sql, [collection.id])?;
    }
    // A later log must not use the same positions.
    transaction.execute_batch(LAST_SQL)?;
    transaction.execute(&format!("INSERT INTO oplog_last SELECT max(seq) FROM {}", collection.sql.table), [])?;
    // The writer empties the table between other work.
    transaction.execute("INSERT OR REPLACE INTO dropped(name) VALUES(?1)", [&collection.sql.table])?;
    transaction.execute_batch(&format!("DROP TABLE IF EXISTS {IMAGES_TABLE}"))?;
    Ok(transaction.commit()?)
}

/// Creates the log with a first entry, so that there is a position from the start.
fn create(connection: &Connection, options: &OplogOptions, is_new_store: bool) -> Attempt<Collection> {
    let transaction = connection.unchecked_transaction()?;
    let (name, uuid, definition) = (namespace(), random_uuid(), definition(options));
    transaction.execute(
        "INSERT INTO collections(database, name, uuid, options) VALUES(?1, ?2, ?3, ?4)",
        (&*name.database, &*name.collection, &uuid, definition.as_bytes()),
    )?;
    let collection = Collection::new(transaction.last_insert_rowid(), name, uuid, definition)?;
    let table = &collection.sql.table;
    transaction.execute_batch(&format!(
        "CREATE TABLE {table}(seq INTEGER PRIMARY KEY, id BLOB NOT NULL, doc BLOB NOT NULL)"
    ))?;
    let wall_ms = now_ms();
    transaction.execute_batch(LAST_SQL)?;
    let last: Option<i64> = transaction.query_row("SELECT max(seq) FROM oplog_last", [], |row| row.get(0))?;
    let position = last.map_or(FeedPosition::default(), position_of).next((wall_ms / 1000) as u32);
    let note = doc! { "msg": if is_new_store { INITIAL } else { "begin of the log" } };
    let operation = Operation::Note { note: note.as_doc() };
    let first = LoggedChange { namespace: namespace(), collection_uuid: None, operation, wall_ms, transaction: None };
    let first = first.encode(position);
    let mut id_key = Vec::new();
    keys::id_key(Doc::EMPTY, &Collation::SIMPLE, &mut id_key);
    transaction.execute(&collection.sql.insert, (seq_of(position), &id_key, first.as_bytes()))?;
    let bytes = first.as_bytes().len() as i64;
    let sql = "INSERT INTO counters(collection, documents, data_bytes) VALUES(?1, 1, ?2)";
    transaction.execute(sql, (collection.id, bytes))?;
    transaction.commit()?;
    collection.counters.documents.store(1, Ordering::Relaxed);
    collection.counters.data_bytes.store(bytes, Ordering::Relaxed);
    Ok(collection)
}

fn definition(options: &OplogOptions) -> DocBuf {
    doc! { "capped": true, "size": options.bytes_max as i64, "autoIndexId": false }
}

/// Returns the collection with its limit of this start.
fn with_options(
    connection: &Connection,
    collection: Arc<Collection>,
    options: &OplogOptions,
) -> Attempt<Arc<Collection>> {
    let definition = definition(options);
    if collection.options == definition {
        return Ok(collection);
    }
    let sql = "UPDATE collections SET options = ?2 WHERE id = ?1";
    connection.execute(sql, (collection.id, definition.as_bytes()))?;
    Ok(Arc::new(Collection::clone(&collection).with_options(definition)?))
}

fn last_position(connection: &Connection, collection: &Collection) -> Attempt<FeedPosition> {
    let sql = format!("SELECT max(seq) FROM {}", collection.sql.table);
    let last: Option<i64> = connection.query_row(&sql, [], |row| row.get(0))?;
    Ok(last.map_or(FeedPosition::default(), position_of))
}

/// Returns the number of the oldest entry, if it says that the log began with the store.
fn initial_entry(connection: &Connection, collection: &Collection) -> Attempt<Option<i64>> {
    let oldest: Option<(i64, Vec<u8>)> =
        connection.query_row(&collection.sql.oldest, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(oldest.and_then(|(seq, entry)| {
        let change = LoggedChange::decode(Doc::from_bytes(&entry)?)?;
        let Operation::Note { note } = change.operation else { return None };
        (note.get("msg")?.as_str()? == INITIAL).then_some(seq)
    }))
}

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
