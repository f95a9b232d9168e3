//! The follower's second connection: questions that are asked while the stream flows on the first.

use crate::connection::Connection;
use crate::establish::establish;
use crate::event::Event;
use crate::failure::{Failure, Result};
use crate::server_url::{ServerLocation, ServerUrl};
use mariadb_wire::Param;
use mariadb_wire::row::TextRow;
use std::sync::Arc;
use std::time::Duration;

/// A row, a text for each column.
pub type TextValues = Vec<Option<String>>;

/// How long the server may look for the definitions of tables.
const SLOW_MAX: Duration = Duration::from_secs(30);

pub struct TextConnection {
    connection: Connection,
    /// No answer takes longer, or the server counts as gone.
    patience: Duration,
}

impl TextConnection {
    pub async fn connect(target: &ServerUrl, patience: Duration) -> Result<TextConnection> {
        let (mut connection, _) = establish(&ServerLocation::Server(target.clone()), patience).await?;
        // Nobody is made to wait for long by what is asked here, nor is what is asked.
        connection.queue_query("SET SESSION innodb_lock_wait_timeout = 1, SESSION lock_wait_timeout = 1");
        connection.finish().await?;
        Ok(TextConnection { connection, patience })
    }

    /// Runs a statement without parameters that takes next to no time.
    pub async fn rows(&mut self, sql: &str) -> Result<Vec<TextValues>> {
        self.rows_within(self.patience, sql).await
    }

    /// As [`TextConnection::rows`], of what may take a while.
    pub async fn slow_rows(&mut self, sql: &str) -> Result<Vec<TextValues>> {
        self.rows_within(SLOW_MAX, sql).await
    }

    async fn rows_within(&mut self, patience: Duration, sql: &str) -> Result<Vec<TextValues>> {
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
        within(patience, answer).await
    }

    /// Runs a prepared statement that gives texts, of so many columns.
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
        within(SLOW_MAX, answer).await
    }

    /// Runs a prepared statement for what it waits for.
    pub async fn run(&mut self, sql: &Arc<str>, params: &[Param<'_>]) -> Result<()> {
        self.connection.queue_execute_anew(sql, params);
        // A lock is waited for by the server for a second.
        within(self.patience + Duration::from_secs(1), self.connection.finish()).await.map(drop)
    }
}

async fn within<T>(patience: Duration, answer: impl Future<Output = Result<T>>) -> Result<T> {
    let late = || Failure::Lost(format!("MariaDB has not answered for {} ms", patience.as_millis()));
    tokio::time::timeout(patience, answer).await.unwrap_or_else(|_| Err(late()))
}
