//! A connection for occasional queries whose columns are read as text.

use crate::connection::Connection;
use crate::establish::establish;
use crate::event::Event;
use crate::failure::{Failure, Result};
use crate::server_url::{ServerLocation, ServerUrl};
use mariadb_wire::Param;
use mariadb_wire::row::TextRow;
use std::sync::Arc;
use std::time::Duration;

/// A row: the text of each column.
pub type TextValues = Vec<Option<String>>;

/// A row whose columns are found by their names: those of SHOW differ between versions of MariaDB.
pub struct NamedRow {
    names: Arc<[String]>,
    values: TextValues,
}

impl NamedRow {
    /// Returns the text of a column; `None` if it is NULL or does not exist.
    pub fn get(&self, name: &str) -> Option<&str> {
        let column = self.names.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        self.values.get(column)?.as_deref()
    }
}

/// How long the server may take for queries about the definitions of tables.
const SLOW_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection that decodes rows as text, with a bound on the time of each answer.
pub struct TextConnection {
    connection: Connection,
    /// The connection counts as lost if an answer takes longer.
    timeout: Duration,
}

impl TextConnection {
    pub async fn connect(target: &ServerUrl, timeout: Duration) -> Result<TextConnection> {
        let (mut connection, _) = establish(&ServerLocation::Server(target.clone()), timeout).await?;
        // Neither these queries nor the sessions they may block wait for long.
        connection.queue_query("SET SESSION innodb_lock_wait_timeout = 1, SESSION lock_wait_timeout = 1");
        connection.finish().await?;
        Ok(TextConnection { connection, timeout })
    }

    /// Executes a fast statement without parameters; returns its rows.
    pub async fn rows(&mut self, sql: &str) -> Result<Vec<TextValues>> {
        self.rows_within(self.timeout, sql).await
    }

    /// As [`TextConnection::rows`], for a statement that may take a while.
    pub async fn slow_rows(&mut self, sql: &str) -> Result<Vec<TextValues>> {
        self.rows_within(SLOW_TIMEOUT, sql).await
    }

    /// As [`TextConnection::rows`], with the names of the columns.
    pub async fn named_rows(&mut self, sql: &str) -> Result<Vec<NamedRow>> {
        self.connection.keep_names();
        let rows = self.rows(sql).await?;
        let names: Arc<[String]> = self.connection.row_names().into();
        Ok(rows.into_iter().map(|values| NamedRow { names: names.clone(), values }).collect())
    }

    async fn rows_within(&mut self, timeout: Duration, sql: &str) -> Result<Vec<TextValues>> {
        self.connection.queue_query(sql);
        let connection = &mut self.connection;
        let answer = async {
            let mut rows = Vec::new();
            while let Event::Row(range) = connection.next().await? {
                let (payload, types) = connection.raw_row(range);
                let mut row = TextRow::new(payload);
                let mut texts = TextValues::with_capacity(types.len());
                for _ in 0..types.len() {
                    texts.push(row.next_bytes()?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
                }
                rows.push(texts);
            }
            Ok(rows)
        };
        within(timeout, answer).await
    }

    /// Executes a prepared statement; returns the first columns of its rows.
    pub async fn look_up(&mut self, sql: &Arc<str>, params: &[Param<'_>], columns: usize) -> Result<Vec<TextValues>> {
        self.connection.queue_execute(sql, params);
        let connection = &mut self.connection;
        let answer = async {
            let mut rows = Vec::new();
            while let Event::Row(range) = connection.next().await? {
                let mut row = connection.row(range)?;
                let mut texts = TextValues::with_capacity(columns);
                for _ in 0..columns {
                    texts.push(row.next_bytes()?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
                }
                rows.push(texts);
            }
            Ok(rows)
        };
        within(SLOW_TIMEOUT, answer).await
    }

    /// Executes a prepared statement and drops its rows; the caller needs that it has waited.
    pub async fn run(&mut self, sql: &Arc<str>, params: &[Param<'_>]) -> Result<()> {
        self.connection.queue_execute_reprepared(sql, params);
        // The server waits up to a second for a lock.
        within(self.timeout + Duration::from_secs(1), self.connection.finish()).await.map(drop)
    }
}

async fn within<T>(timeout: Duration, answer: impl Future<Output = Result<T>>) -> Result<T> {
    let overdue = || Failure::Lost(format!("MariaDB did not answer within {} ms", timeout.as_millis()));
    tokio::time::timeout(timeout, answer).await.unwrap_or_else(|_| Err(overdue()))
}
