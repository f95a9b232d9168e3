//! Readers of each method, and the rows that they read.

use super::read_method::{ReadMethod, Reader};
use anyhow::{Context, Result, bail};
use document::{DocBuf, Value, doc};
use harness::connection::Connection;
use harness::message::{MARKER, Message, check_ok, cursor_batch};
use harness::sql_connection::{SqlConnection, SqlTarget};
use harness::target::Target;
use mariadb_wire::Param;
use std::path::Path;

/// The name of the method within this process that others are compared with.
pub const EMBEDDED: &str = "MariaDB, embedded, prepared";

/// The engines of MariaDB's tables, which are named after them.
pub const MARIADB_ENGINES: [&str; 3] = ["InnoDB", "MEMORY", "Aria"];

/// The database of the rows, in every server.
const DATABASE: &str = "kv";
const COLLECTION: &str = "kv";

/// The end of each value.
const PADDING: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// Rows per insert command of the MongoDB protocol.
const BATCH: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    Text,
    Prepared,
}

/// Returns 100 bytes, of which the first eight are the key.
fn value(key: u64) -> String {
    format!("{key:08}{PADDING}")
}

/// Fails unless this row ends with the key's value.
fn check(row: &[u8], key: u64) -> Result<()> {
    let text = row.len().checked_sub(8 + PADDING.len()).and_then(|start| row.get(start..start + 8));
    let is_right = text.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()) == Some(key);
    if !is_right || !row.ends_with(PADDING.as_bytes()) {
        bail!("the row of {key} differs from the one that was written");
    }
    Ok(())
}

fn select(engine: &str, key: &str) -> String {
    format!("SELECT v FROM {DATABASE}.{engine} WHERE k = {key}")
}

/// Returns the statements that create and fill the tables.
fn definitions(rows: u64) -> Vec<String> {
    let table_size = "SET SESSION max_heap_table_size = 1073741824".to_owned();
    let mut statements = vec![format!("CREATE DATABASE {DATABASE}"), table_size];
    for engine in MARIADB_ENGINES {
        statements.push(format!(
            "CREATE TABLE {DATABASE}.{engine} (k BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100) NOT NULL) ENGINE = {engine} CHARSET = latin1"
        ));
        statements.push(format!(
            "INSERT INTO {DATABASE}.{engine} SELECT seq, CONCAT(LPAD(seq, 8, '0'), '{PADDING}') FROM {DATABASE}.seq_0_to_{}",
            rows - 1
        ));
    }
    statements
}

/// Creates and fills the tables in a server.
pub fn fill_server(url: &str, rows: u64) -> Result<()> {
    let mut connection = SqlConnection::open(&SqlTarget::parse(url)?)?;
    definitions(rows).iter().try_for_each(|statement| connection.query(statement).with_context(|| statement.clone()))
}

// --- MariaDB by its protocol

pub fn sql(name: &str, url: &str, compressed: bool, engine: &str, statement: Statement) -> Result<ReadMethod> {
    let (target, engine) = (SqlTarget::parse(url)?, engine.to_owned());
    let open = move || -> Result<Box<dyn Reader>> {
        let connection = SqlConnection::open_with(&target, compressed)?;
        Ok(Box::new(SqlReader { connection, prepared: select(&engine, "?"), engine: engine.clone(), statement }))
    };
    ReadMethod::new(name, Box::new(open))
}

struct SqlReader {
    connection: SqlConnection,
    prepared: String,
    engine: String,
    statement: Statement,
}

impl Reader for SqlReader {
    fn read(&mut self, key: u64) -> Result<()> {
        let mut checked = Err(anyhow::anyhow!("no row has the key {key}"));
        let take = |row: &[u8]| checked = check(row, key);
        match self.statement {
            Statement::Prepared => self.connection.rows(&self.prepared, &[Param::Unsigned(key)], take)?,
            Statement::Text => self.connection.text_rows(&select(&self.engine, &key.to_string()), take)?,
        }
        checked
    }
}

// --- MariaDB in this process

/// Creates the same tables in this process, and a method to read each of them.
#[cfg(feature = "embedded-mariadb")]
pub fn embedded(database: &std::sync::Arc<mariadb_embedded::Database>, rows: u64) -> Result<Vec<ReadMethod>> {
    let filling = std::thread::scope(|scope| scope.spawn(|| fill_embedded(database, rows)).join());
    filling.ok().context("creating tables panicked")??;
    let method = |name: &str, engine: &'static str, statement| {
        let database = database.clone();
        let open = move || -> Result<Box<dyn Reader>> {
            let mut session = database.connect().map_err(|refused| anyhow::Error::msg(refused.message))?;
            let prepared =
                session.prepare(&select(engine, "?")).map_err(|refused| anyhow::Error::msg(refused.message))?;
            Ok(Box::new(Embedded { session, prepared, engine, statement, rows: mariadb_embedded::Rows::default() }))
        };
        ReadMethod::new(name, Box::new(open))
    };
    let [innodb, others @ ..] = MARIADB_ENGINES;
    let mut methods = vec![
        method(EMBEDDED, innodb, Statement::Prepared)?,
        method("MariaDB, embedded, text", innodb, Statement::Text)?,
    ];
    for engine in others {
        methods.push(method(&format!("{EMBEDDED}, {engine}"), engine, Statement::Prepared)?);
    }
    Ok(methods)
}

