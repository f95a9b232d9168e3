//! A collection's table: its shape, and the statements that read and write it.

use crate::catalog::id_text::{self, IdForm};
use crate::index::Index;
use crate::index::column_key;
use crate::plan::index_choice_cache::Choices;
use crate::plan::plan_cache::Repeated;
use document::{Collation, Doc};
use mariadb_client::Connection;
use mariadb_client::quote;
use mariadb_wire::row::BinaryRow;
use mariadb_wire::{Malformed, Param};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{Cap, Rules, Validator};

/// The column that orders and addresses rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKey {
    /// `seq`, counted up by the server: the natural order.
    Sequence,
    /// `id`: tables that have no `seq`.
    Id,
}

impl RowKey {
    pub fn column(self) -> &'static str {
        match self {
            RowKey::Sequence => "seq",
            RowKey::Id => "id",
        }
    }
}

/// Whether a document's text has escapes (a backslash) or blobs, see `pushdown`. REPLACE takes time by the text's length times its
/// matches, so a long text counts as opaque without a look.
const OPAQUE: &str = "length(`doc`) > 8192 or length(replace(`doc`,'\\\\','')) < length(`doc`) or length(replace(`doc`,'\"$bson\"','')) < length(`doc`)";

/// The column of `_id` as text, and the name of the index on it.
pub(crate) const ID_TEXT: &str = "id";

/// The column with the order of ids, and MariaDB's index over it.
pub(crate) const ID_KEY: &str = "id_key";

/// Its length, less the byte in front: every `_id` that the column `id` has in full fits.
pub(crate) const ID_KEY_BYTES: usize = 4 * id_text::ID_CHARS_MAX;

/// What a table's columns make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub row_key: RowKey,
    pub id_form: IdForm,
    pub tells_opaque: bool,
    pub orders_ids: bool,
}

/// A table that holds a collection. Shared by plans, so that a cursor may go on with it on any worker.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub schema: String,
    pub name: String,
    /// Schema and name as they stand in statements.
    pub quoted: String,
    pub row_key: RowKey,
    pub id_form: IdForm,
    /// There is a column `opaque`: whether the text has escapes or blobs, so that its bytes do not tell what it holds.
    pub tells_opaque: bool,
    /// There is a column with the order of ids.
    pub orders_ids: bool,
    /// Secondary indexes.
    pub indexes: Vec<Index>,
    /// What the collection's options demand of writes; most have no such rules.
    pub rules: Option<Arc<Rules>>,
    /// The collection's default collation. No column and no index here goes by it.
    pub collation: Collation,
    pub statements: Statements,
    /// How long the documents are that were read last.
    pub document_bytes: DocumentBytes,
    pub untold: Untold,
    /// Which indexes have served its queries best.
    pub choices: Choices,
    pub repeated: Repeated,
}

/// The indexes, by MariaDB's names, whose keys did not tell the values that were asked for: documents are read at once next time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Untold(Arc<Mutex<BTreeSet<String>>>);

impl Untold {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has(&self, index: &str) -> bool {
        self.lock().contains(index)
    }

    pub fn note(&self, index: &str) {
        self.lock().insert(index.to_owned());
    }
}

/// The mean length of documents, as far as some have been seen; shared by what is known of a table one time and the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct DocumentBytes(Arc<AtomicU64>);

impl DocumentBytes {
    /// Zero as long as nothing is known.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// So many documents had so many bytes.
    pub fn note(&self, bytes: usize, documents: usize) {
        if let Some(mean) = bytes.checked_div(documents) {
            self.0.store(mean as u64, Ordering::Relaxed);
        }
    }
}

/// The texts of statements that are used all the time; each connection prepares them once.
#[derive(Clone, Debug)]
pub(crate) struct Statements {
    /// Key and document of one id.
    pub by_id: Arc<str>,
    /// Document of one row key.
    pub by_key: Arc<str>,
    /// One document.
    pub insert: Arc<str>,
    /// Row key, document.
    pub insert_at: Arc<str>,
    /// New document, row key, old document: nothing happens unless the old one is still there.
    pub replace: Arc<str>,
    /// Row key, old document.
    pub delete: Arc<str>,
    /// One id.
    pub delete_by_id: Arc<str>,
    pub count: Arc<str>,
    /// Waits for others who write to the capped collection.
    pub lock: Arc<str>,
    /// Bytes, documents: deletes the oldest documents past them.
    pub trim: Arc<str>,
}

