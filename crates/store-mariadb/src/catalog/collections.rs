//! Creating, dropping, renaming and listing collections and databases.

use crate::catalog::own_schema::{self, Remembered};
use crate::catalog::table::Table;
use crate::catalog::table_columns::{Column, shape};
use crate::catalog::{Look, definition_lock, exclusive_change, names, not_a_collection};
use crate::index::side_index::side_table::{self, Duplicates};
use crate::index::{element_table, side_index};
use crate::store::MariaDbStore;
use document::{Doc, DocBuf};
use error::{Code, Error};
use mariadb_client::{Connection, Event, Failure, Result, quote};
use mariadb_wire::Param;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use store::{CollectionInfo, Namespace};

pub(crate) async fn create(store: &MariaDbStore, namespace: &Namespace, options: Doc<'_>) -> Result<()> {
    let create = async |connection: &mut Connection| {
        match store.catalog.look(connection, namespace).await? {
            Look::Nothing if store.catalog.is_view(connection, namespace).await? => {
                return Err(store::views::not_a_collection(namespace).into());
            }
            Look::Nothing => {}
            Look::OtherTable => return Err(not_a_collection(namespace).into()),
            Look::Collection(_) => return Err(exists(namespace)),
        }
        let created = store.catalog.create(connection, namespace, &options.to_owned()).await?;
        if created { Ok(()) } else { Err(exists(namespace)) }
    };
    exclusive_change::alone(store, &[namespace], create).await
}

fn exists(namespace: &Namespace) -> Failure {
    let message = format!("Collection {namespace} already exists.");
    Failure::Other(Error::new(Code::NAMESPACE_EXISTS, message))
}

/// Gives a collection other options. Error 26.
pub(crate) async fn modify(store: &MariaDbStore, namespace: &Namespace, options: Doc<'_>) -> Result<()> {
    let modify = async |connection: &mut Connection| {
        let Look::Collection(table) = store.catalog.look(connection, namespace).await? else {
            return Err(Error::new(Code::NAMESPACE_NOT_FOUND, format!("ns not found {namespace}")).into());
        };
        let info = of_table(connection, &table).await?;
        let (name, options) = (&namespace.collection, options.to_owned());
        own_schema::change_options(connection, &table.schema, &table.name, name, &info.uuid, &options).await
    };
    exclusive_change::alone(store, &[namespace], modify).await
}

/// Gives how many indexes the collection had.
pub(crate) async fn drop(store: &MariaDbStore, namespace: &Namespace) -> Result<Option<usize>> {
    // What cannot be a name is not there.
    if store.catalog.names(namespace).is_err() {
        return Ok(None);
    }
    let drop = async |connection: &mut Connection| match store.catalog.look(connection, namespace).await? {
        Look::Collection(table) => drop_table(connection, &table).await,
        Look::Nothing | Look::OtherTable => Ok(None),
    };
    exclusive_change::alone(store, &[namespace], drop).await
}

/// Drops a collection's table with all that belongs to it; the caller holds the collection's lock.
async fn drop_table(connection: &mut Connection, table: &Table) -> Result<Option<usize>> {
    element_table::drop_all(connection, table, &table.indexes).await?;
    side_index::drop_all(connection, table, &table.indexes).await?;
    connection.queue_query(&format!("DROP TABLE {}", table.quoted));
    match connection.finish().await {
        Err(failure) if failure.is_missing_table() => return Ok(None),
        outcome => outcome?,
    };
    own_schema::forget_collection(connection, &table.schema, &table.name).await?;
    Ok(Some(table.indexes.len() + 1))
}

pub(crate) async fn rename(store: &MariaDbStore, from: &Namespace, to: &Namespace, drop_target: bool) -> Result<()> {
    let rename = async |connection: &mut Connection| rename_alone(store, connection, from, to, drop_target).await;
    exclusive_change::alone(store, &[from, to], rename).await
}

