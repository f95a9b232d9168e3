//! Creating, dropping, renaming and listing collections and databases.

use crate::catalog::own_schema::{self, CollectionRecord};
use crate::catalog::table::Table;
use crate::catalog::table_columns::{ColumnInfo, table_shape};
use crate::catalog::{TableLookup, attempts, definition_lock, exclusive_change, names, not_a_collection};
use crate::index::side_index::side_table::{self, Duplicates};
use crate::index::{element_table, side_index};
use crate::sharding::layout::Layout;
use crate::sharding::{data_tables, layout};
use crate::store::MariaDbStore;
use document::{Doc, DocBuf};
use error::{Code, Error};
use mariadb_client::{Connection, Event, Failure, Result, quote, server_error};
use mariadb_wire::Param;
use std::collections::BTreeMap;
use store::{CollectionInfo, Namespace};

/// The number of attempts to drop a schema without tables. The pauses between them take 120 ms at
/// most.
const EMPTY_SCHEMA_DROPS_MAX: u32 = 5;

pub(crate) async fn create(store: &MariaDbStore, namespace: &Namespace, options: Doc<'_>) -> Result<()> {
    let create = async |connection: &mut Connection| {
        match store.catalog.read(connection, namespace).await? {
            TableLookup::Nothing if store.catalog.is_view(connection, namespace).await? => {
                return Err(store::views::not_a_collection(namespace).into());
            }
            TableLookup::Nothing => {}
            TableLookup::OtherTable => return Err(not_a_collection(namespace).into()),
            TableLookup::Collection(_) => return Err(exists(namespace)),
        }
        let created = store.catalog.create(connection, namespace, &options.to_owned()).await?;
        if created { Ok(()) } else { Err(exists(namespace)) }
    };
    exclusive_change::exclusively(store, &[namespace], create).await
}

fn exists(namespace: &Namespace) -> Failure {
    let message = format!("Collection {namespace} already exists.");
    Failure::Other(Error::new(Code::NAMESPACE_EXISTS, message))
}