impl Table {
    pub fn new(schema: &str, name: &str, shape: Shape, indexes: Vec<Index>, rules: Option<Arc<Rules>>) -> Table {
        let Shape { row_key, id_form, tells_opaque, orders_ids } = shape;
        let quoted = format!("{}.{}", quote(schema), quote(name));
        let key = row_key.column();
        let statements = Statements {
            by_id: format!("SELECT {key}, doc FROM {quoted} WHERE id = ?").into(),
            by_key: format!("SELECT {key}, doc FROM {quoted} WHERE {key} = ?").into(),
            insert: format!("INSERT INTO {quoted} (doc) VALUES (?)").into(),
            insert_at: format!("INSERT INTO {quoted} ({key}, doc) VALUES (?, ?)").into(),
            replace: format!("UPDATE {quoted} SET doc = ? WHERE {key} = ? AND doc = ?").into(),
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
            tells_opaque,
            orders_ids,
            indexes,
            rules,
            collation: Collation::SIMPLE,
            statements,
            document_bytes: DocumentBytes::default(),
            untold: Untold::default(),
            choices: Choices::default(),
            repeated: Repeated::default(),
        }
    }

    /// Takes over what was found out about the same table before.
    pub fn learn_from(&mut self, known: &Table) {
        self.document_bytes = known.document_bytes.clone();
        self.choices = known.choices.clone();
        if self.shows_definition() == known.shows_definition() {
            self.repeated = known.repeated.clone();
            self.untold = known.untold.clone();
        }
    }

    /// All that planning reads and that only a change of the definition changes.
    fn shows_definition(&self) -> String {
        let Table { quoted, row_key, id_form, tells_opaque, orders_ids, indexes, rules, collation, .. } = self;
        format!("{quoted} {row_key:?} {id_form:?} {tells_opaque} {orders_ids} {indexes:?} {rules:?} {collation:?}")
    }

    /// Errors: what an index cannot hold of a document.
    pub fn check_indexed(&self, document: Doc<'_>) -> error::Result<()> {
        self.indexes.iter().try_for_each(|index| index.check_document(document))
    }

    /// Whether the table has all that is in [`Table::definition`], so that what is no document cannot be in it.
    pub fn is_ours(&self) -> bool {
        self.row_key == RowKey::Sequence && self.id_form == IdForm::Canonical && self.tells_opaque && self.orders_ids
    }

    pub fn validator(&self) -> Option<&Validator> {
        self.rules.as_ref()?.validator.as_ref()
    }

    pub fn cap(&self) -> Option<Cap> {
        self.rules.as_ref()?.cap.filter(|_| self.row_key == RowKey::Sequence)
    }

    /// Queues what comes before the documents of a capped collection: they get their places in the order of commits.
    pub fn queue_lock(&self, connection: &mut Connection) {
        let params = [Param::Text(self.schema.as_bytes()), Param::Text(self.name.as_bytes())];
        connection.queue_execute(&self.statements.lock, &params);
    }

    /// Queues what comes behind them.
    pub fn queue_trim(&self, connection: &mut Connection, cap: Cap) {
        let params = [Param::Unsigned(cap.bytes), Param::Unsigned(cap.documents.unwrap_or(u64::MAX))];
        connection.queue_execute(&self.statements.trim, &params);
    }

    /// The statement that creates a collection's table.
    ///
    /// `id` is stored, which costs its few bytes: a virtual column would be computed again whenever a row is looked up by it (3 of 20 µs),
    /// changed, or purged.
    pub fn definition(schema: &str, name: &str) -> String {
        let text = "json_extract(`doc`,'$._id')";
        let id_key = column_key::Source { text, decimal: None, bytes: ID_KEY_BYTES, unique: false };
        format!(
            "CREATE TABLE {}.{} (\n  \
             seq BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY INVISIBLE,\n  \
             id VARCHAR({}) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin AS ({}) STORED UNIQUE KEY,\n  \
             doc JSON,\n  \
             opaque BOOLEAN AS ({OPAQUE}) STORED INVISIBLE,\n  \
             {ID_KEY} VARBINARY({}) AS ({}) STORED INVISIBLE,\n  \
             KEY {ID_KEY} ({ID_KEY}),\n  \
             CONSTRAINT id_not_null CHECK (id IS NOT NULL)\n\
             ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
            quote(schema),
            quote(name),
            id_text::ID_CHARS_MAX,
            id_text::expression(),
            ID_KEY_BYTES + 1,
            id_key.id_expression("`id`"),
        )
    }
}