async fn rename_alone(
    store: &MariaDbStore,
    connection: &mut Connection,
    from: &Namespace,
    to: &Namespace,
    drop_target: bool,
) -> Result<()> {
    let Look::Collection(source) = store.catalog.look(connection, from).await? else {
        let message = format!("Source collection {from} does not exist");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message).into());
    };
    let (schema, name) = store.catalog.names(to)?;
    let in_the_way = match store.catalog.look(connection, to).await? {
        Look::Nothing => None,
        Look::OtherTable => return Err(not_a_collection(to).into()),
        Look::Collection(replaced) if drop_target => Some(replaced),
        Look::Collection(_) => return Err(Error::new(Code::NAMESPACE_EXISTS, "target namespace exists").into()),
    };
    let renaming = async |connection: &mut Connection| {
        store.catalog.create_schema(connection, schema).await?;
        move_table(connection, &source, (schema, &name), in_the_way.as_deref()).await?;
        let from = (&*source.schema, &*source.name);
        own_schema::rename_collection(connection, from, (schema, &name), &to.collection).await
    };
    let renamed = definition_lock::locked(connection, &[definition_lock::of_database(schema)], renaming).await;
    if renamed.as_ref().is_err_and(Failure::is_lost) {
        return renamed;
    }
    let restored = restore_keys(store, connection, if renamed.is_ok() { to } else { from }).await;
    renamed.and(restored)
}

/// Makes anew what [`move_table`] has dropped. Keys that gateways compute have to be there, or the index would serve no more.
async fn restore_keys(store: &MariaDbStore, connection: &mut Connection, namespace: &Namespace) -> Result<()> {
    store.catalog.forget(namespace);
    let Some(table) = store.catalog.table(connection, namespace).await? else { return Ok(()) };
    element_table::restore_unique(connection, &table).await?;
    side_index::make(store, connection, &table, &table.indexes, Duplicates::Kept, None).await?;
    store.catalog.forget(namespace);
    store.catalog.note_change();
    Ok(())
}

/// Gives a table another schema and name, in place of one that may have them.
async fn move_table(
    connection: &mut Connection,
    source: &Table,
    (schema, name): (&str, &str),
    replaced: Option<&Table>,
) -> Result<()> {
    // Triggers do not go with a table into another schema. The next array brings them back, but for those of unique indexes.
    if source.schema != schema {
        element_table::drop_all(connection, source, &source.indexes).await?;
    }
    // A gateway that drains still, and has not heard of the new name, would read documents of who
    // has the old one next.
    side_index::drop_all(connection, source, &source.indexes).await?;
    let target = format!("{}.{}", quote(schema), quote(name));
    let Some(replaced) = replaced else {
        connection.queue_query(&format!("RENAME TABLE {} TO {target}", source.quoted));
        connection.finish().await?;
        return Ok(());
    };
    // The old target steps aside and the new one takes its place in one statement, so that nobody finds it missing.
    let aside = format!("{}.{}", quote(schema), quote(&format!("~dropped~{:016x}", rand::random::<u64>())));
    connection.queue_query(&format!("RENAME TABLE {target} TO {aside}, {} TO {target}", source.quoted));
    connection.finish().await?;
    element_table::drop_all(connection, replaced, &replaced.indexes).await?;
    side_index::drop_all(connection, replaced, &replaced.indexes).await?;
    connection.queue_query(&format!("DROP TABLE {aside}"));
    connection.finish().await?;
    own_schema::forget_collection(connection, schema, name).await
}

pub(crate) async fn list(store: &MariaDbStore, database: &str) -> Result<Vec<CollectionInfo>> {
    let Ok(schema) = names::schema(database, store.catalog.ignores_case()) else { return Ok(Vec::new()) };
    let mut lease = store.pool.lease_for_catalog().await?;
    let tables = document_tables(&mut lease, schema).await?;
    let remembered = own_schema::collections(&mut lease, schema, None).await?;
    let mut collections: Vec<CollectionInfo> =
        tables.iter().map(|table| describe(schema, table, &remembered)).collect();
    collections.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(collections)
}

pub(crate) async fn one(store: &MariaDbStore, namespace: &Namespace) -> Result<Option<CollectionInfo>> {
    if store.catalog.names(namespace).is_err() {
        return Ok(None);
    }
    let mut lease = store.pool.lease_for(namespace).await?;
    store.catalog.forget(namespace);
    let Look::Collection(table) = store.catalog.look(&mut lease, namespace).await? else { return Ok(None) };
    let info = of_table(&mut lease, &table).await?;
    Ok(Some(CollectionInfo { name: namespace.collection.to_string(), ..info }))
}

pub(crate) async fn of_table(connection: &mut Connection, table: &Table) -> Result<CollectionInfo> {
    let remembered = own_schema::collections(connection, &table.schema, Some(&table.name)).await?;
    Ok(describe(&table.schema, &table.name, &remembered))
}

