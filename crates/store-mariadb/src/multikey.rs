//! The values within arrays: a table beside an index, with a row for each value of each array, kept by triggers.
//!
//! It is made when the first array turns up in an indexed field: triggers cost every insert 3 µs of the server's time, and most
//! fields never have one. Until then (and where the server does not let us create triggers) an array is a key that every lookup reads.
//! It is about an index's first field. Unique indexes have none, and only paths of one or two names do.

use crate::connection::{Connection, Event};
use crate::failure::Result;
use crate::index::{Index, json_path};
use crate::key;
use crate::names::quote;
use crate::own_schema;
use crate::store::MariaDbStore;
use crate::table::{RowKey, Table};
use document::{Doc, Value};
use mariadb_wire::Param;

/// Begins the names of these tables.
const PREFIX: &str = "~values~";

/// Names of a path that elements can be told from.
const NAMES_MAX: usize = 2;

/// How long to wait for somebody who makes the same table.
const WAIT_SECONDS: u64 = 600;

/// How long to wait for transactions that have the collection's table in use.
const TABLE_WAIT_SECONDS: u64 = 3;

/// Whether the values of arrays in this index can have a table.
fn is_suitable(index: &Index, table: &Table) -> bool {
    let can_have = index.has_keys() && !index.spec.unique && table.row_key == RowKey::Sequence;
    index.fields().next().filter(|_| can_have).is_some_and(|path| {
        path.split('.').count() <= NAMES_MAX
            && !path.split('.').any(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Makes the tables that these documents, which are about to be written, call for. That it cannot be done is no failure.
pub(crate) async fn prepare<'d>(
    store: &MariaDbStore,
    connection: &mut Connection,
    table: &Table,
    documents: impl Iterator<Item = Doc<'d>> + Clone,
) -> Result<()> {
    for index in table.indexes.iter().filter(|index| index.values.is_none() && is_suitable(index, table)) {
        let refused = || store.no_triggers.borrow().contains(&table.quoted);
        let path = index.fields().next().unwrap_or_default();
        if documents.clone().any(|document| has_array(document, path)) && !refused() {
            create(store, connection, table, index).await?;
        }
    }
    Ok(())
}

/// Makes the tables that the documents of a new index call for.
pub(crate) async fn prepare_new(
    store: &MariaDbStore,
    connection: &mut Connection,
    table: &Table,
    indexes: &[Index],
) -> Result<()> {
    for index in indexes.iter().filter(|index| is_suitable(index, table)) {
        let (key, column) = (quote(&index.sql_name), quote(&index.column(0)));
        let array = key::ARRAY;
        let sql =
            format!("SELECT EXISTS (SELECT 1 FROM {} FORCE INDEX ({key}) WHERE {column} = {array})", table.quoted);
        connection.queue_execute(&sql.into(), &[]);
        if one_number(connection).await? == 1 {
            create(store, connection, table, index).await?;
        }
    }
    Ok(())
}

fn has_array(document: Doc<'_>, path: &str) -> bool {
    let mut value = Value::Document(document);
    for name in path.split('.') {
        value = match value {
            Value::Document(document) => document.get(name).unwrap_or(Value::Null),
            other => other,
        };
    }
    matches!(value, Value::Array(_))
}

/// Makes an index's table, unless somebody else has meanwhile.
async fn create(store: &MariaDbStore, connection: &mut Connection, table: &Table, index: &Index) -> Result<()> {
    let lock = format!("selkie {:.50}", format!("{}{}", index.sql_name, table.quoted));
    let lock = [Param::Text(lock.as_bytes())];
    connection.queue_execute(&format!("SELECT COALESCE(GET_LOCK(?, {WAIT_SECONDS}), 0)").into(), &lock);
    if one_number(connection).await? == 0 {
        return Ok(());
    }
    // Whoever waits for a table in use has all others wait behind it.
    connection.queue_query(&format!("SET lock_wait_timeout = {TABLE_WAIT_SECONDS}"));
    connection.finish().await?;
    let outcome = create_locked(connection, table, index).await;
    connection.queue_query("SET lock_wait_timeout = DEFAULT");
    connection.queue_execute(&"DO RELEASE_LOCK(?)".into(), &lock);
    connection.finish().await?;
    connection.finish().await?;
    store.catalog.note_change();
    match outcome {
        Err(failure) if !failure.is_lost() => {
            tracing::warn!(
                "arrays in index '{}' of {} are read by every lookup: {failure}",
                index.spec.name,
                table.quoted
            );
            store.no_triggers.borrow_mut().insert(table.quoted.clone());
            Ok(())
        }
        outcome => outcome,
    }
}

async fn create_locked(connection: &mut Connection, table: &Table, index: &Index) -> Result<()> {
    let id = [&table.schema, &table.name, &index.sql_name].map(|text| Param::Text(text.as_bytes()));
    let sql = "SELECT values_table FROM selkie.indexes WHERE schema_name = ? AND table_name = ? AND sql_name = ?";
    let mut known = false;
    own_schema::query(connection, &sql.into(), &id, |row| {
        known |= matches!(row, [Some(_)]);
        Ok(())
    })
    .await?;
    if known {
        return Ok(());
    }
    let name = format!("{PREFIX}{:016x}", rand::random::<u64>());
    let values = format!("{}.{}", quote(&table.schema), quote(&name));
    let made = async {
        for sql in definitions(table, index, &values, &name) {
            connection.queue_query(&sql);
            connection.finish().await?;
        }
        let sql =
            "UPDATE selkie.indexes SET values_table = ? WHERE schema_name = ? AND table_name = ? AND sql_name = ?";
        let [schema, table, sql_name] = id;
        own_schema::execute(connection, &sql.into(), &[Param::Text(name.as_bytes()), schema, table, sql_name]).await
    };
    match made.await {
        Ok(_) => Ok(()),
        Err(failure) => {
            if !failure.is_lost() {
                drop_table(connection, &table.schema, &name).await?;
            }
            Err(failure)
        }
    }
}

/// The statements that make the table, the triggers that keep it, and its rows: in this order, so that no write is missed.
fn definitions(table: &Table, index: &Index, values: &str, name: &str) -> Vec<String> {
    let (main, array) = (&table.quoted, key::ARRAY);
    let column = quote(&index.column(0));
    let trigger = |event: &str| format!("{}.{}", quote(&table.schema), quote(&format!("{name}.{event}")));
    let insert = |row: &str| {
        let elements = elements(index, row);
        format!("INSERT IGNORE INTO {values} SELECT {}, {row}.seq FROM {elements} AS e", element_key(index))
    };
    let delete = format!("DELETE FROM {values} WHERE seq = OLD.seq");
    vec![
        format!(
            "CREATE TABLE {values} (value_key VARBINARY({}) NOT NULL, seq BIGINT UNSIGNED NOT NULL, \
             PRIMARY KEY (value_key, seq), KEY (seq)) ENGINE = InnoDB",
            index.bytes() + 1
        ),
        format!(
            "CREATE TRIGGER {} AFTER INSERT ON {main} FOR EACH ROW IF NEW.{column} = {array} THEN {}; END IF",
            trigger("insert"),
            insert("NEW")
        ),
        format!(
            "CREATE TRIGGER {} AFTER UPDATE ON {main} FOR EACH ROW BEGIN \
             IF OLD.{column} = {array} THEN {delete}; END IF; IF NEW.{column} = {array} THEN {}; END IF; END",
            trigger("update"),
            insert("NEW")
        ),
        format!(
            "CREATE TRIGGER {} AFTER DELETE ON {main} FOR EACH ROW IF OLD.{column} = {array} THEN {delete}; END IF",
            trigger("delete")
        ),
        format!(
            "INSERT IGNORE INTO {values} SELECT {}, t.seq FROM {main} AS t JOIN {} AS e WHERE t.{column} = {array} LOCK IN SHARE MODE",
            element_key(index),
            elements(index, "t")
        ),
    ]
}

/// The elements of a row's array: of one in the field, or of one that the path meets on its way.
fn elements(index: &Index, row: &str) -> String {
    let text = format!("{row}.{}", quote(&index.text_column(0)));
    let path = index.fields().next().unwrap_or_default();
    let Some((first, second)) = path.split_once('.') else {
        return format!("JSON_TABLE({text}, '$[*]' COLUMNS (v JSON PATH '$'))");
    };
    let (first, second) = (json_path(std::iter::once(first)), json_path(std::iter::once(second)));
    // A bracket alone stands for an array on the way. Its elements are put in the form that those of the other have.
    format!(
        "JSON_TABLE(IF({text} = '[', COALESCE(JSON_EXTRACT({row}.doc, '{}[*]{}'), '[null]') COLLATE utf8mb4_nopad_bin, {text}), '$[*]' COLUMNS (v JSON PATH '$'))",
        first,
        second.trim_start_matches('$'),
    )
}

fn element_key(index: &Index) -> String {
    let decimal = key::decimal_expression("e.v");
    let source = key::Source { text: "e.v", decimal: Some(&decimal), bytes: index.bytes(), unique: false };
    format!("IF(e.v IS NULL, '2', {})", source.expression())
}

/// Drops an index's table and its triggers.
pub(crate) async fn drop_table(connection: &mut Connection, schema: &str, name: &str) -> Result<()> {
    for event in ["insert", "update", "delete"] {
        let trigger = quote(&format!("{name}.{event}"));
        connection.queue_query(&format!("DROP TRIGGER IF EXISTS {}.{trigger}", quote(schema)));
        connection.finish().await?;
    }
    connection.queue_query(&format!("DROP TABLE IF EXISTS {}.{}", quote(schema), quote(name)));
    connection.finish().await.map(drop)
}

/// Drops the tables of these indexes; lookups do without them.
pub(crate) async fn drop_all(connection: &mut Connection, table: &Table, indexes: &[Index]) -> Result<()> {
    for index in indexes {
        let Some(name) = &index.values else { continue };
        let sql =
            "UPDATE selkie.indexes SET values_table = NULL WHERE schema_name = ? AND table_name = ? AND sql_name = ?";
        let id = [&table.schema, &table.name, &index.sql_name].map(|text| Param::Text(text.as_bytes()));
        own_schema::execute(connection, &sql.into(), &id).await?;
        drop_table(connection, &table.schema, name).await?;
    }
    Ok(())
}

async fn one_number(connection: &mut Connection) -> Result<u64> {
    let mut number = 0;
    while let Event::Row(range) = connection.next().await? {
        number = connection.row(range)?.next_u64()?;
    }
    Ok(number)
}
