//! Counts, sizes and checks.

use crate::catalog::Look;
use crate::catalog::collections::document_tables;
use crate::catalog::names;
use crate::catalog::table::Table;
use crate::encoding;
use crate::index::manage;
use crate::plan::planner::{self, Order};
use crate::read::scan;
use crate::store::MariaDbStore;
use document::Doc;
use index_keys::IndexShape;
use index_keys::keys::index_keys;
use mariadb_client::Result;
use mariadb_client::{Connection, Event};
use mariadb_wire::Param;
use mariadb_wire::row::TextRow;
use query::Predicate;
use store::{CollectionStats, DatabaseStats, Flow, Namespace, Query, SizeEstimate, Validation};

/// Tables of up to so many rows have their documents' sizes added up; for larger ones the server's own figure will do.
const SUM_ROWS_MAX: u64 = 1_000;

pub(crate) async fn collection(store: &MariaDbStore, namespace: &Namespace) -> Result<Option<CollectionStats>> {
    let mut lease = store.pool.lease_for(namespace).await?;
    let Some(table) = store.catalog.table(&mut lease, namespace).await? else { return Ok(None) };
    match of_table(&mut lease, &table).await {
        Err(failure) if failure.is_missing_table() => {
            store.catalog.forget(namespace);
            Ok(None)
        }
        outcome => outcome.map(Some),
    }
}

/// The server's own figures.
pub(crate) async fn rough(store: &MariaDbStore, namespace: &Namespace) -> Result<SizeEstimate> {
    let Some(table) = store.known_table(namespace).await? else { return Ok(SizeEstimate::default()) };
    let mut lease = store.pool.lease_for(namespace).await?;
    let [documents, data_bytes, _] = estimates(&mut lease, &table).await?;
    Ok(SizeEstimate { documents, data_bytes })
}

/// Returns how many documents a collection has.
pub(crate) async fn documents(connection: &mut Connection, table: &Table) -> Result<u64> {
    one_number(connection, &table.statements.count).await
}

/// About how many rows a table has.
pub(crate) async fn estimated_rows(connection: &mut Connection, table: &Table) -> Result<u64> {
    Ok(estimates(connection, table).await?[0])
}

/// Rows, bytes of rows and bytes of secondary keys, as the server estimates them.
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
    // The server tells the size of all secondary keys together, that of the ids among them.
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

/// The numbers of a result's only row; zeros where there is none.
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
        // By the table's own name, whatever the collection's is.
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

/// Has the server check the table, and reads every document.
pub(crate) async fn validate(store: &MariaDbStore, namespace: &Namespace) -> Result<Validation> {
    let mut findings = Vec::new();
    let indexes = manage::list(store, namespace).await?.unwrap_or_default();
    let mut counts: Vec<(IndexShape, u64)> =
        indexes.into_iter().filter_map(|index| Some((IndexShape::new(index).ok()?, 0))).collect();
    let mut lease = store.pool.lease_for(namespace).await?;
    let Look::Collection(table) = store.catalog.look(&mut lease, namespace).await? else {
        return Ok(Validation::default());
    };
    lease.queue_query(&format!("CHECK TABLE {}", table.quoted));
    while let Event::Row(range) = lease.next().await? {
        let mut row = TextRow::new(lease.raw_row(range).0);
        let mut text =
            || -> Result<String> { Ok(String::from_utf8_lossy(row.next_bytes()?.unwrap_or_default()).into_owned()) };
        let (_, _, kind, message) = (text()?, text()?, text()?, text()?);
        // Warnings and notes are about history that others may still read, not about what is there.
        if kind.eq_ignore_ascii_case("error") || kind == "status" && message != "OK" {
            findings.push(format!("MariaDB: {message}"));
        }
    }
    drop(lease);
    let everything = Predicate::everything();
    let query = Query::of(&everything);
    let plan = planner::plan(namespace, Some(table), &query, Order::ByNone)?.plan;
    let mut bson = Vec::new();
    let mut take = |_: &[u8], json: &[u8]| {
        bson.clear();
        if let Err(error) = encoding::read(json, &mut bson) {
            findings.push(error.message().to_owned());
            return Ok(Flow::Continue);
        }
        match Doc::from_bytes(&bson).filter(|document| document.get("_id").is_some()) {
            None => findings.push("a document has no _id".into()),
            Some(document) => {
                for (index, count) in &mut counts {
                    *count += index_keys(document, index).map_or(0, |keys| keys.len() as u64);
                }
            }
        }
        Ok(Flow::Continue)
    };
    scan::rows(store, &plan, None, usize::MAX, &mut take).await?;
    let keys = counts.into_iter().map(|(index, count)| (index.spec.name, count)).collect();
    Ok(Validation { findings, keys })
}
