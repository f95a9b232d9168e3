//! The collections and indexes: an immutable snapshot that all workers share, replaced as a whole
//! by the writer.
//!
//! Each collection has the SQL texts of its statements, so that the hot path builds no strings.

mod load;
pub mod multikey;
pub mod view_names;

use crate::catalog::multikey::Multikey;
use crate::failure::ADVICE;
use document::{Collation, DocBuf, Value};
use error::{Error, Result};
use hashbrown::HashMap;
pub use index_keys::shape::index_spec;
use index_keys::{IndexField, IndexShape};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use store::{BorrowedNamespace, Cap, FieldKind, IndexSpec, Namespace, PlanSummary, Rules, Validator};
use tokio::sync::watch;

#[derive(Clone, Debug, Default)]
pub struct Catalog {
    collections: HashMap<Namespace, Arc<Collection>, ahash::RandomState>,
    /// Collections whose catalog entries are damaged.
    unreadable: Vec<Namespace>,
    /// The names of some collections are lost to damage.
    names_unknown: bool,
}

#[derive(Clone, Debug)]
pub struct Collection {
    pub id: i64,
    pub namespace: Namespace,
    pub uuid: [u8; 16],
    pub options: DocBuf,
    /// The rules that the options impose on writes; most collections have none.
    pub rules: Option<Arc<Rules>>,
    /// The default collation of its indexes and queries, and that of the keys of `_id`.
    pub collation: Collation,
    /// The field of the table's own index.
    pub id_field: IndexField,
    /// The secondary indexes in the order of their creation; `_id_` is the table's own index.
    pub indexes: Vec<Arc<Index>>,
    pub counters: Arc<Counters>,
    pub sql: Arc<CollectionSql>,
}

/// Statistics that change with every write. The writer updates them after a commit.
#[derive(Debug, Default)]
pub struct Counters {
    pub documents: AtomicI64,
    pub data_bytes: AtomicI64,
    /// Damage prevents counting the documents.
    pub uncounted: AtomicBool,
    /// Set once the collection is dropped; cursors may still refer to it.
    pub dropped: AtomicBool,
    /// Incremented when documents have been added to a capped collection, to wake those that wait
    /// for them.
    pub additions: watch::Sender<u64>,
}

#[derive(Debug)]
pub struct Index {
    pub id: i64,
    pub shape: IndexShape,
    /// Must not be used to find documents.
    pub hidden: bool,
    /// Maintained by writers, but does not have all documents yet.
    pub building: bool,
    /// No new duplicate key is allowed, though some may exist already (`prepareUnique`).
    pub prepare_unique: bool,
    /// The paths where documents have, or had, arrays: set before the writer commits them, never
    /// unset. Shared with the index's state before a change of its options.
    pub multikey: Arc<Multikey>,
    /// Documents are committed whose entries are deferred: readers by this index must have them
    /// applied first. Shared as `multikey` is.
    pub deferred: Arc<AtomicBool>,
    /// Entries are missing since an earlier process died, and could not be recovered yet. Shared as
    /// `multikey` is.
    pub incomplete: Arc<AtomicBool>,
    pub sql: IndexSql,
    /// The summary of plans that scan this index.
    pub summary: PlanSummary,
}

/// Statements on `c<id>(seq, id, doc)`. Scans of documents return `seq, doc`, and `key` if they use
/// an index. Scans of keys return `seq, key`.
#[derive(Debug)]
pub struct CollectionSql {
    pub table: String,
    pub insert: String,
    pub update: String,
    pub delete: String,
    pub by_seq: String,
    pub oldest: String,
    pub by_id: String,
    pub document_by_id: String,
    pub forward: String,
    pub backward: String,
    /// Scans of the table's index on `_id`.
    pub id: IndexSql,
}

/// Statements on `i<id>(key, seq)`.
#[derive(Debug)]
pub struct IndexSql {
    pub table: String,
    pub insert: String,
    pub delete: String,
    /// Finds another document with the same key.
    pub is_taken: String,
    pub forward: String,
    pub backward: String,
    pub keys_forward: String,
    pub keys_backward: String,
}

impl Catalog {
    pub fn get(&self, namespace: &Namespace) -> Option<&Arc<Collection>> {
        self.collections.get(namespace)
    }

    pub fn get_named(&self, database: &str, collection: &str) -> Option<&Arc<Collection>> {
        self.collections.get(&BorrowedNamespace { database, collection })
    }

    /// Fails if the collection exists and its catalog entry cannot be read.
    pub fn check_readable(&self, namespace: &Namespace) -> Result<()> {
        if self.unreadable.contains(namespace) {
            return Err(Error::internal(format!("the entry of {namespace} in the catalog is damaged: {ADVICE}")));
        }
        if self.names_unknown && self.get(namespace).is_none() {
            let message = format!("the catalog is damaged, so that {namespace} may be there or not: {ADVICE}");
            return Err(Error::internal(message));
        }
        Ok(())
    }

    pub fn collections(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.collections.values()
    }

    pub fn put(&mut self, collection: Arc<Collection>) {
        self.collections.insert(collection.namespace.clone(), collection);
    }

