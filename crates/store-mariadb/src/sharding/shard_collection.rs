//! `shardCollection`: replaces a collection's table by one that is distributed, with its documents.

use crate::catalog::collections::collection_info;
use crate::catalog::table::Table;
use crate::catalog::{TableLookup, exclusive_change, names, not_a_collection};
use crate::index::element_table;
use crate::sharding::layout::Layout;
use crate::sharding::{data_tables, definition, indexes, layout};
use crate::store::MariaDbStore;
use document::{Doc, DocBuf};
use error::{Code, Error};
use mariadb_client::{Connection, Failure, Result, quote};
use store::Namespace;

/// Options of collections that cannot be sharded.
const UNSUITABLE: [&str; 6] =
    ["capped", "clusteredIndex", "timeseries", "collation", "encryptedFields", "changeStreamPreAndPostImages"];

pub(super) async fn shard(store: &MariaDbStore, namespace: &Namespace, key: Doc<'_>) -> Result<()> {
    exclusive_change::exclusively(store, &[namespace], async |connection| {
        let table = match store.catalog.read(connection, namespace).await? {
            TableLookup::Collection(table) => table,
            TableLookup::OtherTable => return Err(not_a_collection(namespace).into()),
            TableLookup::Nothing if store.catalog.is_view(connection, namespace).await? => {
                return Err(store::views::not_a_collection(namespace).into());
            }
            TableLookup::Nothing => {
                store.catalog.create(connection, namespace, &DocBuf::new()).await?;
                store.catalog.invalidate(namespace);
                match store.catalog.read(connection, namespace).await? {
                    TableLookup::Collection(table) => table,
                    TableLookup::Nothing | TableLookup::OtherTable => return Err(not_a_collection(namespace).into()),
                }
            }
        };
        if table.is_sharded {
            let present = layout::of_sharded(connection, &table.schema, &table.name).await?;
            return check_key(namespace, &present, key);
        }
        check_suitable(connection, namespace, &table).await?;
        let layout = Layout {
            key: key.to_owned(),
            shards: store.shards.to_vec(),
            data_table: definition::data_table_name(&table.schema, &table.name),
        };
        for index in &table.indexes {
            indexes::check(namespace, index, &layout).map_err(|error| unsuitable(namespace, error.message()))?;
        }
        let outcome = distribute(connection, &table, &layout).await;
        if outcome.is_ok() {
            // Tables of a sharded collection have none.
            element_table::drop_all(connection, &table, &table.indexes).await?;
        }
        if let Err(failure) = &outcome
            && !failure.is_lost()
        {
            data_tables::drop_all(connection, &layout).await?;
        }
        outcome
    })
    .await
}

fn check_key(namespace: &Namespace, present: &Layout, key: Doc<'_>) -> Result<()> {
    if present.key.as_doc() == key {
        return Ok(());
    }
    let message = format!(
        "sharding already enabled for collection {namespace} with the key {}",
        store::duplicate::text_of(present.key.as_doc())
    );
    Err(Error::new(Code::ALREADY_INITIALIZED, message).into())
}

/// Fails with 72 for a collection that cannot be sharded.
async fn check_suitable(connection: &mut Connection, namespace: &Namespace, table: &Table) -> Result<()> {
    let info = collection_info(connection, table).await?;
    let options = info.options.as_doc();
    if let Some(option) = UNSUITABLE.iter().find(|option| options.get(option).is_some()) {
        let reason = format!("a collection with the option '{option}' cannot be sharded");
        return Err(unsuitable(namespace, &reason).into());
    }
    if !table.is_native() {
        return Err(unsuitable(namespace, "its table was not created by Selkie").into());
    }
    Ok(())
}

fn unsuitable(namespace: &Namespace, reason: &str) -> Error {
    Error::new(Code::INVALID_OPTIONS, format!("can't shard {namespace}: {reason}"))
}

/// Copies the documents into tables on the data servers, and puts a distributed table into the
/// place of the collection's table. Others wait meanwhile.
async fn distribute(connection: &mut Connection, table: &Table, layout: &Layout) -> Result<()> {
    data_tables::create(connection, layout, &table.indexes).await?;
    let definition = definition::head_table(layout, &table.indexes, &[]);
    let staging =
        format!("{}.{}", quote(names::OWN_SCHEMA), quote(&format!("~sharding~{:016x}", rand::random::<u64>())));
    connection.queue_query(&format!("CREATE TABLE {staging} {definition}"));
    connection.finish().await?;
    let replaced = replace(connection, table, &staging, &definition).await;
    if replaced.as_ref().is_err_and(Failure::is_lost) {
        return replaced;
    }
    // Also if the replacement failed. Only the head's table goes.
    for sql in ["UNLOCK TABLES".to_owned(), format!("DROP TABLE {staging}")] {
        connection.queue_query(&sql);
        connection.finish().await?;
    }
    replaced
}

/// Copies the documents through a second table of the head, `staging`, while no other session can
/// use the collection.
async fn replace(connection: &mut Connection, table: &Table, staging: &str, definition: &str) -> Result<()> {
    connection.altered = true;
    for sql in [
        format!("LOCK TABLES {} WRITE, {staging} WRITE", table.quoted),
        format!("INSERT INTO {staging} (seq, doc) SELECT seq, doc FROM {}", table.quoted),
        // The lock stays.
        format!("CREATE OR REPLACE TABLE {} {definition}", table.quoted),
    ] {
        connection.queue_query(&sql);
        connection.finish().await?;
    }
    Ok(())
}