/// Sets the options of a collection. Fails with 26 if there is no such collection.
pub(crate) async fn modify(store: &MariaDbStore, namespace: &Namespace, options: Doc<'_>) -> Result<()> {
    let modify = async |connection: &mut Connection| {
        let TableLookup::Collection(table) = store.catalog.read(connection, namespace).await? else {
            return Err(Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns not found {namespace}")).into());
        };
        let info = collection_info(connection, &table).await?;
        let (name, options) = (&namespace.collection, options.to_owned());
        own_schema::change_options(connection, &table.schema, &table.name, name, &info.uuid, &options).await
    };
    exclusive_change::exclusively(store, &[namespace], modify).await
}

/// Drops a collection; returns how many indexes it had.
pub(crate) async fn drop(store: &MariaDbStore, namespace: &Namespace) -> Result<Option<usize>> {
    // A collection whose name is invalid does not exist.
    if store.catalog.names(namespace).is_err() {
        return Ok(None);
    }
    let drop = async |connection: &mut Connection| match store.catalog.read(connection, namespace).await? {
        TableLookup::Collection(table) => drop_table(connection, &table).await,
        TableLookup::Nothing | TableLookup::OtherTable => Ok(None),
    };
    exclusive_change::exclusively(store, &[namespace], drop).await
}

/// Drops a collection's table and all tables of its indexes. The caller must hold the collection's
/// lock.
async fn drop_table(connection: &mut Connection, table: &Table) -> Result<Option<usize>> {
    let layout = sharded_layout(connection, table).await?;
    element_table::drop_all(connection, table, &table.indexes).await?;
    side_index::drop_all(connection, table, &table.indexes).await?;
    connection.queue_query(&format!("DROP TABLE {}", table.quoted));
    match connection.finish().await {
        Err(failure) if failure.is_missing_table() => return Ok(None),
        outcome => outcome?,
    };
    own_schema::delete_collection(connection, &table.schema, &table.name).await?;
    if let Some(layout) = layout {
        data_tables::drop_all(connection, &layout).await?;
    }
    Ok(Some(table.indexes.len() + 1))
}

/// Returns how a collection that is about to be dropped is sharded, if it is. Fails unless all its
/// data servers answer.
async fn sharded_layout(connection: &mut Connection, table: &Table) -> Result<Option<Layout>> {
    if !table.is_sharded {
        return Ok(None);
    }
    let layout = layout::of_sharded(connection, &table.schema, &table.name).await?;
    data_tables::reach_all(connection, &layout).await?;
    Ok(Some(layout))
}

pub(crate) async fn rename(store: &MariaDbStore, from: &Namespace, to: &Namespace, drop_target: bool) -> Result<()> {
    let rename = async |connection: &mut Connection| rename_exclusively(store, connection, from, to, drop_target).await;
    exclusive_change::exclusively(store, &[from, to], rename).await
}

async fn rename_exclusively(
    store: &MariaDbStore,
    connection: &mut Connection,
    from: &Namespace,
    to: &Namespace,
    drop_target: bool,
) -> Result<()> {
    let TableLookup::Collection(source) = store.catalog.read(connection, from).await? else {
        let message = format!("Source collection {from} does not exist");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message).into());
    };
    let (schema, name) = store.catalog.names(to)?;
    let replaced = match store.catalog.read(connection, to).await? {
        TableLookup::Nothing => None,
        TableLookup::OtherTable => return Err(not_a_collection(to).into()),
        TableLookup::Collection(replaced) if drop_target => Some(replaced),
        TableLookup::Collection(_) => return Err(Error::new(Code::NAMESPACE_EXISTS, "target namespace exists").into()),
    };
    let renaming = async |connection: &mut Connection| {
        store.catalog.create_schema(connection, schema).await?;
        move_table(connection, &source, (schema, &name), replaced.as_deref()).await?;
        let from = (&*source.schema, &*source.name);
        own_schema::rename_collection(connection, from, (schema, &name), &to.collection).await
    };
    let lock = [definition_lock::database_lock(schema)];
    let cluster = store.catalog.cluster_locks.as_ref();
    let renamed = definition_lock::locked(cluster, connection, &lock, renaming).await;
    if renamed.as_ref().is_err_and(Failure::is_lost) {
        return renamed;
    }
    let restored = restore_keys(store, connection, if renamed.is_ok() { to } else { from }).await;
    renamed.and(restored)
}

/// Recreates the tables that [`move_table`] has dropped: without side tables the indexes would
/// serve no query.
async fn restore_keys(store: &MariaDbStore, connection: &mut Connection, namespace: &Namespace) -> Result<()> {
    store.catalog.invalidate(namespace);
    let Some(table) = store.catalog.table(connection, namespace).await? else { return Ok(()) };
    element_table::restore_unique(connection, &table).await?;
    side_index::make(store, connection, &table, &table.indexes, Duplicates::Tolerated, None).await?;
    store.catalog.invalidate(namespace);
    store.catalog.invalidate_all();
    Ok(())
}

/// Renames a table, replacing one that has the new name.
async fn move_table(
    connection: &mut Connection,
    source: &Table,
    (schema, name): (&str, &str),
    replaced: Option<&Table>,
) -> Result<()> {
    // Triggers do not move with a table into another schema. The next array recreates them, except
    // those of unique indexes.
    if source.schema != schema {
        element_table::drop_all(connection, source, &source.indexes).await?;
    }
    // A gateway that still refreshes side tables, and does not know the new name, would read
    // documents of the collection that gets the old name next.
    side_index::drop_all(connection, source, &source.indexes).await?;
    let target = format!("{}.{}", quote(schema), quote(name));
    let Some(replaced) = replaced else {
        connection.queue_query(&format!("RENAME TABLE {} TO {target}", source.quoted));
        connection.finish().await?;
        return Ok(());
    };
    let layout = sharded_layout(connection, replaced).await?;
    // One statement moves the old target aside and the new one into its place, so that it is never
    // missing.
    let aside = format!("{}.{}", quote(schema), quote(&format!("~dropped~{:016x}", rand::random::<u64>())));
    connection.queue_query(&format!("RENAME TABLE {target} TO {aside}, {} TO {target}", source.quoted));
    connection.finish().await?;
    element_table::drop_all(connection, replaced, &replaced.indexes).await?;
    side_index::drop_all(connection, replaced, &replaced.indexes).await?;
    connection.queue_query(&format!("DROP TABLE {aside}"));
    connection.finish().await?;
    if let Some(layout) = layout {
        data_tables::drop_all(connection, &layout).await?;
    }
    own_schema::delete_collection(connection, schema, name).await
}