    pub fn remove(&mut self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.collections.remove(namespace)
    }

    /// Returns a database's collections, by name.
    pub fn of_database(&self, database: &str) -> Vec<Arc<Collection>> {
        let mut found: Vec<_> =
            self.collections.values().filter(|it| &*it.namespace.database == database).cloned().collect();
        found.sort_unstable_by(|left, right| left.namespace.collection.cmp(&right.namespace.collection));
        found
    }

    pub fn databases(&self) -> BTreeSet<Box<str>> {
        self.collections.keys().map(|namespace| namespace.database.clone()).collect()
    }

    /// Returns a database whose name differs from this one only in case; MongoDB allows only one of
    /// them.
    pub fn database_in_other_case(&self, database: &str) -> Option<Box<str>> {
        let same = |other: &str| other.eq_ignore_ascii_case(database);
        let mut names = self.collections.keys().map(|namespace| &namespace.database);
        names.find(|name| ***name != *database && same(name)).cloned()
    }
}

impl Collection {
    /// Fails if the options have invalid rules or an invalid collation.
    pub fn new(id: i64, namespace: Namespace, uuid: [u8; 16], options: DocBuf) -> Result<Collection> {
        let sql = Arc::new(CollectionSql::new(id));
        let rules = Rules::of(options.as_doc())?;
        let collation = store::catalog::default_collation(options.as_doc())?;
        let id_field = IndexField {
            path: "_id".into(),
            kind: FieldKind::Ascending,
            ascending: true,
            collation: collation.clone(),
            first_part: 0,
        };
        let (indexes, counters) = (Vec::new(), Arc::default());
        Ok(Collection { id, namespace, uuid, options, rules, collation, id_field, indexes, counters, sql })
    }

    pub fn with_options(mut self, options: DocBuf) -> Result<Collection> {
        self.rules = Rules::of(options.as_doc())?;
        self.options = options;
        Ok(self)
    }

    pub fn validator(&self) -> Option<&Validator> {
        self.rules.as_ref()?.validator.as_ref()
    }

    pub fn cap(&self) -> Option<Cap> {
        self.rules.as_ref()?.cap
    }

    pub fn documents(&self) -> u64 {
        self.counters.documents.load(Ordering::Relaxed).max(0) as u64
    }

    /// Returns the number of documents. Fails if damage prevents counting.
    pub fn count(&self) -> Result<u64> {
        match self.counters.uncounted.load(Ordering::Relaxed) {
            true => Err(Error::internal(format!("{} is damaged and cannot be counted: {ADVICE}", self.namespace))),
            false => Ok(self.documents()),
        }
    }

    pub fn data_bytes(&self) -> u64 {
        self.counters.data_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    pub fn is_dropped(&self) -> bool {
        self.counters.dropped.load(Ordering::Acquire)
    }

    /// Returns the specifications of all indexes, `_id_` first.
    pub fn index_specs(&self) -> Vec<IndexSpec> {
        let mut specs = vec![id_index()];
        let built = self.indexes.iter().filter(|index| !index.building);
        specs.extend(built.map(|index| index.spec.clone()));
        specs
    }
}

impl Deref for Index {
    type Target = IndexShape;

    fn deref(&self) -> &IndexShape {
        &self.shape
    }
}

impl Index {
    /// Returns whether entries are deferred.
    pub fn has_deferred_entries(&self) -> bool {
        self.deferred.load(Ordering::Acquire)
    }

    pub fn new(id: i64, collection: i64, spec: IndexSpec, multikey: Multikey) -> Result<Index> {
        Ok(Index {
            id,
            hidden: spec.spec.as_doc().get("hidden").is_some_and(Value::is_truthy),
            building: false,
            prepare_unique: spec.spec.as_doc().get("prepareUnique").is_some_and(Value::is_truthy),
            multikey: Arc::new(multikey),
            deferred: Arc::default(),
            incomplete: Arc::default(),
            sql: IndexSql::new(id, collection, spec.unique),
            summary: PlanSummary::of_index("IXSCAN", spec.key.as_doc()),
            shape: IndexShape::new(spec)?,
        })
    }

    /// Returns the index with other statements.
    pub fn with_sql(&self, sql: IndexSql) -> Index {
        Index {
            id: self.id,
            shape: self.shape.clone(),
            hidden: self.hidden,
            building: self.building,
            prepare_unique: self.prepare_unique,
            multikey: self.multikey.clone(),
            deferred: self.deferred.clone(),
            incomplete: self.incomplete.clone(),
            sql,
            summary: self.summary.clone(),
        }
    }

    /// Returns whether the index may be used to find documents.
    pub fn is_usable(&self) -> bool {
        !self.hidden && !self.building && !self.incomplete.load(Ordering::Acquire)
    }

