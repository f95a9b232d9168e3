//! What a transaction changed, as it is handed on.

use bytes::Bytes;
use mariadb_wire::binlog::Gtid;
use std::fmt;
use std::sync::Arc;

/// A table, by the names that the server has for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName {
    pub database: Box<str>,
    pub table: Box<str>,
}

impl TableName {
    pub fn new(database: &str, table: &str) -> Arc<TableName> {
        Arc::new(TableName { database: database.into(), table: table.into() })
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// What was committed together. `gtid` is `None` where the follower starts over: what came before is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    pub gtid: Option<Gtid>,
    pub changes: Vec<Change>,
}

/// The larger ones stand for everything within them: definitions changed, a statement was logged as such, or rows were too many to keep.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Row(Row),
    Table(Arc<TableName>),
    Database(Box<str>),
    Everything,
}

/// A row: `before` of updates and deletes, `after` of updates and inserts.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub table: Arc<TableName>,
    pub before: Option<Image>,
    pub after: Option<Image>,
}

/// One side of a row's change.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Values of the primary key's columns, in its order; empty without a primary key, `None` if the log leaves a part of it out.
    pub key: Option<Vec<Key>>,
    pub doc: Doc,
}

/// What the log has of the column `doc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doc {
    /// The table has no such column.
    Absent,
    Null,
    /// As stored: a collection's is JSON in the spelling of [`document::json`].
    Text(Bytes),
    /// Left out (`binlog_row_image` is not FULL) or compressed: whoever has to know takes the whole table for changed.
    Unknown,
}

/// A part of a primary key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Signed(i64),
    Unsigned(u64),
    /// In the column's character set, without the blanks that pad CHAR; which spellings are equal is the collation's to say.
    Bytes(Bytes),
    /// Another type, packed as the log has it: the same value has the same bytes, and that is all.
    Packed(Bytes),
}

impl Transaction {
    pub fn everything() -> Transaction {
        Transaction { gtid: None, changes: vec![Change::Everything] }
    }
}

impl Change {
    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let image = |image: &Option<Image>| {
            image.as_ref().map_or(0, |image| match &image.doc {
                Doc::Text(text) => text.len() + 64,
                _ => 64,
            })
        };
        match self {
            Change::Row(row) => 128 + image(&row.before) + image(&row.after),
            _ => 32,
        }
    }
}