pub(crate) async fn list(store: &MariaDbStore, database: &str) -> Result<Vec<CollectionInfo>> {
    let Ok(schema) = names::schema(database, store.catalog.ignores_case()) else { return Ok(Vec::new()) };
    let mut lease = store.pool.lease_for_catalog().await?;
    let mut collections = Vec::new();
    let own = (database == names::OWN_DATABASE).then_some(names::OWN_SCHEMA);
    for schema in [schema].into_iter().chain(own) {
        let mut tables = document_tables(&mut lease, schema).await?;
        tables.retain(|table| names::namespace(schema, table).is_some());
        let records = own_schema::collections(&mut lease, schema, None).await?;
        collections.extend(tables.iter().map(|table| describe(schema, table, &records)));
    }
    collections.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(collections)
}

pub(crate) async fn one(store: &MariaDbStore, namespace: &Namespace) -> Result<Option<CollectionInfo>> {
    if store.catalog.names(namespace).is_err() {
        return Ok(None);
    }
    let mut lease = store.pool.lease_for(namespace).await?;
    store.catalog.invalidate(namespace);
    let TableLookup::Collection(table) = store.catalog.read(&mut lease, namespace).await? else { return Ok(None) };
    let info = collection_info(&mut lease, &table).await?;
    Ok(Some(CollectionInfo { name: namespace.collection.to_string(), ..info }))
}

pub(crate) async fn collection_info(connection: &mut Connection, table: &Table) -> Result<CollectionInfo> {
    let records = own_schema::collections(connection, &table.schema, Some(&table.name)).await?;
    Ok(describe(&table.schema, &table.name, &records))
}

/// Describes a table as a collection. One that SQL created gets a UUID derived from its name.
fn describe(schema: &str, table: &str, records: &[CollectionRecord]) -> CollectionInfo {
    if let Some(known) = records.iter().find(|known| known.table == table) {
        return CollectionInfo { name: known.collection.clone(), options: known.options.clone(), uuid: known.uuid };
    }
    CollectionInfo { name: table.to_owned(), options: DocBuf::new(), uuid: names::derived_uuid(schema, table) }
}

/// Returns the tables of a schema that hold documents.
pub(crate) async fn document_tables(connection: &mut Connection, schema: &str) -> Result<Vec<String>> {
    let sql = "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_KEY, EXTRA, GENERATION_EXPRESSION, IS_NULLABLE, \
               COLUMN_DEFAULT IS NOT NULL FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ?";
    connection.queue_execute(&sql.into(), &[Param::Text(schema.as_bytes())]);
    let mut tables: BTreeMap<String, Vec<ColumnInfo>> = BTreeMap::new();
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        let table = own_schema::text(row.next_bytes()?.unwrap_or_default())?;
        tables.entry(table).or_default().push(ColumnInfo::read(&mut row)?);
    }
    Ok(tables.into_iter().filter(|(_, columns)| table_shape(columns).is_some()).map(|(table, _)| table).collect())
}