    pub fn is_multikey(&self) -> bool {
        self.multikey.is_any()
    }
}

impl CollectionSql {
    fn new(id: i64) -> CollectionSql {
        let table = format!("c{id}");
        CollectionSql {
            insert: format!("INSERT INTO {table}(seq, id, doc) VALUES(?1, ?2, ?3)"),
            update: format!("UPDATE {table} SET doc = ?2 WHERE seq = ?1"),
            delete: format!("DELETE FROM {table} WHERE seq = ?1"),
            by_seq: format!("SELECT doc FROM {table} WHERE seq = ?1"),
            oldest: format!("SELECT seq, doc FROM {table} ORDER BY seq LIMIT 1"),
            by_id: format!("SELECT seq, doc FROM {table} WHERE id = ?1"),
            document_by_id: format!("SELECT doc FROM {table} WHERE id = ?1"),
            forward: format!("SELECT seq, doc FROM {table} WHERE seq > ?1 ORDER BY seq"),
            backward: format!("SELECT seq, doc FROM {table} WHERE seq < ?1 ORDER BY seq DESC"),
            id: IndexSql::of_id(&table),
            table,
        }
    }

    pub fn create(&self) -> String {
        let table = &self.table;
        format!(
            "CREATE TABLE {table}(seq INTEGER PRIMARY KEY, id BLOB NOT NULL, doc BLOB NOT NULL);
             CREATE UNIQUE INDEX {table}_id ON {table}(id)"
        )
    }
}

impl IndexSql {
    fn new(id: i64, collection: i64, unique: bool) -> IndexSql {
        let table = format!("i{id}");
        // Keys of a unique index need no second sort column.
        let (ascending, descending) =
            if unique { ("i.key", "i.key DESC") } else { ("i.key, i.seq", "i.key DESC, i.seq DESC") };
        let documents =
            format!("SELECT c.seq, c.doc, i.key FROM {table} AS i CROSS JOIN c{collection} AS c ON c.seq = i.seq");
        let keys = format!("SELECT i.seq, i.key FROM {table} AS i");
        let forward =
            |select: &str| format!("{select} WHERE (i.key, i.seq) > (?1, ?2) AND i.key < ?3 ORDER BY {ascending}");
        let backward =
            |select: &str| format!("{select} WHERE (i.key, i.seq) < (?1, ?2) AND i.key >= ?3 ORDER BY {descending}");
        IndexSql {
            insert: format!("INSERT INTO {table}(key, seq) VALUES(?1, ?2)"),
            delete: format!("DELETE FROM {table} WHERE key = ?1 AND seq = ?2"),
            is_taken: format!("SELECT 1 FROM {table} WHERE key = ?1 AND seq <> ?2"),
            forward: forward(&documents),
            backward: backward(&documents),
            keys_forward: forward(&keys),
            keys_backward: backward(&keys),
            table,
        }
    }

    /// Returns the statements for tables that a transaction shadows. SQLite does not merge the
    /// parts of two views in a join, so scans of documents name the parts.
    pub fn shadowed(id: i64, collection: i64, unique: bool) -> IndexSql {
        let scan = |bounds: &str, order: &str| {
            format!(
                "SELECT c.seq, c.doc, i.key FROM main.i{id} AS i CROSS JOIN main.c{collection} AS c ON c.seq = i.seq
                     WHERE i.seq NOT IN temp.g{collection} AND {bounds}
                 UNION ALL SELECT c.seq, c.doc, i.key FROM temp.k{id} AS i CROSS JOIN temp.n{collection} AS c
                     ON c.seq = i.seq WHERE {bounds} ORDER BY {order}"
            )
        };
        IndexSql {
            forward: scan("(i.key, i.seq) > (?1, ?2) AND i.key < ?3", "3, 1"),
            backward: scan("(i.key, i.seq) < (?1, ?2) AND i.key >= ?3", "3 DESC, 1 DESC"),
            ..IndexSql::new(id, collection, unique)
        }
    }

    /// Returns scans of the table's index on `_id`, which SQLite itself maintains.
    fn of_id(table: &str) -> IndexSql {
        let forward =
            |columns| format!("SELECT {columns} FROM {table} WHERE (id, seq) > (?1, ?2) AND id < ?3 ORDER BY id");
        let backward =
            |columns| format!("SELECT {columns} FROM {table} WHERE (id, seq) < (?1, ?2) AND id >= ?3 ORDER BY id DESC");
        IndexSql {
            insert: String::new(),
            delete: String::new(),
            is_taken: String::new(),
            forward: forward("seq, doc, id"),
            backward: backward("seq, doc, id"),
            keys_forward: forward("seq, id"),
            keys_backward: backward("seq, id"),
            table: table.to_owned(),
        }
    }

    pub fn create(&self, unique: bool) -> String {
        let table = &self.table;
        match unique {
            true => format!("CREATE TABLE {table}(key BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID"),
            false => format!(
                "CREATE TABLE {table}(key BLOB NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(key, seq)) WITHOUT ROWID"
            ),
        }
    }
}

/// Returns the index that every collection has.
pub fn id_index() -> IndexSpec {
    let key = document::doc! { "_id": 1 };
    let spec = document::doc! { "v": 2, "key": &key, "name": "_id_" };
    IndexSpec { name: "_id_".into(), key, unique: true, sparse: false, spec }
}