/// A column as `information_schema.COLUMNS` describes it.
pub(crate) struct Column {
    pub name: String,
    pub data_type: String,
    /// `PRI`, `UNI`, `MUL` or nothing.
    pub key: String,
    pub extra: String,
    pub generation: Option<String>,
    pub nullable: bool,
    pub has_default: bool,
}

impl Column {
    /// Reads the columns of `information_schema.COLUMNS` in the order that queries here name them.
    pub fn read(row: &mut BinaryRow<'_>) -> Result<Column, Malformed> {
        let mut text = || -> Result<Option<String>, Malformed> {
            Ok(row.next_bytes()?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        };
        Ok(Column {
            name: text()?.unwrap_or_default(),
            data_type: text()?.unwrap_or_default(),
            key: text()?.unwrap_or_default(),
            extra: text()?.unwrap_or_default(),
            generation: text()?.filter(|expression| !expression.is_empty()),
            nullable: text()?.as_deref() == Some("YES"),
            has_default: row.next_u64()? != 0,
        })
    }
}

/// What a table with these columns is to us; `None` when it holds no documents.
pub(crate) fn shape(columns: &[Column]) -> Option<Shape> {
    let find = |name: &str| columns.iter().find(|column| column.name == name);
    let doc = find("doc").filter(|column| column.generation.is_none() && column.data_type.ends_with("text"))?;
    let id = find("id").filter(|column| matches!(column.key.as_str(), "UNI" | "PRI"))?;
    let generation = id.generation.as_deref()?.to_ascii_lowercase();
    if !generation.contains("json_extract(`doc`") || !generation.contains("$._id") {
        return None;
    }
    let id_form = if generation.contains("regexp_replace") { IdForm::Canonical } else { IdForm::Plain };
    let sequence = find("seq").filter(|column| column.key == "PRI" && column.extra.contains("auto_increment"));
    // A row that has nothing but a document must be possible.
    let fills_itself = |column: &Column| {
        column.nullable || column.has_default || column.generation.is_some() || column.extra.contains("auto_increment")
    };
    let others = columns.iter().filter(|column| column.name != doc.name);
    if !others.clone().all(fills_itself) {
        return None;
    }
    let row_key = if sequence.is_some() { RowKey::Sequence } else { RowKey::Id };
    let tells_opaque = find("opaque").is_some_and(|column| {
        column.generation.as_deref().is_some_and(|it| it.contains("$bson") && it.contains("replace("))
    });
    let orders_ids = find(ID_KEY).is_some_and(|column| column.key == "MUL" && column.data_type == "varbinary");
    Some(Shape { row_key, id_form, tells_opaque, orders_ids })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, data_type: &str, key: &str, extra: &str, generation: Option<&str>) -> Column {
        Column {
            name: name.into(),
            data_type: data_type.into(),
            key: key.into(),
            extra: extra.into(),
            generation: generation.map(str::to_owned),
            nullable: extra.is_empty(),
            has_default: false,
        }
    }

    #[test]
    fn document_tables_are_told_from_others() {
        let plain = Some("json_compact(json_extract(`doc`,'$._id'))");
        let doc = || column("doc", "longtext", "", "", None);
        let id = |generation| column("id", "varchar", "UNI", "VIRTUAL GENERATED", generation);
        let seq = || column("seq", "bigint", "PRI", "auto_increment, INVISIBLE", None);
        let ours = id_text::expression();
        let plain_shape = Shape { row_key: RowKey::Id, id_form: IdForm::Plain, tells_opaque: false, orders_ids: false };
        assert_eq!(shape(&[id(plain), doc()]), Some(plain_shape));
        let opaque = || column("opaque", "tinyint", "", "STORED GENERATED, INVISIBLE", Some(OPAQUE));
        let our_shape =
            Shape { row_key: RowKey::Sequence, id_form: IdForm::Canonical, tells_opaque: true, orders_ids: true };
        let id_key = || column("id_key", "varbinary", "MUL", "STORED GENERATED, INVISIBLE", Some("…"));
        assert_eq!(shape(&[seq(), id(Some(&ours)), doc(), opaque(), id_key()]), Some(our_shape));
        assert_eq!(shape(&[seq(), doc()]), None);
        assert_eq!(shape(&[id(None), doc()]), None);
        assert_eq!(shape(&[id(plain), doc(), column("must", "int", "", "NOT NULL", None)]), None);
    }
}
