//! A collection's table: its definition, and the statements that read and write it.

use crate::catalog::id_text::{self, IdForm};
use crate::catalog::row_key::RowKey;
use crate::catalog::table_columns::{ID_KEY, ID_KEY_BYTES, OPAQUE, TableShape};
use crate::catalog::update_mark::UpdateMark;
use crate::index::{Index, column_key};
use crate::plan::plan_cache::PlanCache;
use document::{Collation, Doc};
use mariadb_client::{Connection, quote};
use mariadb_wire::Param;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{Cap, Rules, Validator};

/// The least average size of long documents. Shorter ones are fetched in the time of a second scan
/// of their rows.
const LONG_DOCUMENT_BYTES: u64 = 1_024;

/// A table that holds a collection. Shared by plans, so that a cursor may go on with it on any
/// worker.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub schema: String,
    pub name: String,
    /// Quoted schema and name.
    pub quoted: String,
    pub row_key: RowKey,
    pub id_form: IdForm,
    /// The column `opaque` exists: whether the text has escapes or blobs, so that a search for
    /// bytes is not enough.
    pub has_opaque_column: bool,
    /// The column with the order keys of ids exists.
    pub has_id_key: bool,
    /// Its rows are on several servers: see [`crate::sharding`].
    pub is_sharded: bool,
    /// Secondary indexes.
    pub indexes: Vec<Index>,
    /// Rules for writes from the collection's options; most collections have none.
    pub rules: Option<Arc<Rules>>,
    /// The collection's default collation. No column and no index uses it.
    pub collation: Collation,
    pub statements: Statements,
    /// Mean length of the documents read last.
    pub document_bytes: DocumentBytes,
    pub plan_cache: PlanCache,
}

/// The mean length of documents read, shared by successive catalog entries of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct DocumentBytes(Arc<AtomicU64>);

impl DocumentBytes {
    /// Returns the mean length; 0 if unknown.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Records the total length of some documents.
    pub fn note(&self, bytes: usize, documents: usize) {
        if let Some(mean) = bytes.checked_div(documents) {
            self.0.store(mean as u64, Ordering::Relaxed);
        }
    }
}

/// Texts of frequent statements; each connection prepares them once.
#[derive(Clone, Debug)]
pub(crate) struct Statements {
    /// Parameter: id. Selects row key and document.
    pub by_id: Arc<str>,
    /// Parameter: row key. Selects row key and document.
    pub by_key: Arc<str>,
    /// Parameter: document.
    pub insert: Arc<str>,
    /// Parameters: row key, document.
    pub insert_at: Arc<str>,
    /// One for each of [`UpdateMark::ALL`].
    replace: [Arc<str>; 3],
    /// Parameters: row key, old document.
    pub delete: Arc<str>,
    /// Parameter: id.
    pub delete_by_id: Arc<str>,
    pub count: Arc<str>,
    /// Locks the record of a capped collection against concurrent writers.
    pub lock: Arc<str>,
    /// Parameters: bytes, documents. Deletes the oldest documents past these limits.
    pub trim: Arc<str>,
}

impl Statements {
    /// Parameters: new document, row key, old document. Changes nothing unless the row has the old
    /// one.
    pub fn replace(&self, mark: UpdateMark) -> &Arc<str> {
        let [operators, replacement, unmarked] = &self.replace;
        match mark {
            UpdateMark::Operators => operators,
            UpdateMark::Replacement => replacement,
            UpdateMark::Unmarked => unmarked,
        }
    }
}

impl Table {
    pub fn new(schema: &str, name: &str, shape: TableShape, indexes: Vec<Index>, rules: Option<Arc<Rules>>) -> Table {
        let TableShape { row_key, id_form, has_opaque_column, has_id_key, is_sharded } = shape;
        let quoted = format!("{}.{}", quote(schema), quote(name));
        let key = row_key.column();
        let statements = Statements {
            by_id: format!("SELECT {key}, doc FROM {quoted} WHERE id = ?").into(),
            by_key: format!("SELECT {key}, doc FROM {quoted} WHERE {key} = ?").into(),
            insert: format!("INSERT INTO {quoted} (doc) VALUES (?)").into(),
            insert_at: format!("INSERT INTO {quoted} ({key}, doc) VALUES (?, ?)").into(),
            replace: UpdateMark::ALL
                .map(|mark| format!("{} {quoted} SET doc = ? WHERE {key} = ? AND doc = ?", mark.verb()).into()),
            delete: format!("DELETE FROM {quoted} WHERE {key} = ? AND doc = ?").into(),
            delete_by_id: format!("DELETE FROM {quoted} WHERE id = ?").into(),
            count: format!("SELECT COUNT(*) FROM {quoted}").into(),
            lock: "UPDATE selkie.collections SET options = options WHERE schema_name = ? AND table_name = ?".into(),
            trim: format!(
                "DELETE FROM {quoted} WHERE {key} <= (SELECT MAX(past.{key}) FROM (SELECT {key}, \
                 ROW_NUMBER() OVER newest AS documents, SUM(OCTET_LENGTH(doc)) OVER newest AS bytes FROM {quoted} \
                 WINDOW newest AS (ORDER BY {key} DESC)) AS past WHERE past.documents > 1 AND (past.bytes > ? OR past.documents > ?))"
            )
            .into(),
        };
        Table {
            schema: schema.into(),
            name: name.into(),
            quoted,
            row_key,
            id_form,
            has_opaque_column,
            has_id_key,
            is_sharded,
            indexes,
            rules,
            collation: Collation::SIMPLE,
            statements,
            document_bytes: DocumentBytes::default(),
            plan_cache: PlanCache::default(),
        }
    }