/// Drops a database's collections, and its schema if that is empty then: other tables are kept.
pub(crate) async fn drop_database(store: &MariaDbStore, database: &str) -> Result<bool> {
    let schema = names::schema(database, store.catalog.ignores_case())?;
    let mut lease = store.pool.lease_for_catalog().await?;
    let mut any = false;
    for table in document_tables(&mut lease, schema).await? {
        let lock = [definition_lock::collection_lock(schema, &table)];
        any |= drop_with_retry(store, &mut lease, &lock, async |connection| {
            match store.catalog.by_table_name(connection, schema, &table).await? {
                Some(table) => Ok(drop_table(connection, &table).await?.is_some()),
                None => Ok(false),
            }
        })
        .await?;
    }
    let lock = [definition_lock::database_lock(schema)];
    drop_with_retry(store, &mut lease, &lock, async |connection| drop_schema(connection, schema).await).await?;
    // Other operations may have cached tables meanwhile.
    store.catalog.invalidate_database(database);
    store.catalog.invalidate_all();
    Ok(any)
}

/// Runs a part of dropping a database under its lock, and retries if it lost a race against SQL
/// clients.
async fn drop_with_retry<T>(
    store: &MariaDbStore,
    connection: &mut Connection,
    lock: &[String],
    mut part: impl AsyncFnMut(&mut Connection) -> Result<T>,
) -> Result<T> {
    let mut attempt = 0;
    loop {
        let cluster = store.catalog.cluster_locks.as_ref();
        match definition_lock::locked(cluster, connection, lock, async |connection| part(connection).await).await {
            Err(failure) if failure.is_lost_race() && attempt < attempts::ATTEMPTS_MAX => {
                attempt += 1;
                attempts::pause(attempt).await;
            }
            outcome => return outcome,
        }
    }
}

/// Drops a schema if it is empty, and deletes the records of dropped collections. Collections
/// created since, and other tables, are kept.
async fn drop_schema(connection: &mut Connection, schema: &str) -> Result<()> {
    let collections = document_tables(connection, schema).await?;
    let mut tables = tables(connection, schema).await?;
    if collections.is_empty() {
        // Tables of indexes that a killed gateway has left.
        for table in tables.extract_if(.., |table| side_table::is_name(table) || element_table::is_name(table)) {
            connection.queue_query(&format!("DROP TABLE IF EXISTS {}.{}", quote(schema), quote(&table)));
            connection.finish().await?;
        }
    }
    for gone in own_schema::recorded_tables(connection, schema).await? {
        if !tables.contains(&gone) {
            own_schema::delete_collection(connection, schema, &gone).await?;
        }
    }
    if tables.is_empty() { drop_empty_schema(connection, schema).await } else { Ok(()) }
}

/// Drops a schema without tables. MariaDB keeps one whose directory has files that it does not
/// know: that database is dropped for clients of MongoDB, because one without collections does not
/// exist.
async fn drop_empty_schema(connection: &mut Connection, schema: &str) -> Result<()> {
    for attempt in 1..=EMPTY_SCHEMA_DROPS_MAX {
        connection.queue_query(&format!("DROP SCHEMA IF EXISTS {}", quote(schema)));
        match connection.finish().await {
            // Another client may have created a table since.
            Err(failure) if failure.sql_code() == Some(server_error::SCHEMA_NOT_EMPTY) => {
                if !tables(connection, schema).await?.is_empty() {
                    return Err(failure);
                }
                attempts::pause(attempt).await;
            }
            outcome => return outcome.map(|_| ()),
        }
    }
    tracing::warn!(
        schema,
        "the database is dropped, but MariaDB cannot remove the schema's directory: it contains files of no table. \
         Remove them from MariaDB's data directory, then run DROP SCHEMA."
    );
    // The failed statements have removed the file with the schema's character set.
    connection.queue_query(&format!("ALTER SCHEMA {} {}", quote(schema), names::SCHEMA_CHARACTER_SET));
    connection.finish().await.map(|_| ())
}

/// Returns the names of all tables and views of a schema.
async fn tables(connection: &mut Connection, schema: &str) -> Result<Vec<String>> {
    let sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?";
    connection.queue_execute(&sql.into(), &[Param::Text(schema.as_bytes())]);
    let mut tables = Vec::new();
    while let Event::Row(range) = connection.next().await? {
        tables.push(own_schema::text(connection.row(range)?.next_bytes()?.unwrap_or_default())?);
    }
    Ok(tables)
}