#[cfg(feature = "embedded-mariadb")]
fn fill_embedded(database: &std::sync::Arc<mariadb_embedded::Database>, rows: u64) -> Result<()> {
    let refused = |refused: mariadb_embedded::Refused| anyhow::Error::msg(refused.message);
    let mut session = database.connect().map_err(refused)?;
    let mut none = mariadb_embedded::Rows::default();
    definitions(rows).iter().try_for_each(|statement| {
        session.query(statement, &mut none).map(drop).map_err(refused).with_context(|| statement.clone())
    })
}

#[cfg(feature = "embedded-mariadb")]
struct Embedded {
    session: mariadb_embedded::Session,
    prepared: mariadb_embedded::StatementId,
    engine: &'static str,
    statement: Statement,
    rows: mariadb_embedded::Rows,
}

#[cfg(feature = "embedded-mariadb")]
impl Reader for Embedded {
    fn read(&mut self, key: u64) -> Result<()> {
        let outcome = match self.statement {
            Statement::Prepared => self.session.execute(self.prepared, &[Param::Unsigned(key)], &mut self.rows),
            Statement::Text => self.session.query(&select(self.engine, &key.to_string()), &mut self.rows),
        };
        outcome.map_err(|refused| anyhow::Error::msg(refused.message))?;
        check(self.rows.range(0).and_then(|range| self.rows.payloads.get(range)).unwrap_or_default(), key)
    }
}

// --- SQLite in this process

pub fn sqlite(folder: &Path, rows: u64) -> Result<ReadMethod> {
    let path = folder.join("kv.sqlite");
    let mut connection = rusqlite::Connection::open(&path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.execute("CREATE TABLE kv (k INTEGER PRIMARY KEY, v TEXT NOT NULL)", [])?;
    let transaction = connection.transaction()?;
    for key in 0..rows {
        transaction.prepare_cached("INSERT INTO kv VALUES (?, ?)")?.execute((key as i64, value(key)))?;
    }
    transaction.commit()?;
    let open = move || -> Result<Box<dyn Reader>> {
        let connection = rusqlite::Connection::open(&path)?;
        // All rows in memory, as with the other methods.
        connection.pragma_update(None, "cache_size", -262_144)?;
        Ok(Box::new(Sqlite(connection)))
    };
    ReadMethod::new("SQLite in the process, prepared", Box::new(open))
}

struct Sqlite(rusqlite::Connection);

impl Reader for Sqlite {
    fn read(&mut self, key: u64) -> Result<()> {
        let mut statement = self.0.prepare_cached("SELECT v FROM kv WHERE k = ?")?;
        statement.query_row([key as i64], |row| Ok(check(row.get_ref(0)?.as_bytes()?, key)))?
    }
}

// --- the MongoDB protocol

pub fn mongo(target: &Target, rows: u64) -> Result<ReadMethod> {
    let mut connection = Connection::open_with_handshake(&target.address)?;
    for first in (0..rows).step_by(BATCH as usize) {
        let documents: Vec<DocBuf> =
            (first..rows.min(first + BATCH)).map(|key| doc! { "_id": key as i32, "v": value(key).as_str() }).collect();
        let all = documents.iter().map(DocBuf::as_doc);
        let message = Message::with_sequence_on(DATABASE, doc! { "insert": COLLECTION }, "documents", all);
        check_ok(connection.round_trip(&message)?)?;
    }
    let address = target.address.clone();
    let open = move || -> Result<Box<dyn Reader>> {
        let connection = Connection::open_with_handshake(&address)?;
        let by_id = doc! { "_id": MARKER };
        let find = doc! { "find": COLLECTION, "filter": &by_id, "limit": 1i32, "singleBatch": true };
        Ok(Box::new(Mongo { connection, find: Message::command_on(DATABASE, find) }))
    };
    let method = ReadMethod::new(&target.name, Box::new(open))?.with_backends(target.backend_pids.clone());
    Ok(match target.server_pid {
        Some(pid) => method.with_server(pid),
        None => method,
    })
}

struct Mongo {
    connection: Connection,
    find: Message,
}

impl Reader for Mongo {
    fn read(&mut self, key: u64) -> Result<()> {
        self.find.patch(key as i32);
        let (_, batch) = cursor_batch(check_ok(self.connection.round_trip(&self.find)?)?)?;
        let document = batch.values().next().and_then(Value::as_document).context("no such document")?;
        match document.get("v") {
            Some(Value::String(text)) => check(text.as_bytes(), key),
            other => bail!("the document of {key} has {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_checked_by_its_key() {
        let row = [b"\0\0\x64", value(4711).as_bytes()].concat();
        check(&row, 4711).unwrap();
        assert!(check(&row, 4712).is_err());
        assert!(check(b"", 0).is_err());
        assert!(check(&row[..row.len() - 1], 4711).is_err());
        assert_eq!(value(4711).len(), 100);
    }
}
