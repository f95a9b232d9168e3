//! The changes of a transaction, as the follower delivers them.

use bytes::Bytes;
use mariadb_wire::binlog::Gtid;
use std::fmt;
use std::sync::Arc;

/// A table, by its names on the server.
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

/// A committed transaction. `gtid` is `None` if the follower starts over and earlier changes are
/// unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    pub gtid: Option<Gtid>,
    pub changes: Vec<Change>,
}

/// A change. The variants other than `Row` include every change within them: a definition changed,
/// a statement was logged as text, or there were too many rows to deliver.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Row(Row),
    Table(Arc<TableName>),
    Database(Box<str>),
    Everything,
}

/// A changed row: `before` for updates and deletes, `after` for updates and inserts.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub table: Arc<TableName>,
    pub before: Option<Image>,
    pub after: Option<Image>,
}

/// One side of a row's change.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Values of the primary key's columns, in its order. Empty without a primary key; `None` if
    /// the log omits a part of it.
    pub key: Option<Vec<Key>>,
    pub doc: Doc,
}

/// The value of the column `doc` in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doc {
    /// The table has no such column.
    Absent,
    Null,
    /// The stored text: JSON in the encoding of crate `document`, if the table is a collection's.
    Text(Bytes),
    /// Omitted (`binlog_row_image` is not FULL) or compressed: receivers that need it must treat
    /// the whole table as changed.
    Unknown,
}

/// The value of one column of a primary key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Signed(i64),
    Unsigned(u64),
    /// In the column's character set, without the blanks that pad CHAR. The collation decides which
    /// values are equal.
    Bytes(Bytes),
    /// Another type, packed as in the log: equal values have equal bytes.
    Packed(Bytes),
}

impl Transaction {
    /// Returns a transaction that may have changed everything.
    pub fn everything() -> Transaction {
        Transaction { gtid: None, changes: vec![Change::Everything] }
    }
}

impl Change {
    /// Returns about how many bytes the change occupies.
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
