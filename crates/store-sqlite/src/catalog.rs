//! Which collections and indexes there are: an immutable snapshot that all workers share, replaced as a whole by the writer.
//!
//! Each collection carries the SQL of the statements that serve it, so that the hot path builds no strings.

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
    /// Collections that are there, and whose entries in the catalog are damaged.
    unreadable: Vec<Namespace>,
    /// There are more collections than can be named.
    names_unknown: bool,
}

#[derive(Clone, Debug)]
pub struct Collection {
    pub id: i64,
    pub namespace: Namespace,
    pub uuid: [u8; 16],
    pub options: DocBuf,
    /// What the options demand of writes; most collections have no such rules.
    pub rules: Option<Arc<Rules>>,
    /// The default of its indexes and queries; what the keys of `_id` are made by.
    pub collation: Collation,
    /// What the table's own index is on.
    pub id_field: IndexField,
    /// The secondary indexes in the order of their creation; `_id_` is the table's own.
    pub indexes: Vec<Arc<Index>>,
    pub counters: Arc<Counters>,
    pub sql: Arc<CollectionSql>,
}

/// Figures that change with every write. The writer adds after a commit, everyone reads.
#[derive(Debug, Default)]
pub struct Counters {
    pub documents: AtomicI64,
    pub data_bytes: AtomicI64,
    /// Damage is in the way of knowing how many documents there are.
    pub uncounted: AtomicBool,
    /// Set once the collection is dropped; cursors still hold it.
    pub dropped: AtomicBool,
    /// Goes up when documents have been added to a capped collection, for those who wait for them.
    pub additions: watch::Sender<u64>,
}

#[derive(Debug)]
pub struct Index {
    pub id: i64,
    pub shape: IndexShape,
    /// Not to be used for finding documents.
    pub hidden: bool,
    /// Kept up by writers, but not all documents are in it yet.
    pub building: bool,
    /// No key may come to be there twice, though some may be already (`prepareUnique`).
    pub prepare_unique: bool,
    /// Where documents have, or had, arrays: set before the writer commits it, never unset.
    /// Shared with what the index was before a change of its options.
    pub multikey: Arc<Multikey>,
    /// Documents are committed of which there are no entries yet: whoever reads by the index asks for them first.
    /// Shared as `multikey` is.
    pub deferred: Arc<AtomicBool>,
    /// IndexEntries are missing since an earlier process died, and could not be made yet. Shared as
    /// `multikey` is.
    pub incomplete: Arc<AtomicBool>,
    pub sql: IndexSql,
    /// How a plan by it is told of in a line.
    pub summary: PlanSummary,
}

/// Statements on `c<id>(seq, id, doc)`. Scans of documents give `seq, doc`, and where they go by an index, `key`; scans of keys
/// give `seq, key`.
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
    /// Whether another document has the key.
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

    /// Fails if the collection is there and its entry in the catalog cannot be read.
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

    /// A database's collections, by name.
    pub fn of_database(&self, database: &str) -> Vec<Arc<Collection>> {
        let mut found: Vec<_> =
            self.collections.values().filter(|it| &*it.namespace.database == database).cloned().collect();
        found.sort_unstable_by(|left, right| left.namespace.collection.cmp(&right.namespace.collection));
        found
    }

    pub fn databases(&self) -> BTreeSet<Box<str>> {
        self.collections.keys().map(|namespace| namespace.database.clone()).collect()
    }

    /// A database whose name differs from this one in case alone; MongoDB lets only one of them exist.
    pub fn database_in_other_case(&self, database: &str) -> Option<Box<str>> {
        let same = |other: &str| other.eq_ignore_ascii_case(database);
        let mut names = self.collections.keys().map(|namespace| &namespace.database);
        names.find(|name| ***name != *database && same(name)).cloned()
    }
}

impl Collection {
    /// Fails where the options have rules or a collation that are none.
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

    /// How many documents there are; fails where damage is in the way of knowing.
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

    /// Specifications of all indexes, `_id_` first.
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
    /// Whether entries are missing.
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

    /// Whether documents may be found by it.
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
        // Behind a unique key there is nothing left to order by.
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

    /// Scans of the index on `_id` that a table of documents has. It takes no entries but the table's own.
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

/// The index every collection has.
pub fn id_index() -> IndexSpec {
    let key = document::doc! { "_id": 1 };
    let spec = document::doc! { "v": 2, "key": &key, "name": "_id_" };
    IndexSpec { name: "_id_".into(), key, unique: true, sparse: false, spec }
}
