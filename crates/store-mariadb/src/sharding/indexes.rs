//! Indexes of sharded collections: columns and keys on the data servers, and the same on the head.
//!
//! A column that the head has and a data server lacks would stop all writes, and a key that the
//! head has would be read before it is complete. So an index is added in steps, between which reads
//! and writes go on: columns without values on the data servers, the generated columns on the head,
//! from which new values come, the values of the documents that exist already, the keys on the data
//! servers, and the keys on the head. It is dropped the other way round. What an interrupted change
//! has left on the data servers is used by nothing.

use crate::catalog::names;
use crate::catalog::table::Table;
use crate::index::Index;
use crate::sharding::layout::{self, Layout};
use crate::sharding::{data_tables, definition};
use ahash::AHashSet;
use error::{Code, Error};
use mariadb_client::{Connection, Failure, Result, quote};
use store::Namespace;

/// Fails with 67 for an index that a sharded collection cannot have.
pub(crate) fn check(namespace: &Namespace, index: &Index, layout: &Layout) -> error::Result<()> {
    let refuse = |message: String| Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
    if index.spec.unique {
        let text = |document| store::duplicate::text_of(document);
        return refuse(format!(
            "cannot create unique index over {} with shard key pattern {}: the servers do not compare their documents",
            text(index.spec.key.as_doc()),
            text(layout.key.as_doc())
        ));
    }
    if !index.has_column_keys() {
        let kind = index.kind().name();
        return refuse(format!("the sharded collection {namespace} cannot have an index of the kind '{kind}'"));
    }
    Ok(())
}

/// Adds indexes to a collection's tables.
pub(crate) async fn add(connection: &mut Connection, table: &Table, wanted: &[Index]) -> Result<()> {
    let layout = layout::of_sharded(connection, &table.schema, &table.name).await?;
    let added = add_everywhere(connection, table, &layout, wanted).await;
    if added.as_ref().is_err_and(|failure| !failure.is_lost()) {
        replace_head(connection, table, &definition::head_table(&layout, &table.indexes, &[])).await?;
    }
    added
}

async fn add_everywhere(connection: &mut Connection, table: &Table, layout: &Layout, wanted: &[Index]) -> Result<()> {
    data_tables::execute_on_all(connection, layout, &definition::add_columns(layout, wanted)).await?;
    replace_head(connection, table, &definition::head_table(layout, &table.indexes, wanted)).await?;
    data_tables::execute_on_all(connection, layout, &definition::fill_columns(layout, wanted)).await?;
    data_tables::execute_on_all(connection, layout, &definition::add_keys(layout, wanted)).await?;
    let all: Vec<Index> = table.indexes.iter().chain(wanted).cloned().collect();
    replace_head(connection, table, &definition::head_table(layout, &all, &[])).await
}

/// Drops indexes of a collection's tables.
pub(crate) async fn drop(connection: &mut Connection, table: &Table, indexes: &[Index]) -> Result<()> {
    let layout = layout::of_sharded(connection, &table.schema, &table.name).await?;
    data_tables::reach_all(connection, &layout).await?;
    let is_dropped = |index: &Index| indexes.iter().any(|dropped| dropped.sql_name == index.sql_name);
    let kept: Vec<Index> = table.indexes.iter().filter(|index| !is_dropped(index)).cloned().collect();
    replace_head(connection, table, &definition::head_table(&layout, &kept, &[])).await?;
    let used: AHashSet<&str> = kept.iter().flat_map(Index::column_names).collect();
    data_tables::execute_on_all(connection, &layout, &definition::drop_indexes(&layout, indexes, &used)).await
}

/// Replaces the head's table, which holds no rows. It is never missing.
async fn replace_head(connection: &mut Connection, table: &Table, definition: &str) -> Result<()> {
    let suffix = rand::random::<u64>();
    let [new, old] = ["new", "old"]
        .map(|which| format!("{}.{}", quote(names::OWN_SCHEMA), quote(&format!("~{which}~{suffix:016x}"))));
    connection.queue_query(&format!("CREATE TABLE {new} {definition}"));
    connection.finish().await?;
    connection.queue_query(&format!("RENAME TABLE {0} TO {old}, {new} TO {0}", table.quoted));
    let renamed = connection.finish().await;
    if renamed.as_ref().is_err_and(Failure::is_lost) {
        return renamed.map(|_| ());
    }
    // Only the head's table goes.
    connection.queue_query(&format!("DROP TABLE {}", if renamed.is_ok() { old } else { new }));
    connection.finish().await?;
    renamed.map(|_| ())
}
