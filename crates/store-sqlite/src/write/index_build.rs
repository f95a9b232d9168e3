//! Building an index on a collection that is in use.
//!
//! From the start, writers maintain the index like all others, but no reader uses it. Meanwhile the
//! existing documents are indexed: some thousands are read, their keys sorted and inserted, and in
//! between the build yields to other writes. Documents that these change are left out of the
//! current chunk and indexed again in their new state. The last transaction adds the index to the
//! catalog.
//!
//! Until then the table is among those to be dropped: after a crash, the index has never existed.

use super::documents::duplicate;
use super::state::Writer;
use super::tasks::Build;
use crate::catalog::{Collection, Index};
use crate::failure::{Attempt, Failure, is_duplicate};
use crate::planner;
use crate::read::scan::{self, Cursor, SliceEnd};
use ahash::AHashSet;
use document::{Doc, DocBuf};
use error::Error;
use index_keys::keys::{self, Key};
use rusqlite::OptionalExtension;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Flow;

/// Bytes of keys that are sorted in memory before they are inserted.
const BYTES_MAX: usize = 4 << 20;

/// Keys inserted between two checks of the clock.
const KEYS_PER_LOOK: usize = 64;

/// Collections up to this size are indexed without yielding.
const SMALL_DOCUMENTS: u64 = 5_000;
const SMALL_BYTES: u64 = 16 << 20;

/// Returns whether a build on the collection yields to other jobs.
pub fn is_large(collection: &Collection) -> bool {
    collection.documents() > SMALL_DOCUMENTS || collection.data_bytes() > SMALL_BYTES
}

/// The progress of a build is logged this often.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

impl Writer {
    /// Records that a document changes, for a build that may have read it.
    pub(super) fn note_touched(&mut self, collection: &Collection, seq: i64) {
        if let Some(build) = self.build_of(collection) {
            build.touched.insert(seq);
        }
    }

    /// Returns the running build on this collection. A small index may be built in the middle of
    /// another collection's build.
    fn build_of(&mut self, collection: &Collection) -> Option<&mut Build> {
        self.build.as_mut().filter(|build| build.collection == collection.id)
    }

    /// Indexes all documents of a large collection into a new, empty table, yielding to other jobs.
    pub(super) fn fill_large_index(&mut self, collection: &Arc<Collection>, index: &Arc<Index>) -> Attempt<()> {
        let begun = Instant::now();
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO dropped(name) VALUES(?1)")?
            .execute([&index.sql.table])?;
        let mut with_index = Collection::clone(collection);
        with_index.indexes.push(index.clone());
        self.put(with_index);
        let namespace = collection.namespace.clone();
        self.build = Some(Build { collection: collection.id, namespace, touched: AHashSet::new() });
        self.last_yield = Some(begun);
        let (name, namespace, documents) = (&index.spec.name, &collection.namespace, collection.documents());
        tracing::info!(index = %name, %namespace, documents, "index build begins");
        let entered = self.index_documents(collection, index);
        (self.last_yield, self.build) = (None, None);
        entered?;
        self.connection.prepare_cached("DELETE FROM dropped WHERE name = ?1")?.execute([&index.sql.table])?;
        tracing::info!(index = %name, %namespace, milliseconds = begun.elapsed().as_millis() as u64, "index built");
        Ok(())
    }

    /// Drops indexes that other sessions may have seen. A transaction is open before and after.
    pub(super) fn abandon(&mut self, collection: &Arc<Collection>, indexes: &[Arc<Index>]) -> Attempt<()> {
        self.roll_back();
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.put(Collection::clone(collection));
        for index in indexes {
            self.connection.prepare_cached("DELETE FROM indexes WHERE id = ?1")?.execute([index.id])?;
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO dropped(name) VALUES(?1)")?
                .execute([&index.sql.table])?;
            self.effects.tables.push(index.sql.table.clone());
        }
        self.commit()?;
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(())
    }

