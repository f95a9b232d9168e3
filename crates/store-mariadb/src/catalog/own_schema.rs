//! Selkie's own schema, `selkie`: records about collections and indexes, and of retryable writes.
//!
//! All gateways on a server share it. It is not needed to read or write documents: if the schema is
//! missing (nothing was written yet, or it was dropped), collections have no options, and made-up
//! table names stand for themselves.

use crate::accounts::record;
use crate::catalog::attempts;
use document::DocBuf;
use mariadb_client::{Connection, Event, Failure, Result};
use mariadb_wire::Param;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::catalog::random_uuid;

/// Creates the schema and its tables. `retryable_writes` has one row per client session: its last
/// retryable write. `locks`: see [`crate::catalog::cluster_lock`].
const DEFINITIONS: [&str; 6] = [
    "CREATE SCHEMA IF NOT EXISTS selkie CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    "CREATE TABLE IF NOT EXISTS selkie.collections (\
     schema_name VARCHAR(64) NOT NULL, table_name VARCHAR(64) NOT NULL, collection VARCHAR(255) NOT NULL, \
     uuid BINARY(16) NOT NULL, options LONGBLOB NOT NULL, PRIMARY KEY (schema_name, table_name)) \
     ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    "CREATE TABLE IF NOT EXISTS selkie.indexes (\
     schema_name VARCHAR(64) NOT NULL, table_name VARCHAR(64) NOT NULL, position INT UNSIGNED NOT NULL, \
     sql_name VARCHAR(64) NOT NULL, spec LONGBLOB NOT NULL, values_table VARCHAR(64), \
     PRIMARY KEY (schema_name, table_name, sql_name)) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    "CREATE TABLE IF NOT EXISTS selkie.retryable_writes (\
     session BINARY(16) NOT NULL PRIMARY KEY, txn_number BIGINT NOT NULL, statements INT UNSIGNED NOT NULL, \
     outcome LONGBLOB NOT NULL, written_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, \
     KEY written_at (written_at)) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    record::DEFINITION,
    "CREATE TABLE IF NOT EXISTS selkie.locks (\
     name VARCHAR(64) NOT NULL PRIMARY KEY, owner BINARY(16) NOT NULL, renewals BIGINT UNSIGNED NOT NULL) \
     ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
];

/// Attempts to execute a statement that conflicts with other transactions.
const CONTENTIONS_MAX: u32 = 20;

/// The record of a collection.
#[derive(Clone, Debug)]
pub(crate) struct CollectionRecord {
    pub table: String,
    pub collection: String,
    pub uuid: [u8; 16],
    pub options: DocBuf,
}

/// Creates the schema.
pub(crate) async fn create(connection: &mut Connection) -> Result<()> {
    for definition in DEFINITIONS {
        connection.queue_query(definition);
    }
    let mut outcome = Ok(());
    for _ in DEFINITIONS {
        match connection.finish().await {
            Err(failure) if failure.is_lost() => return Err(failure),
            answer => outcome = outcome.and(answer.map(drop)),
        }
    }
    outcome
}

/// As [`create`], if the user has the privilege; another user may have created the schema.
pub(crate) async fn create_if_allowed(connection: &mut Connection) -> Result<()> {
    match create(connection).await {
        Err(failure) if failure.is_access_denied() => {
            tracing::warn!(
                "no privilege to create the schema 'selkie', where retryable writes are recorded: {failure}"
            );
            Ok(())
        }
        outcome => outcome,
    }
}

/// Returns whether the schema exists.
pub(crate) async fn exists(connection: &mut Connection) -> Result<bool> {
    let sql = "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'selkie'";
    connection.queue_execute(&sql.into(), &[]);
    let mut found = false;
    while let Event::Row(_) = connection.next().await? {
        found = true;
    }
    Ok(found)
}

