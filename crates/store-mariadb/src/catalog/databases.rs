//! Lists databases: schemas that have a collection.
//!
//! The server returns the names and sizes of all tables in a millisecond, and takes half of one for
//! the columns of each. So tables that Selkie has recorded count as collections by their names.
//! Columns are read only in schemas without such a table, whose tables SQL clients may have
//! created.

use crate::catalog::collections::document_tables;
use crate::catalog::{names, own_schema};
use crate::store::MariaDbStore;
use mariadb_client::{Connection, Event, Result};
use std::collections::{BTreeMap, BTreeSet};
use store::DatabaseInfo;

/// The names and bytes of a schema's tables.
type Tables = BTreeMap<String, u64>;

pub(crate) async fn list(store: &MariaDbStore) -> Result<Vec<DatabaseInfo>> {
    let mut lease = store.pool.lease_for_catalog().await?;
    let schemas = tables(&mut lease).await?;
    let recorded = own_schema::all_recorded_tables(&mut lease).await?;
    let mut databases = Vec::with_capacity(schemas.len());
    for (schema, tables) in schemas {
        let is_recorded = |table: &String| recorded.contains(&(schema.clone(), table.clone()));
        let mut collections: BTreeSet<String> = tables.keys().filter(|table| is_recorded(table)).cloned().collect();
        if collections.is_empty() {
            collections.extend(document_tables(&mut lease, &schema).await?);
        }
        if !collections.is_empty() {
            // Tables of a collection's indexes count for its size.
            let counts = |table: &String| collections.contains(table) || names::is_made_up(table);
            let size_on_disk_bytes = tables.iter().filter(|(table, _)| counts(table)).map(|(_, bytes)| bytes).sum();
            databases.push(DatabaseInfo { name: schema, size_on_disk_bytes, empty: false });
        }
    }
    Ok(databases)
}

/// Returns the tables of all schemas that may be databases.
async fn tables(connection: &mut Connection) -> Result<BTreeMap<String, Tables>> {
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, CAST(COALESCE(DATA_LENGTH + INDEX_LENGTH, 0) AS UNSIGNED) FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA NOT IN ({})",
        names::HIDDEN.map(|schema| format!("'{schema}'")).join(", ")
    );
    connection.queue_execute(&sql.into(), &[]);
    let mut schemas = BTreeMap::<String, Tables>::new();
    while let Event::Row(range) = connection.next().await? {
        let mut row = connection.row(range)?;
        let schema = own_schema::text(row.next_bytes()?.unwrap_or_default())?;
        let table = own_schema::text(row.next_bytes()?.unwrap_or_default())?;
        let bytes = row.next_u64()?;
        if !names::is_hidden(&schema) {
            schemas.entry(schema).or_default().insert(table, bytes);
        }
    }
    Ok(schemas)
}