    /// Takes over the statistics and cached plans of an earlier entry of the table.
    pub fn inherit_from(&mut self, known: &Table) {
        self.document_bytes = known.document_bytes.clone();
        let same_definition = self.definition_fingerprint() == known.definition_fingerprint();
        self.plan_cache = known.plan_cache.inherited(same_definition);
    }

    /// Returns everything that planning reads and that only a change of the definition changes.
    fn definition_fingerprint(&self) -> String {
        let Table { quoted, row_key, id_form, has_opaque_column, has_id_key, is_sharded, .. } = self;
        let Table { indexes, rules, collation, .. } = self;
        format!(
            "{quoted} {row_key:?} {id_form:?} {has_opaque_column} {has_id_key} {is_sharded} {indexes:?} {rules:?} \
             {collation:?}"
        )
    }

    /// Returns whether the documents read so far are so long on average that a second scan of the
    /// keys is cheaper than fetching them. Changes as documents are read. Rows that are fetched one
    /// by one from other servers are never cheaper.
    pub fn has_long_documents(&self) -> bool {
        self.document_bytes.get() >= LONG_DOCUMENT_BYTES && !self.is_sharded
    }

    /// Returns the key of an index's record in Selkie's own schema.
    pub fn record_key<'t>(&'t self, index: &'t Index) -> [&'t str; 3] {
        [&self.schema, &self.name, &index.sql_name]
    }

    /// Fails if an index cannot hold the document.
    pub fn check_indexed(&self, document: Doc<'_>) -> error::Result<()> {
        self.indexes.iter().try_for_each(|index| index.check_document(document))
    }

    /// Returns whether the table is as [`Table::definition`] creates it, so that every row must be
    /// a document.
    pub fn is_native(&self) -> bool {
        self.row_key == RowKey::Sequence
            && self.id_form == IdForm::Canonical
            && self.has_opaque_column
            && self.has_id_key
    }

    /// Returns the collection's validator.
    pub fn validator(&self) -> Option<&Validator> {
        self.rules.as_ref()?.validator.as_ref()
    }

    /// Returns the limits of a capped collection.
    pub fn cap(&self) -> Option<Cap> {
        self.rules.as_ref()?.cap.filter(|_| self.row_key == RowKey::Sequence)
    }

    /// Queues the lock that precedes the documents of a capped collection, so that their row keys
    /// are in commit order.
    pub fn queue_cap_lock(&self, connection: &mut Connection) {
        let params = [Param::Text(self.schema.as_bytes()), Param::Text(self.name.as_bytes())];
        connection.queue_execute(&self.statements.lock, &params);
    }

    /// Queues the deletion of the oldest documents of a capped collection.
    pub fn queue_trim(&self, connection: &mut Connection, cap: Cap) {
        let params = [Param::Unsigned(cap.bytes), Param::Unsigned(cap.documents.unwrap_or(u64::MAX))];
        connection.queue_execute(&self.statements.trim, &params);
    }

    /// Returns the statement that creates a collection's table.
    ///
    /// `id` is stored, which costs its few bytes. A virtual column would be computed again whenever
    /// a row is looked up by it (3 of 20 µs), changed, or purged.
    pub fn definition(schema: &str, name: &str) -> String {
        format!(
            "CREATE TABLE {}.{} (\n  \
             seq BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY INVISIBLE,\n  \
             {} UNIQUE KEY,\n  \
             doc JSON,\n  \
             {},\n  \
             KEY {ID_KEY} ({ID_KEY}),\n  \
             CONSTRAINT id_not_null CHECK (id IS NOT NULL)\n\
             ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
            quote(schema),
            quote(name),
            Table::id_column(),
            Table::other_columns(),
        )
    }

    /// Returns the definition of the column with the text of `_id`.
    pub fn id_column() -> String {
        let (chars, text) = (id_text::ID_CHARS_MAX, id_text::expression());
        format!("id VARCHAR({chars}) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin AS ({text}) STORED")
    }

    /// Returns the definitions of the generated columns after `doc`.
    pub fn other_columns() -> String {
        let text = "json_extract(`doc`,'$._id')";
        let id_key = column_key::Source { text, decimal: None, bytes: ID_KEY_BYTES, unique: false };
        format!(
            "opaque BOOLEAN AS ({OPAQUE}) STORED INVISIBLE,\n  {ID_KEY} VARBINARY({}) AS ({}) STORED INVISIBLE",
            ID_KEY_BYTES + 1,
            id_key.id_expression("`id`"),
        )
    }
}
