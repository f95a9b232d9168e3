//! Reading the catalog's tables, with tolerance for damage.

use super::{Catalog, Collection, Index, index_spec};
use crate::catalog::multikey::Multikey;
use crate::failure::{Attempt, Failure, engine_error, is_damage};
use ahash::AHashMap;
use document::DocBuf;
use error::Result;
use rusqlite::{Connection, OptionalExtension};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::Namespace;

/// Damage to the catalog.
#[derive(Debug, Default)]
pub struct Damage {
    /// One sentence for each entry that cannot be read.
    pub findings: Vec<String>,
    /// Some indexes are unknown: writes would not maintain them.
    pub indexes_unknown: bool,
    /// Some collections are unknown.
    pub names_unknown: bool,
}

impl Catalog {
    /// Reads the catalog's tables; damaged ones row by row.
    pub fn load(connection: &Connection) -> Result<(Catalog, Damage)> {
        let (mut catalog, mut damage) = (Catalog::default(), Damage::default());
        let mut by_id = AHashMap::new();
        for collection in load_collections(connection, &mut catalog.unreadable, &mut damage)? {
            by_id.insert(collection.id, collection);
        }
        catalog.names_unknown = damage.names_unknown;
        for (id, collection, spec, multikey) in load_indexes(connection, &mut damage)? {
            if let Some(owner) = by_id.get_mut(&collection) {
                let index = Index::new(id, owner.id, index_spec(spec), multikey)?;
                owner.indexes.push(Arc::new(index));
            }
        }
        for namespace in &catalog.unreadable {
            damage.findings.push(format!("the entry of {namespace} in the catalog is damaged"));
        }
        for collection in by_id.into_values() {
            catalog.put(Arc::new(collection));
        }
        Ok((catalog, damage))
    }
}

/// Returns the value, or `None` if damage prevents reading it.
fn unless_damaged<T>(read: rusqlite::Result<T>) -> Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(engine_error(error)),
    }
}

fn load_collections(
    connection: &Connection,
    unreadable: &mut Vec<Namespace>,
    damage: &mut Damage,
) -> Attempt<Vec<Collection>> {
    let mut collections = Vec::new();
    for (id, database, name) in names(connection, damage)? {
        let namespace = Namespace::new(&database, &name);
        let read = connection
            .prepare_cached("SELECT uuid, options FROM collections WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))));
        let Some((uuid, options)) = unless_damaged(read)? else {
            unreadable.push(namespace);
            continue;
        };
        let collection = Collection::new(id, namespace, uuid, DocBuf::from_vec(options).unwrap_or_default())?;
        let (documents, data_bytes) = counters(connection, &collection, damage)?;
        collection.counters.documents.store(documents, Ordering::Relaxed);
        collection.counters.data_bytes.store(data_bytes, Ordering::Relaxed);
        collections.push(collection);
    }
    Ok(collections)
}

/// Returns ids and names of all collections: from the table, or else from the index on names, which
/// has pages of its own.
fn names(connection: &Connection, damage: &mut Damage) -> Result<Vec<(i64, String, String)>> {
    let read = |path: &str| {
        let mut statement = connection.prepare(&format!("SELECT id, database, name FROM collections {path}"))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    if let Some(names) = unless_damaged(read("NOT INDEXED"))? {
        return Ok(names);
    }
    if let Some(names) = unless_damaged(read("INDEXED BY sqlite_autoindex_collections_1"))? {
        return Ok(names);
    }
    damage.findings.push("the catalog's table of collections is damaged: not all of them are known".to_owned());
    (damage.indexes_unknown, damage.names_unknown) = (true, true);
    // Row by row, as far as possible.
    let mut found = Vec::new();
    let mut statement =
        connection.prepare("SELECT id, database, name FROM collections WHERE id = ?1").map_err(engine_error)?;
    for id in 1..=last_number(connection, "collections") {
        let row = statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional();
        found.extend(unless_damaged(row)?.flatten());
    }
    Ok(found)
}

/// Returns the greatest id that a row of a table can have.
fn last_number(connection: &Connection, table: &str) -> i64 {
    const UNKNOWN: i64 = 100_000;
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
    connection.query_row(sql, [table], |row| row.get(0)).unwrap_or(UNKNOWN).min(UNKNOWN)
}

/// Returns the number and the bytes of the documents, counted if the catalog's entry is damaged.
fn counters(connection: &Connection, collection: &Collection, damage: &mut Damage) -> Result<(i64, i64)> {
    let read = connection.prepare_cached("SELECT documents, data_bytes FROM counters WHERE collection = ?1").and_then(
        |mut statement| statement.query_row([collection.id], |row| Ok((row.get(0)?, row.get(1)?))).optional(),
    );
    if let Some(counters) = unless_damaged(read)? {
        return Ok(counters.unwrap_or((0, 0)));
    }
    damage.findings.push(format!("the number of documents of {} cannot be read", collection.namespace));
    let table = &collection.sql.table;
    let one = |sql: &str| unless_damaged(connection.query_row(sql, [], |row| row.get(0)));
    let documents: Option<i64> = one(&format!("SELECT count(*) FROM {table}"))?;
    let data_bytes = one(&format!("SELECT coalesce(sum(length(doc)), 0) FROM {table}"))?;
    collection.counters.uncounted.store(documents.is_none(), Ordering::Relaxed);
    Ok((documents.unwrap_or(0), data_bytes.unwrap_or(0)))
}

type IndexRow = (i64, i64, DocBuf, Multikey);

fn load_indexes(connection: &Connection, damage: &mut Damage) -> Attempt<Vec<IndexRow>> {
    let columns = "SELECT id, collection, spec, multikey FROM indexes";
    let one = |row: &rusqlite::Row<'_>| {
        let spec = DocBuf::from_vec(row.get(2)?).unwrap_or_default();
        Ok((row.get(0)?, row.get(1)?, spec, Multikey::from_stored(row.get(3)?)))
    };
    let all = || {
        let mut statement = connection.prepare(&format!("{columns} ORDER BY id"))?;
        statement.query_map([], one)?.collect::<rusqlite::Result<Vec<_>>>()
    };
    if let Some(rows) = unless_damaged(all())? {
        return Ok(rows);
    }
    damage.findings.push("the catalog's table of indexes is damaged: not all of them are known".to_owned());
    damage.indexes_unknown = true;
    let mut statement = connection.prepare(&format!("{columns} WHERE id = ?1")).map_err(Failure::from)?;
    let mut rows = Vec::new();
    for id in 1..=last_number(connection, "indexes") {
        rows.extend(unless_damaged(statement.query_row([id], one).optional())?.flatten());
    }
    Ok(rows)
}