/// What a table is as a collection. One that was not made through a gateway gets a UUID made of its name.
fn describe(schema: &str, table: &str, remembered: &[Remembered]) -> CollectionInfo {
    if let Some(known) = remembered.iter().find(|known| known.table == table) {
        return CollectionInfo { name: known.collection.clone(), options: known.options.clone(), uuid: known.uuid };
    }
    let mut uuid = [0; 16];
    let hash = Sha256::new().chain_update(schema).chain_update([0]).chain_update(table).finalize();
    uuid.copy_from_slice(&hash[..16]);
    uuid[6] = uuid[6] & 0x0F | 0x80;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    CollectionInfo { name: table.to_owned(), options: DocBuf::new(), uuid }
}

/// The tables of a schema that hold documents.
pub(crate) async fn document_tables(connection: &mut Connection, schema: &str) -> Result<Vec<String>> {
    let sql = "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_KEY, EXTRA, GENERATION_EXPRESSION, IS_NULLABLE, \
               COLUMN_DEFAULT IS NOT NULL FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ?";
    connection.queue_execute(&sql.into(), &[Param::Text(schema.as_bytes())]);
    let mut tables: BTreeMap<String, Vec<Column>> = BTreeMap::new();
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        let table = own_schema::text(row.next_bytes()?.unwrap_or_default())?;
        tables.entry(table).or_default().push(Column::read(&mut row)?);
    }
    Ok(tables.into_iter().filter(|(_, columns)| shape(columns).is_some()).map(|(table, _)| table).collect())
}

/// Drops a database's collections, and its schema once that is empty: tables of others are not ours to drop.
pub(crate) async fn drop_database(store: &MariaDbStore, database: &str) -> Result<bool> {
    let schema = names::schema(database, store.catalog.ignores_case())?;
    let mut lease = store.pool.lease_for_catalog().await?;
    let mut any = false;
    for table in document_tables(&mut lease, schema).await? {
        let lock = [definition_lock::of_collection(schema, &table)];
        any |= drop_again(&mut lease, &lock, async |connection| {
            match store.catalog.by_table_name(connection, schema, &table).await? {
                Some(table) => Ok(drop_table(connection, &table).await?.is_some()),
                None => Ok(false),
            }
        })
        .await?;
    }
    let lock = [definition_lock::of_database(schema)];
    drop_again(&mut lease, &lock, async |connection| drop_schema(connection, schema).await).await?;
    // Readers may have looked at tables in the meantime.
    store.catalog.forget_database(database);
    store.catalog.note_change();
    Ok(any)
}

/// Runs a part of dropping a database under its lock, and again where SQL clients were in the way.
async fn drop_again<T>(
    connection: &mut Connection,
    lock: &[String],
    mut part: impl AsyncFnMut(&mut Connection) -> Result<T>,
) -> Result<T> {
    let mut attempt = 0;
    loop {
        match definition_lock::locked(connection, lock, async |connection| part(connection).await).await {
            Err(failure) if failure.is_lost_race() && attempt < definition_lock::ATTEMPTS_MAX => {
                attempt += 1;
                definition_lock::pause(attempt).await;
            }
            outcome => return outcome,
        }
    }
}

/// Drops a schema that has nothing in it any more, and the records of collections that are gone. Collections created since
/// their database was dropped stay, and so do tables of others.
async fn drop_schema(connection: &mut Connection, schema: &str) -> Result<()> {
    let collections = document_tables(connection, schema).await?;
    let mut tables = tables(connection, schema).await?;
    if collections.is_empty() {
        // Left behind by a gateway that was killed.
        for table in tables.extract_if(.., |table| side_table::is_name(table) || element_table::is_name(table)) {
            connection.queue_query(&format!("DROP TABLE IF EXISTS {}.{}", quote(schema), quote(&table)));
            connection.finish().await?;
        }
    }
    for gone in own_schema::recorded_tables(connection, schema).await? {
        if !tables.contains(&gone) {
            own_schema::forget_collection(connection, schema, &gone).await?;
        }
    }
    if tables.is_empty() {
        connection.queue_query(&format!("DROP SCHEMA IF EXISTS {}", quote(schema)));
        connection.finish().await?;
    }
    Ok(())
}

/// The tables of a schema, whatever they hold, and its views.
async fn tables(connection: &mut Connection, schema: &str) -> Result<Vec<String>> {
    let sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?";
    connection.queue_execute(&sql.into(), &[Param::Text(schema.as_bytes())]);
    let mut tables = Vec::new();
    while let Event::Row(range) = connection.next().await? {
        tables.push(own_schema::text(connection.row(range)?.next_bytes()?.unwrap_or_default())?);
    }
    Ok(tables)
}