    /// Indexes all documents.
    pub(super) fn index_documents(&mut self, collection: &Arc<Collection>, index: &Arc<Index>) -> Attempt<()> {
        let plan = planner::everything(collection);
        let mut cursor = Cursor::default();
        let (mut seen, mut logged) = (0, Instant::now());
        self.progress.begin(collection.documents());
        loop {
            let mut chunk: Vec<(Key, i64)> = Vec::new();
            let (mut bytes, mut arrays) = (0, 0);
            let end = loop {
                let deadline = self.yield_deadline();
                let end =
                    scan::slice(&self.connection, &plan, &mut cursor, deadline, &mut |seq, document: Doc<'_>| {
                        seen += 1;
                        for key in keys::index_keys_with_features(document, index, &mut arrays)? {
                            bytes += key.len() + size_of::<(Key, i64)>();
                            chunk.push((key, seq));
                        }
                        Ok(if bytes > BYTES_MAX { Flow::StopAfter } else { Flow::Continue })
                    })?;
                self.progress.set(seen);
                self.progress.check()?;
                if end != SliceEnd::Paused {
                    break end;
                }
                self.yield_to_others()?;
            };
            self.set_multikey(index, arrays)?;
            chunk.sort_unstable();
            self.insert_keys(collection, index, &chunk)?;
            self.reindex_touched(collection, index)?;
            if logged.elapsed() >= LOG_INTERVAL {
                logged = Instant::now();
                let (name, namespace) = (&index.spec.name, &collection.namespace);
                tracing::info!(index = %name, %namespace, documents = seen, percent = self.progress.percent(), "index build continues");
            }
            if end == SliceEnd::Exhausted {
                return Ok(());
            }
        }
    }

    fn insert_keys(&mut self, collection: &Collection, index: &Arc<Index>, chunk: &[(Key, i64)]) -> Attempt<()> {
        for some in chunk.chunks(KEYS_PER_LOOK) {
            self.progress.check()?;
            for (key, seq) in some {
                if !self.build_of(collection).is_some_and(|build| build.touched.contains(seq)) {
                    self.insert_key(collection, index, key, *seq)?;
                }
            }
            self.yield_to_others()?;
        }
        Ok(())
    }

    /// Indexes the documents that were changed since the current chunk was read.
    fn reindex_touched(&mut self, collection: &Collection, index: &Arc<Index>) -> Attempt<()> {
        let Some(build) = self.build_of(collection) else { return Ok(()) };
        for seq in std::mem::take(&mut build.touched) {
            let mut statement = self.connection.prepare_cached(&collection.sql.by_seq)?;
            let bytes: Option<Vec<u8>> = statement.query_row([seq], |row| row.get(0)).optional()?;
            drop(statement);
            let Some(document) = bytes.and_then(DocBuf::from_vec) else { continue };
            for key in keys::index_keys(document.as_doc(), index)? {
                self.insert_key(collection, index, &key, seq)?;
            }
        }
        Ok(())
    }

    /// Inserts a key that a write may have inserted already. Fails with 11000 if it is another
    /// document's.
    fn insert_key(&self, collection: &Collection, index: &Arc<Index>, key: &Key, seq: i64) -> Attempt<()> {
        let insert = self.connection.prepare_cached(&index.sql.insert)?.execute((key.as_slice(), seq));
        match insert {
            Ok(_) => Ok(()),
            Err(error) if is_duplicate(&error) => {
                let mut taken = self.connection.prepare_cached(&index.sql.is_taken)?;
                match index.spec.unique && taken.exists((key.as_slice(), seq))? {
                    true => Err(self.taken(collection, index, key, seq)?.into()),
                    false => Ok(()),
                }
            }
            Err(error) => Err(Failure::from(error)),
        }
    }

    fn taken(&self, collection: &Collection, index: &Index, key: &Key, seq: i64) -> Attempt<Error> {
        let mut statement = self.connection.prepare_cached(&collection.sql.by_seq)?;
        let bytes: Vec<u8> = statement.query_row([seq], |row| row.get(0))?;
        let document = DocBuf::from_vec(bytes).unwrap_or_default();
        Ok(duplicate(collection, index, document.as_doc(), key))
    }
}
