//! Building an index on a collection that is in use.
//!
//! From the beginning writers keep the index up as they do all others, but nobody reads by it. Meanwhile the documents there are get
//! entered: some thousands are read, their keys sorted, and put in, with breaths in between in which others write. What they
//! change of the documents in hand is left out and entered anew from what it is then. The last transaction makes the index one
//! that there is.
//!
//! Until then the table stands among those to be cleaned away: after a crash there has never been an index.

use super::Writer;
use super::documents::duplicate;
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
use store::{Flow, Namespace};

/// Keys that are sorted in memory before they go into the index, in bytes.
const BYTES_MAX: usize = 4 << 20;

/// Keys put in between two looks at the clock.
const KEYS_PER_LOOK: usize = 64;

/// Collections up to this size are entered without letting others in.
const SMALL_DOCUMENTS: u64 = 5_000;
const SMALL_BYTES: u64 = 16 << 20;

/// Whether others are let in while an index of a collection is built.
pub fn is_large(collection: &Collection) -> bool {
    collection.documents() > SMALL_DOCUMENTS || collection.data_bytes() > SMALL_BYTES
}

/// How often the log says how far a build is.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// A build under way.
pub struct Build {
    collection: i64,
    pub namespace: Namespace,
    /// Documents that were changed or deleted since the keys in hand were read.
    touched: AHashSet<i64>,
}

impl Writer {
    /// Notes that a document changes, for a build that may have read it.
    pub(super) fn note_touched(&mut self, collection: &Collection, seq: i64) {
        if let Some(build) = self.build_of(collection) {
            build.touched.insert(seq);
        }
    }

    /// The build of an index of this collection. A small one may be made in the middle of another
    /// collection's.
    fn build_of(&mut self, collection: &Collection) -> Option<&mut Build> {
        self.build.as_mut().filter(|build| build.collection == collection.id)
    }

    /// Enters all documents into a new index, of which there is a table and nothing else yet, and lets others in meanwhile.
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

    /// Takes back indexes that others may have seen. Leaves a transaction open, as it found one.
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

    /// Enters all documents.
    pub(super) fn index_documents(&mut self, collection: &Arc<Collection>, index: &Arc<Index>) -> Attempt<()> {
        let plan = planner::everything(collection);
        let mut cursor = Cursor::default();
        let (mut seen, mut told) = (0, Instant::now());
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
            if told.elapsed() >= LOG_INTERVAL {
                told = Instant::now();
                let (name, namespace) = (&index.spec.name, &collection.namespace);
                tracing::info!(index = %name, %namespace, documents = seen, percent = self.progress.percent(), "index build goes on");
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

    /// Enters what was changed while the keys in hand were on their way, as it is now.
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

    /// Enters a key, which may be there already: a write has brought it. Error 11000 when it is another document's.
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
