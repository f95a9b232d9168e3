//! Statistics of collections and databases: counts and sizes.

use crate::catalog::collections::document_tables;
use crate::catalog::names;
use crate::catalog::table::Table;
use crate::store::MariaDbStore;
use mariadb_client::{Connection, Event, Result};
use mariadb_wire::Param;
use store::{CollectionStats, DatabaseStats, Namespace, SizeEstimate};

/// The sizes of documents are summed in tables of up to this many rows; larger ones use the
/// server's estimate.
const SUM_ROWS_MAX: u64 = 1_000;

pub(crate) async fn collection(store: &MariaDbStore, namespace: &Namespace) -> Result<Option<CollectionStats>> {
    let mut lease = store.pool.lease_for(namespace).await?;
    let Some(table) = store.catalog.table(&mut lease, namespace).await? else { return Ok(None) };
    match of_table(&mut lease, &table).await {
        Err(failure) if failure.is_missing_table() => {
            store.catalog.invalidate(namespace);
            Ok(None)
        }
        outcome => outcome.map(Some),
    }
}

/// Returns the server's estimates of a collection's size.
pub(crate) async fn estimated_size(store: &MariaDbStore, namespace: &Namespace) -> Result<SizeEstimate> {
    let Some(table) = store.known_table(namespace).await? else { return Ok(SizeEstimate::default()) };
    let mut lease = store.pool.lease_for(namespace).await?;
    let [documents, data_bytes, _] = estimates(&mut lease, &table).await?;
    Ok(SizeEstimate { documents, data_bytes })
}

/// Returns how many documents a collection has.
pub(crate) async fn documents(connection: &mut Connection, table: &Table) -> Result<u64> {
    one_number(connection, &table.statements.count).await
}

/// Returns the server's estimate of a table's rows.
pub(crate) async fn estimated_rows(connection: &mut Connection, table: &Table) -> Result<u64> {
    Ok(estimates(connection, table).await?[0])
}

/// Returns the server's estimates of rows, bytes of rows and bytes of secondary keys.
async fn estimates(connection: &mut Connection, table: &Table) -> Result<[u64; 3]> {
    let sql = "SELECT TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH \
               FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";
    let name = [Param::Text(table.schema.as_bytes()), Param::Text(table.name.as_bytes())];
    connection.queue_execute(&sql.into(), &name);
    numbers(connection).await
}

async fn of_table(connection: &mut Connection, table: &Table) -> Result<CollectionStats> {
    let [rows, data, index] = estimates(connection, table).await?;
    let documents = one_number(connection, &table.statements.count).await?;
    let data_bytes = if documents <= SUM_ROWS_MAX && rows <= 10 * SUM_ROWS_MAX {
        let sum = format!("SELECT CAST(COALESCE(SUM(OCTET_LENGTH(doc)), 0) AS UNSIGNED) FROM {}", table.quoted);
        one_number(connection, &sum.into()).await?
    } else {
        data
    };
    // The server has the size of all secondary keys together, including that of the ids.
    let each = index / (table.indexes.len() as u64 + 1);
    let names = std::iter::once("_id_".to_owned()).chain(table.indexes.iter().map(|index| index.spec.name.clone()));
    Ok(CollectionStats {
        documents,
        data_bytes,
        storage_bytes: data,
        indexes: names.map(|name| (name, each)).collect(),
    })
}

async fn one_number(connection: &mut Connection, sql: &std::sync::Arc<str>) -> Result<u64> {
    connection.queue_execute(sql, &[]);
    let [number] = numbers(connection).await?;
    Ok(number)
}

/// Returns the numbers of a result's only row; zeros if there is none.
async fn numbers<const N: usize>(connection: &mut Connection) -> Result<[u64; N]> {
    let mut numbers = [0; N];
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        for number in &mut numbers {
            *number = row.next_u64()?;
        }
    }
    Ok(numbers)
}

pub(crate) async fn database(store: &MariaDbStore, database: &str) -> Result<DatabaseStats> {
    let mut total = DatabaseStats::default();
    let Ok(schema) = names::schema(database, store.catalog.ignores_case()) else { return Ok(total) };
    let mut lease = store.pool.lease_for_catalog().await?;
    for name in document_tables(&mut lease, schema).await? {
        // By the table's own name, which may differ from the collection's.
        let Some(table) = store.catalog.by_table_name(&mut lease, schema, &name).await? else { continue };
        let stats = match of_table(&mut lease, &table).await {
            Err(failure) if failure.is_missing_table() => continue,
            outcome => outcome?,
        };
        total.collections += 1;
        total.documents += stats.documents;
        total.data_bytes += stats.data_bytes;
        total.storage_bytes += stats.storage_bytes;
        total.indexes += stats.indexes.len() as u64;
        total.index_bytes += stats.indexes.iter().map(|(_, bytes)| bytes).sum::<u64>();
    }
    Ok(total)
}
