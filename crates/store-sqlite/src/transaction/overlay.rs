//! The writes of a transaction as its own statements read them: temporary tables that shadow those
//! of the file.
//!
//! `c7` is a table of the file with documents, and `i9` one with keys. Once a transaction changes
//! such a document, its connection has temporary views of these names, and SQLite prefers them.
//! The view of `c7` is the table without the documents in `g7` (gone or changed), with those in
//! `n7` (new). The view of `i9` is the table without the keys of documents in `g7`, with those in
//! `k9`. SQLite merges both parts by their indexes, except in joins: scans of an index with its
//! documents have a statement of their own.
//!
//! Of a collection that the transaction has created, `c7` and `i9` are temporary tables.

use crate::catalog::{Collection, Index, IndexSql};
use crate::failure::Attempt;
use crate::write::entries::IndexEntries;
use document::Doc;
use error::Result;
use index_keys::keys::{self, Key};
use rusqlite::Connection;
use std::sync::Arc;

/// The temporary tables of a collection.
pub struct Overlay<'c> {
    connection: &'c Connection,
    collection: &'c Collection,
    /// The transaction has created the collection.
    is_created: bool,
}

impl<'c> Overlay<'c> {
    pub fn new(connection: &'c Connection, collection: &'c Collection, is_created: bool) -> Overlay<'c> {
        Overlay { connection, collection, is_created }
    }

    /// Creates the tables and views for a collection of the file.
    pub fn shadow(&self) -> Attempt<()> {
        let id = self.collection.id;
        self.connection.execute_batch(&format!(
            "CREATE TEMP TABLE g{id}(seq INTEGER PRIMARY KEY);
             CREATE TEMP TABLE n{id}(seq INTEGER PRIMARY KEY, id BLOB NOT NULL, doc BLOB NOT NULL);
             CREATE UNIQUE INDEX temp.n{id}_id ON n{id}(id);
             CREATE TEMP VIEW c{id} AS SELECT seq, id, doc FROM main.c{id} WHERE seq NOT IN temp.g{id}
                 UNION ALL SELECT seq, id, doc FROM temp.n{id}"
        ))?;
        for index in self.indexes() {
            let index = index.id;
            self.connection.execute_batch(&format!(
                "CREATE TEMP TABLE k{index}(key BLOB NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(key, seq)) WITHOUT ROWID;
                 CREATE TEMP VIEW i{index} AS SELECT key, seq FROM main.i{index} WHERE seq NOT IN temp.g{id}
                     UNION ALL SELECT key, seq FROM temp.k{index}"
            ))?;
        }
        Ok(())
    }

    /// Creates the table of a collection that the transaction creates.
    pub fn create(&self) -> Attempt<()> {
        Ok(self.connection.execute_batch(&temporary(&self.collection.sql.create()))?)
    }

    /// Creates the table of an index on such a collection, which is empty.
    pub fn create_index(&self, index: &Index) -> Attempt<()> {
        Ok(self.connection.execute_batch(&temporary(&index.sql.create(index.spec.unique)))?)
    }

    /// Returns whether a document with this key of the `_id` exists.
    pub fn has_id(&self, id: &[u8]) -> Attempt<bool> {
        Ok(self.connection.prepare_cached(&self.collection.sql.by_id)?.exists([id])?)
    }

    /// Returns a key of a unique index that another document has.
    pub fn duplicate<'e>(&self, seq: i64, entries: &'e IndexEntries) -> Attempt<Option<(&'c Arc<Index>, &'e Key)>> {
        for (index, keys) in self.collection.indexes.iter().zip(&entries.keys) {
            if !must_be_unique(index) {
                continue;
            }
            let mut taken = self.connection.prepare_cached(&index.sql.is_taken)?;
            for key in keys {
                if taken.exists((key.as_slice(), seq))? {
                    return Ok(Some((index, key)));
                }
            }
        }
        Ok(None)
    }

    /// Stores a document in place of the one with this number, or as a new one.
    pub fn put(&self, seq: i64, document: Doc<'_>, old: Option<&IndexEntries>, new: &IndexEntries) -> Attempt<()> {
        self.remove(seq, old)?;
        let mut id = Vec::new();
        keys::id_key(document, &self.collection.collation, &mut id);
        let sql = format!("INSERT INTO {}(seq, id, doc) VALUES(?1, ?2, ?3)", self.documents());
        self.connection.prepare_cached(&sql)?.execute((seq, id.as_slice(), document.as_bytes()))?;
        for (index, keys) in self.indexed(new) {
            let sql = format!("INSERT OR IGNORE INTO {}(key, seq) VALUES(?1, ?2)", self.keys(index));
            let mut insert = self.connection.prepare_cached(&sql)?;
            for key in keys {
                insert.execute((key.as_slice(), seq))?;
            }
        }
        Ok(())
    }

    /// Removes the document with this number, if there is one. `old`: its entries.
    pub fn remove(&self, seq: i64, old: Option<&IndexEntries>) -> Attempt<()> {
        let Some(old) = old else { return Ok(()) };
        if !self.is_created {
            let sql = format!("INSERT OR IGNORE INTO temp.g{}(seq) VALUES(?1)", self.collection.id);
            self.connection.prepare_cached(&sql)?.execute([seq])?;
        }
        let sql = format!("DELETE FROM {} WHERE seq = ?1", self.documents());
        self.connection.prepare_cached(&sql)?.execute([seq])?;
        for (index, keys) in self.indexed(old) {
            let sql = format!("DELETE FROM {} WHERE key = ?1 AND seq = ?2", self.keys(index));
            let mut delete = self.connection.prepare_cached(&sql)?;
            for key in keys {
                delete.execute((key.as_slice(), seq))?;
            }
        }
        Ok(())
    }

    fn documents(&self) -> String {
        format!("temp.{}{}", if self.is_created { 'c' } else { 'n' }, self.collection.id)
    }

    fn keys(&self, index: &Index) -> String {
        format!("temp.{}{}", if self.is_created { 'i' } else { 'k' }, index.id)
    }

    fn indexes(&self) -> impl Iterator<Item = &'c Arc<Index>> {
        self.collection.indexes.iter().filter(|index| !index.building)
    }

    fn indexed<'e>(&self, entries: &'e IndexEntries) -> impl Iterator<Item = (&'c Arc<Index>, &'e Vec<Key>)> {
        self.collection.indexes.iter().zip(&entries.keys).filter(|(index, _)| !index.building)
    }
}

/// Returns whether no two documents may have the same key of the index.
pub fn must_be_unique(index: &Index) -> bool {
    (index.spec.unique || index.prepare_unique) && !index.building
}

/// Returns the collection with statements that read the shadowed tables well.
pub fn shadowed(collection: &Collection) -> Result<Collection> {
    let mut shadowed = Collection::clone(collection);
    for index in shadowed.indexes.iter_mut().filter(|index| !index.building) {
        let sql = IndexSql::shadowed(index.id, collection.id, index.spec.unique);
        *index = Arc::new(index.with_sql(sql));
    }
    Ok(shadowed)
}

fn temporary(create: &str) -> String {
    create.replace("CREATE TABLE", "CREATE TEMP TABLE").replace("CREATE UNIQUE INDEX ", "CREATE UNIQUE INDEX temp.")
}