/// Executes a statement on the own schema, which is created if it is missing.
pub(crate) async fn execute(connection: &mut Connection, sql: &Arc<str>, params: &[Param<'_>]) -> Result<u64> {
    let mut contentions = 0;
    let mut created = false;
    loop {
        connection.queue_execute(sql, params);
        match connection.finish().await {
            Err(failure) if failure.is_missing_table() && !created => {
                create(connection).await?;
                created = true;
            }
            // Records of other collections are in the same pages.
            Err(failure) if failure.is_contention() && contentions < CONTENTIONS_MAX => {
                contentions += 1;
                attempts::pause(contentions).await;
            }
            outcome => return Ok(outcome?.affected_rows),
        }
    }
}

/// Passes each row of a query on the own schema to `take`; a missing schema has no rows.
pub(crate) async fn query(
    connection: &mut Connection,
    sql: &Arc<str>,
    params: &[Param<'_>],
    mut take: impl FnMut(&[Option<Vec<u8>>]) -> Result<()>,
) -> Result<()> {
    connection.queue_execute(sql, params);
    loop {
        match connection.next().await {
            Ok(Event::Row(range)) => {
                let count = connection.raw_row(range.clone()).1.len();
                let mut row = connection.row(range)?;
                let values: Result<Vec<_>> = (0..count).map(|_| Ok(row.next_bytes()?.map(<[u8]>::to_vec))).collect();
                take(&values?)?;
            }
            Ok(Event::Finished(_)) => return Ok(()),
            Err(failure) if failure.is_missing_table() => return Ok(()),
            Err(failure) => return Err(failure),
        }
    }
}

/// Records a collection. `created`: it was just created, so a record that an earlier one of that
/// name left is replaced. Otherwise it is about to be created, so that a made-up table name always
/// has a record.
pub(crate) async fn record_collection(
    connection: &mut Connection,
    schema: &str,
    table: &str,
    collection: &str,
    options: &DocBuf,
    created: bool,
) -> Result<()> {
    let insert = "INSERT INTO selkie.collections (schema_name, table_name, collection, uuid, options) VALUES (?, ?, ?, ?, ?) \
                  ON DUPLICATE KEY UPDATE";
    let replaced = if created { "uuid = VALUES(uuid), options = VALUES(options)" } else { "uuid = uuid" };
    let sql: Arc<str> = format!("{insert} {replaced}").into();
    let uuid = random_uuid();
    let params = [
        Param::Text(schema.as_bytes()),
        Param::Text(table.as_bytes()),
        Param::Text(collection.as_bytes()),
        Param::Bytes(&uuid),
        Param::Bytes(options.as_bytes()),
    ];
    execute(connection, &sql, &params).await?;
    Ok(())
}

/// Records new options of a collection, which may have been created by SQL.
pub(crate) async fn change_options(
    connection: &mut Connection,
    schema: &str,
    table: &str,
    collection: &str,
    uuid: &[u8; 16],
    options: &DocBuf,
) -> Result<()> {
    let sql = "INSERT INTO selkie.collections (schema_name, table_name, collection, uuid, options) VALUES (?, ?, ?, ?, ?) \
               ON DUPLICATE KEY UPDATE options = VALUES(options)";
    let params = [
        Param::Text(schema.as_bytes()),
        Param::Text(table.as_bytes()),
        Param::Text(collection.as_bytes()),
        Param::Bytes(uuid),
        Param::Bytes(options.as_bytes()),
    ];
    execute(connection, &sql.into(), &params).await?;
    Ok(())
}

/// Deletes the records of a dropped collection and its indexes.
pub(crate) async fn delete_collection(connection: &mut Connection, schema: &str, table: &str) -> Result<()> {
    for sql in [
        "DELETE FROM selkie.collections WHERE schema_name = ? AND table_name = ?",
        "DELETE FROM selkie.indexes WHERE schema_name = ? AND table_name = ?",
    ] {
        execute(connection, &sql.into(), &[Param::Text(schema.as_bytes()), Param::Text(table.as_bytes())]).await?;
    }
    Ok(())
}

/// Returns the names of the tables of a schema that have records.
pub(crate) async fn recorded_tables(connection: &mut Connection, schema: &str) -> Result<Vec<String>> {
    let sql = "SELECT table_name FROM selkie.collections WHERE schema_name = ? UNION \
               SELECT table_name FROM selkie.indexes WHERE schema_name = ?";
    let schema = Param::Text(schema.as_bytes());
    let mut tables = Vec::new();
    query(connection, &sql.into(), &[schema, schema], |row| {
        if let [Some(table)] = row {
            tables.push(text(table)?);
        }
        Ok(())
    })
    .await?;
    Ok(tables)
}

/// Returns schema and table of each recorded collection.
pub(crate) async fn all_recorded_tables(connection: &mut Connection) -> Result<BTreeSet<(String, String)>> {
    let mut tables = BTreeSet::new();
    query(connection, &"SELECT schema_name, table_name FROM selkie.collections".into(), &[], |row| {
        if let [Some(schema), Some(table)] = row {
            tables.insert((text(schema)?, text(table)?));
        }
        Ok(())
    })
    .await?;
    Ok(tables)
}

/// Moves the records of a renamed collection to its new name.
pub(crate) async fn rename_collection(
    connection: &mut Connection,
    (from_schema, from_table): (&str, &str),
    (to_schema, to_table): (&str, &str),
    collection: &str,
) -> Result<()> {
    // The new name was free, so a record of it was left by an interrupted change.
    delete_collection(connection, to_schema, to_table).await?;
    let sql = "UPDATE selkie.collections SET schema_name = ?, table_name = ?, collection = ? \
               WHERE schema_name = ? AND table_name = ?";
    let [to_schema, to_table, from_schema, from_table] =
        [to_schema, to_table, from_schema, from_table].map(|name| Param::Text(name.as_bytes()));
    let collection = Param::Text(collection.as_bytes());
    execute(connection, &sql.into(), &[to_schema, to_table, collection, from_schema, from_table]).await?;
    let sql = "UPDATE selkie.indexes SET schema_name = ?, table_name = ? WHERE schema_name = ? AND table_name = ?";
    execute(connection, &sql.into(), &[to_schema, to_table, from_schema, from_table]).await?;
    Ok(())
}

/// Records which table holds further keys of an index; `None` for none. `index`: schema, table and
/// the index's name in MariaDB.
pub(crate) async fn set_index_table(
    connection: &mut Connection,
    index: [&str; 3],
    values: Option<String>,
) -> Result<()> {
    let sql = "UPDATE selkie.indexes SET values_table = ? WHERE schema_name = ? AND table_name = ? AND sql_name = ?";
    let values = values.as_ref().map_or(Param::Null, |values| Param::Text(values.as_bytes()));
    let [schema, name, sql_name] = index.map(|text| Param::Text(text.as_bytes()));
    execute(connection, &sql.into(), &[values, schema, name, sql_name]).await.map(drop)
}

/// As [`set_index_table`], if the recorded value begins with `before`, so that changes by other
/// gateways are kept.
pub(crate) async fn update_index_table(
    connection: &mut Connection,
    index: [&str; 3],
    before: &str,
    values: &str,
) -> Result<()> {
    let sql = "UPDATE selkie.indexes SET values_table = ? \
               WHERE schema_name = ? AND table_name = ? AND sql_name = ? AND LEFT(values_table, ?) = ?";
    let [schema, name, sql_name] = index.map(|text| Param::Text(text.as_bytes()));
    let values = Param::Text(values.as_bytes());
    let (length, before) = (Param::Unsigned(before.len() as u64), Param::Text(before.as_bytes()));
    execute(connection, &sql.into(), &[values, schema, name, sql_name, length, before]).await.map(drop)
}

/// Reads the records of a database's collections; of one only, if a table is named.
pub(crate) async fn collections(
    connection: &mut Connection,
    schema: &str,
    table: Option<&str>,
) -> Result<Vec<CollectionRecord>> {
    let mut sql =
        "SELECT table_name, collection, uuid, options FROM selkie.collections WHERE schema_name = ?".to_owned();
    let mut params = vec![Param::Text(schema.as_bytes())];
    if let Some(table) = table {
        sql.push_str(" AND table_name = ?");
        params.push(Param::Text(table.as_bytes()));
    }
    let mut found = Vec::new();
    query(connection, &sql.into(), &params, |row| {
        let [Some(table), Some(collection), Some(uuid), Some(options)] = row else { return Ok(()) };
        found.push(CollectionRecord {
            table: text(table)?,
            collection: text(collection)?,
            uuid: uuid.as_slice().try_into().unwrap_or_default(),
            options: DocBuf::from_vec(options.clone()).unwrap_or_default(),
        });
        Ok(())
    })
    .await?;
    Ok(found)
}

/// Decodes text that MariaDB sent. Fails if it is not UTF-8.
pub(crate) fn text(bytes: &[u8]) -> Result<String> {
    text_of(bytes.to_vec())
}

/// As [`text`], of owned bytes.
pub(crate) fn text_of(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Failure::Lost("MariaDB sent text that is not UTF-8".into()))
}
