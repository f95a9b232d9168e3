//! Secondary indexes: generated columns that hold the keys of a document's fields, and an ordinary MariaDB index over them.
//!
//! For each field there is a column with the JSON text that the path leads to, so that the document is searched once, and one with the
//! [`key`] of that text. Both are stored, because a virtual one would be computed again for each row that is read, changed or purged
//! (2,000 rows by index: 77 ms instead of 15), and be it only for a key that goes by it: what is stored says something of a row without its
//! document. An index over several fields has one more column, `odd`, with an index of its own: whether any field has a key without a
//! place.
//!
//! A missing field counts as null (unless the index is sparse), so a unique key in MariaDB is a unique index in MongoDB's sense. Values within
//! arrays cannot be had this way: all arrays have one key, which every lookup reads as well, unless there is a table with their values
//! ([`crate::multikey`]). A CHECK constraint keeps arrays out of a unique index until there is one.

mod arrays;

pub(crate) use arrays::{has_number, meets_array};

use crate::connection::Connection;
use crate::failure::Result;
use crate::key;
use crate::keyed::KeyTable;
use crate::multikey::Values;
use crate::names::quote;
use crate::own_schema;
use crate::partial::Filter;
use crate::plan::KeyColumn;
use crate::table::Column;
use document::{Doc, DocBuf, Value};
use error::{Code, Error};
use index_keys::shape::index_spec;
use index_keys::{IndexShape, keys};
use mariadb_wire::Param;
use query::fulltext::TextIndex;
use query::predicate::Test;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use store::{IndexKind, IndexSpec, places};

/// Bytes of an index's key that are worth having, of those that MariaDB allows (3,072): a row may have 65,535 in all of its columns.
const KEY_BYTES_WANTED: usize = 960;

/// What MariaDB allows, less some room.
const KEY_BYTES_MAX: usize = 3_000;

/// Columns from this length on may be kept outside of a row's page, which has little room.
const COLUMN_BYTES_MIN: usize = 256;

/// Fields of one index: MariaDB has 32 columns in a key, the row's own among them.
const FIELDS_MAX: usize = 31;

/// Levels of a path; deeper ones may lie in what the JSON spelling keeps as a blob.
const LEVELS_MAX: usize = 16;

/// A secondary index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub spec: Arc<IndexSpec>,
    /// The key's name in MariaDB; its columns' names begin with it.
    pub sql_name: String,
    /// Which documents it has, if it is partial.
    filter: Option<Filter>,
    /// The columns with the keys of the fields.
    pub key_columns: Box<[KeyColumn]>,
    /// The table with the values of arrays, if there is one.
    pub values: Option<Values>,
    /// The tables that a unique index should have and, after something was cut off, has not: it is a plain one until they are made.
    pub owed: Option<Values>,
    /// Its columns can be read without the document. Earlier versions made some that cannot.
    pub stands_alone: bool,
    /// The tables with the keys that SQL cannot compute, if there are any.
    pub keys: Option<KeyTable>,
    /// What those keys are made by; `None` where columns have the keys.
    pub shape: Option<Arc<IndexShape>>,
    /// What tells which documents it refuses, if that are those that have no keys: arrays in a hashed index, several of them in a compound one.
    refusing: Option<Arc<IndexShape>>,
    /// There are columns of this index, though it may have no use for them: earlier versions made some for those with a collation.
    has_columns: bool,
    kind: IndexKind,
    /// What a text index says of documents.
    text: Option<Arc<TextIndex>>,
}

impl Index {
    pub fn new(spec: IndexSpec) -> Index {
        let hash = Sha256::digest(&spec.name);
        let front: String = spec.name.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '_').take(30).collect();
        let sql_name = format!("{front}~{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3]);
        let text = TextIndex::from_spec(spec.spec.as_doc()).map(Arc::new);
        // What is kept has been read before, when it was asked for.
        let kind = IndexKind::of(&spec).unwrap_or(IndexKind::Ordered);
        let collation = store::catalog::default_collation(spec.spec.as_doc());
        let of_columns =
            matches!(kind, IndexKind::Ordered | IndexKind::Hashed) && collation.is_ok_and(|it| it.is_simple());
        let shape = if of_columns { None } else { IndexShape::new(spec.clone()).ok().map(Arc::new) };
        let refusing = match kind {
            IndexKind::Ordered if shape.is_some() => shape.clone(),
            IndexKind::Ordered if arrays::refused(&spec).is_none() => None,
            IndexKind::Hashed | IndexKind::Ordered => IndexShape::new(spec.clone()).ok().map(Arc::new),
            _ => None,
        };
        let key_columns = spec.key.as_doc().iter().enumerate().map(|(position, (_, direction))| {
            let descends = number(direction).is_some_and(|direction| direction < 0.0);
            KeyColumn::named(&key_column(&sql_name, position), descends)
        });
        let key_columns = key_columns.collect();
        Index {
            key_columns,
            filter: Filter::of(spec.spec.as_doc()),
            spec: Arc::new(spec),
            sql_name,
            values: None,
            owed: None,
            stands_alone: false,
            keys: None,
            has_columns: of_columns,
            shape,
            refusing,
            kind,
            text,
        }
    }

    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.spec.key.as_doc().iter().map(|(path, _)| path)
    }

    /// Whether the index is not to be used for finding documents.
    pub fn is_hidden(&self) -> bool {
        self.spec.spec.as_doc().get("hidden").is_some_and(Value::is_truthy)
    }

    pub fn kind(&self) -> &IndexKind {
        &self.kind
    }

    /// Whether documents are found by keys that columns have. Another kind of index has one column, which marks that the definition holds.
    pub fn has_keys(&self) -> bool {
        self.shape.is_none()
    }

    /// Whether documents are found by keys in a table of their own: see [`crate::keyed`].
    pub fn finds_by_keys(&self) -> bool {
        self.shape.is_some() && self.keys.as_ref().is_some_and(|keys| keys.ready)
    }

    /// Whether there are documents that the index refuses, arrays in a unique one aside.
    pub fn is_choosy(&self) -> bool {
        !self.has_keys() || self.refusing.is_some()
    }

    /// Errors for a document that MongoDB could not index: see [`TextIndex::check`], [`places::check`] and [`index_keys`].
    pub fn check_document(&self, document: Doc<'_>) -> error::Result<()> {
        if self.spec.unique && self.fields().any(|path| arrays::nest(document, path)) {
            return Err(array_in_unique());
        }
        match (&self.text, &self.refusing) {
            (Some(text), _) => text.check(document),
            (None, Some(shape)) if self.may_refuse(document) => keys::index_keys(document, shape).map(drop),
            (None, Some(_)) => Ok(()),
            (None, None) => places::check(document, &self.spec, &self.kind),
        }
    }

    /// Whether the index has keys that MariaDB computes and refuses a document, as far as can be told without making its keys.
    fn may_refuse(&self, document: Doc<'_>) -> bool {
        if !self.has_columns || self.kind != IndexKind::Ordered {
            return true;
        }
        let arrays = self.fields().filter(|path| meets_array(document, path)).count();
        arrays::refused(&self.spec).is_some_and(|refused| arrays >= refused)
    }

    /// In SQL, a condition that holds for each document that the index refuses: it can be told before there are columns.
    pub fn refused_condition(&self) -> String {
        let arrays = if self.spec.unique { Some(1) } else { arrays::refused(&self.spec) };
        match arrays.filter(|_| self.has_columns && self.kind == IndexKind::Ordered) {
            None => "TRUE".to_owned(),
            Some(refused) => {
                let arrays = self.fields().map(|path| format!("ifnull(left({},1)='[',0)", text_expression(path)));
                format!("{} >= {refused}", arrays.collect::<Vec<_>>().join(" + "))
            }
        }
    }

    /// Whether there are documents that the index does not have.
    pub fn leaves_out(&self) -> bool {
        self.spec.sparse || self.filter.is_some()
    }

    /// Whether a filter says which documents the index has.
    pub fn is_partial(&self) -> bool {
        self.filter.is_some()
    }

    /// Whether the index has every document that meets these conditions, but for what it leaves out for being sparse.
    pub fn has_all_matches(&self, conditions: &[(&str, &Test)]) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.is_implied_by(conditions))
    }

    /// The column with the keys of a field.
    pub fn column(&self, position: usize) -> String {
        key_column(&self.sql_name, position)
    }

    /// The column with the JSON text of a field. Its name stands in an expression dozens of times, so it is short.
    pub fn text_column(&self, position: usize) -> String {
        let hash = Sha256::digest(&self.spec.name);
        let mut number = hash.iter().take(4).fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        let mut name = String::from("~");
        for _ in 0..5 {
            name.extend(char::from_digit(number % 36, 36));
            number /= 36;
        }
        format!("{name}{position}")
    }

    /// The column with the value of a field as a decimal, if it is one.
    fn decimal_column(&self, position: usize) -> String {
        format!("{}d", self.text_column(position))
    }

    /// The column, and the MariaDB index over it, that tell whether a field has a key without a place; where there are several fields.
    pub fn odd_column(&self) -> Option<String> {
        (self.fields().nth(1).is_some()).then(|| format!("{}.odd", self.sql_name))
    }

    /// Length of each column, less the byte in front; see [`key::expression`].
    pub fn bytes(&self) -> usize {
        let fields = self.fields().count().max(1);
        (KEY_BYTES_WANTED / fields).max(COLUMN_BYTES_MIN).min(KEY_BYTES_MAX / fields - 1)
    }

    /// Error 67 for what cannot be an index here.
    pub fn check(&self) -> error::Result<()> {
        let refuse = |reason: String| Err(Error::new(Code::CANNOT_CREATE_INDEX, reason));
        if self.spec.unique && self.spec.spec.as_doc().get("collation").is_some() {
            return refuse(
                "a unique index on MariaDB cannot have a collation: its keys are told apart by their bytes".into(),
            );
        }
        if !self.has_keys() {
            return self.check_without_keys();
        }
        if self.fields().count() > FIELDS_MAX {
            return refuse(format!("an index over more than {FIELDS_MAX} fields is not supported on MariaDB"));
        }
        let filtered = self.filter.iter().flat_map(Filter::paths);
        for path in self.fields().chain(filtered) {
            if path.contains(['\'', '"', '\\', '`', '*']) || path.chars().any(char::is_control) {
                return refuse(format!("the field '{path}' has a character that an index on MariaDB cannot have"));
            }
            if path.split('.').count() > LEVELS_MAX {
                return refuse(format!("the field '{path}' is nested too deep for an index on MariaDB"));
            }
        }
        if self.spec.unique && self.filter.as_ref().is_some_and(|filter| filter.is_undecided) {
            return refuse(
                "the partialFilterExpression of a unique index on MariaDB may have comparisons, $in and $exists: true, all of which \
                 must hold"
                    .into(),
            );
        }
        Ok(())
    }

    /// Whether it says nothing to documents, so that it would be good for nothing if it did not serve queries.
    pub fn is_nothing_without_keys(&self) -> bool {
        matches!(self.kind, IndexKind::Wildcard(_))
    }

    /// Error 67, of a table that cannot have what an index needs beside it.
    pub fn without_keys(&self, table: &str) -> Error {
        let message = format!("the table {table} cannot have an index of the kind '{}'", self.kind.name());
        Error::new(Code::CANNOT_CREATE_INDEX, message)
    }

    fn check_without_keys(&self) -> error::Result<()> {
        let kind = self.kind.name();
        let refuse = |reason: &str| {
            Err(Error::new(Code::CANNOT_CREATE_INDEX, format!("an index of the kind '{kind}' on MariaDB {reason}")))
        };
        if self.spec.unique {
            return refuse("cannot be unique");
        }
        let places = matches!(self.kind, IndexKind::Sphere(_) | IndexKind::Plane(_));
        if places && self.spec.spec.as_doc().get("partialFilterExpression").is_some() {
            return refuse("cannot be partial");
        }
        match self.spec.spec.as_doc().get("textIndexVersion").and_then(number) {
            Some(version) if version < 3.0 => refuse("has to be of version 3"),
            _ => Ok(()),
        }
    }

    /// What ALTER TABLE adds, for [`create_clause`]. `relaxed`: nothing in them says that the index is unique.
    fn clauses(&self, relaxed: bool) -> Vec<String> {
        if !self.has_keys() {
            let marker = quote(&self.column(0));
            return vec![format!("ADD COLUMN {marker} VARBINARY(1) AS (NULL) VIRTUAL INVISIBLE")];
        }
        let mut clauses = Vec::new();
        for (position, path) in self.fields().enumerate() {
            clauses.push(format!(
                "ADD COLUMN {} LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin AS ({}) STORED INVISIBLE",
                quote(&self.text_column(position)),
                text_expression(path),
            ));
            clauses.push(format!(
                "ADD COLUMN {} DECIMAL(65,30) AS ({}) STORED INVISIBLE",
                quote(&self.decimal_column(position)),
                key::decimal_expression(&quote(&self.text_column(position))),
            ));
        }
        for (position, path) in self.filter.iter().flat_map(Filter::paths).enumerate() {
            let (text, key) = self.filter_columns(position);
            clauses.push(format!(
                "ADD COLUMN {} LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin AS ({}) STORED INVISIBLE",
                quote(&text),
                text_expression(path),
            ));
            clauses.push(Filter::key_clause(&text, &key));
        }
        for position in 0..self.fields().count() {
            let column = quote(&self.column(position));
            clauses.push(format!(
                "ADD COLUMN {column} VARBINARY({}) AS ({}) STORED INVISIBLE",
                self.bytes() + 1,
                self.key_expression(position),
            ));
            if self.spec.unique && !relaxed {
                let constraint = quote(&format!("{}.array{position}", self.sql_name));
                clauses.push(format!(
                    "ADD CONSTRAINT {constraint} CHECK ({column} IS NULL OR {column} <> {})",
                    key::ARRAY
                ));
            }
        }
        let kind = if self.spec.unique && !relaxed { "UNIQUE KEY" } else { "KEY" };
        clauses.push(format!("ADD {kind} {} ({})", quote(&self.sql_name), self.key_parts()));
        if let Some(odd) = self.odd_column().map(|odd| quote(&odd)) {
            clauses.push(format!("ADD COLUMN {odd} BOOLEAN AS ({}) STORED INVISIBLE", self.odd_expression()));
            clauses.push(format!("ADD KEY {odd} ({odd})"));
        }
        clauses
    }

    fn key_parts(&self) -> String {
        let part = |(position, column): (usize, &KeyColumn)| {
            format!("{}{}", quote(&self.column(position)), if column.descends { " DESC" } else { "" })
        };
        self.key_columns.iter().enumerate().map(part).collect::<Vec<_>>().join(",")
    }

    /// The statement that makes a plain index of a unique one, which another table watches over from now on.
    pub fn relaxing_clause(&self, table: &str) -> String {
        let constraint = |position| quote(&format!("{}.array{position}", self.sql_name));
        let constraints = (0..self.fields().count())
            .map(|position| format!("DROP CONSTRAINT IF EXISTS {}, ", constraint(position)))
            .collect::<String>();
        let name = quote(&self.sql_name);
        format!("ALTER TABLE {table} {constraints}DROP KEY {name}, ADD KEY {name} ({})", self.key_parts())
    }

    fn key_expression(&self, position: usize) -> String {
        let text = quote(&self.text_column(position));
        let decimal = quote(&self.decimal_column(position));
        let (bytes, unique) = (self.bytes(), self.spec.unique);
        let key = key::Source { text: &text, decimal: Some(&decimal), bytes, unique }.expression();
        // A sparse index has the documents that have one of its fields.
        let all: Vec<String> = (0..self.fields().count()).map(|other| quote(&self.text_column(other))).collect();
        let missing = match (self.spec.sparse, all.as_slice()) {
            (false, _) => "'2'".into(),
            (true, [_]) => "null".into(),
            (true, all) => format!("if(coalesce({}) is null,null,'2')", all.join(",")),
        };
        let key = format!("if({text} is null,{missing},{key})");
        match &self.filter {
            Some(filter) => format!("if({},{key},null)", filter.expression(|position| self.filter_columns(position))),
            None => key,
        }
    }

    /// The columns with the text and the key of a field that the filter looks at.
    fn filter_columns(&self, position: usize) -> (String, String) {
        let name = self.text_column(position);
        (format!("{name}f"), format!("{name}g"))
    }

    /// True or NULL.
    fn odd_expression(&self) -> String {
        let texts: Vec<String> =
            (0..self.fields().count()).map(|position| quote(&self.text_column(position))).collect();
        let source = |text| key::Source { text, decimal: None, bytes: self.bytes(), unique: self.spec.unique };
        let odd = key::Source::any_odd(&texts.iter().map(|text| source(text)).collect::<Vec<_>>());
        match &self.filter {
            // What the index does not have is not in its way.
            Some(_) => format!("if({} is null,null,{odd})", quote(&self.column(0))),
            None => odd,
        }
    }
}

fn key_column(index: &str, position: usize) -> String {
    format!("{index}.{position}")
}

/// The JSON text that a path leads to: NULL where there is none, a bracket where it meets an array on its way. Without blanks, as
/// the keys' expressions look for wrappers: MariaDB puts some into what it takes out of a document.
fn text_expression(path: &str) -> String {
    let components: Vec<&str> = path.split('.').collect();
    let whole = format!("json_compact(json_extract(`doc`,'{}'))", json_path(components.iter().copied()));
    if components.len() == 1 {
        return whole;
    }
    let mut arrays = String::new();
    for depth in 1..components.len() {
        let above = json_path(components[..depth].iter().copied());
        arrays.push_str(&format!(" when left(json_extract(`doc`,'{above}'),1)='[' then '['"));
    }
    format!("coalesce({whole},case{arrays} end)")
}

fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number as f64),
        Value::Double(number) => Some(number),
        _ => None,
    }
}

/// A path in MariaDB's notation. The components have been looked at by [`Index::check`].
pub(crate) fn json_path<'c>(components: impl Iterator<Item = &'c str>) -> String {
    let mut path = String::from("$");
    for component in components {
        path.push_str(".\"");
        path.push_str(component);
        path.push('"');
    }
    path
}

/// A unique index on MariaDB holds elements of arrays, but what lies in arrays within them is more than SQL takes apart.
pub(crate) fn array_in_unique() -> Error {
    let message = "a unique index on MariaDB cannot hold documents with an array within an array on the path of an indexed field, nor \
                   with any where a path has numbers in it or Selkie may not create triggers";
    Error::new(Code::CANNOT_CREATE_INDEX, message)
}

/// The statement that adds indexes, all or none. `relaxed`: the names of those that something else keeps unique.
pub(crate) fn create_clause(table: &str, indexes: &[Index], relaxed: &[&str]) -> String {
    let clauses = |index: &Index| index.clauses(relaxed.contains(&index.sql_name.as_str()));
    let clauses: Vec<String> = indexes.iter().flat_map(clauses).collect();
    format!("ALTER TABLE {table} {}", clauses.join(", "))
}

/// The statement that drops indexes.
pub(crate) fn drop_clause(table: &str, indexes: &[Index]) -> String {
    let mut clauses = Vec::new();
    for index in indexes {
        if !index.has_columns {
            clauses.push(format!("DROP COLUMN {}", quote(&index.column(0))));
            continue;
        }
        clauses.push(format!("DROP KEY {}", quote(&index.sql_name)));
        for position in 0..index.fields().count() {
            if index.spec.unique {
                clauses.push(format!(
                    "DROP CONSTRAINT IF EXISTS {}",
                    quote(&format!("{}.array{position}", index.sql_name))
                ));
            }
            clauses.push(format!("DROP COLUMN {}", quote(&index.column(position))));
            clauses.push(format!("DROP COLUMN {}", quote(&index.decimal_column(position))));
            clauses.push(format!("DROP COLUMN {}", quote(&index.text_column(position))));
        }
        for position in 0..index.filter.as_ref().map_or(0, |filter| filter.paths().count()) {
            let (text, key) = index.filter_columns(position);
            clauses.push(format!("DROP COLUMN {}, DROP COLUMN {}", quote(&key), quote(&text)));
        }
        if let Some(odd) = index.odd_column() {
            clauses.push(format!("DROP KEY {0}, DROP COLUMN {0}", quote(&odd)));
        }
    }
    format!("ALTER TABLE {table} {}", clauses.join(", "))
}

/// The indexes of a table: those remembered whose columns are there.
pub(crate) async fn load(
    connection: &mut Connection,
    schema: &str,
    table: &str,
    columns: &[Column],
) -> Result<Vec<Index>> {
    if !columns.iter().any(|column| column.name.contains('~')) {
        return Ok(Vec::new());
    }
    let sql = "SELECT spec, values_table FROM selkie.indexes WHERE schema_name = ? AND table_name = ? ORDER BY position, sql_name";
    let mut indexes = Vec::new();
    let params = [Param::Text(schema.as_bytes()), Param::Text(table.as_bytes())];
    own_schema::query(connection, &sql.into(), &params, |row| {
        if let [Some(spec), values] = row {
            let spec = DocBuf::from_vec(spec.clone()).unwrap_or_default();
            let mut index = Index::new(index_spec(spec));
            let tables = values.clone().map(own_schema::text_of).transpose()?;
            index.values = tables.as_deref().and_then(Values::read);
            index.owed = tables.as_deref().and_then(Values::read_owed);
            index.keys = tables.as_deref().and_then(KeyTable::read);
            let find = |name: &str| columns.iter().find(|column| column.name == name);
            let text = find(&index.text_column(0));
            index.has_columns = text.is_some();
            index.stands_alone = text.is_some_and(|column| column.extra.starts_with("STORED GENERATED"));
            let first = find(&index.column(0));
            if first.is_some_and(|column| column.data_type == "varbinary") {
                indexes.push(index);
            }
        }
        Ok(())
    })
    .await?;
    Ok(indexes)
}

/// Remembers indexes that are about to be created.
pub(crate) async fn remember(
    connection: &mut Connection,
    schema: &str,
    table: &str,
    first: usize,
    indexes: &[Index],
) -> Result<()> {
    let sql = "INSERT INTO selkie.indexes (schema_name, table_name, position, sql_name, spec) VALUES (?, ?, ?, ?, ?) \
               ON DUPLICATE KEY UPDATE position = VALUES(position), spec = VALUES(spec)";
    for (position, index) in indexes.iter().enumerate() {
        let params = [
            Param::Text(schema.as_bytes()),
            Param::Text(table.as_bytes()),
            Param::Unsigned((first + position) as u64),
            Param::Text(index.sql_name.as_bytes()),
            Param::Bytes(index.spec.spec.as_bytes()),
        ];
        own_schema::execute(connection, &sql.into(), &params).await?;
    }
    Ok(())
}

pub(crate) async fn forget(connection: &mut Connection, schema: &str, table: &str, indexes: &[Index]) -> Result<()> {
    let sql = "DELETE FROM selkie.indexes WHERE schema_name = ? AND table_name = ? AND sql_name = ?";
    for index in indexes {
        let params = [schema, table, &index.sql_name].map(|text| Param::Text(text.as_bytes()));
        own_schema::execute(connection, &sql.into(), &params).await?;
    }
    Ok(())
}

/// The index every collection has.
pub(crate) fn id_index() -> IndexSpec {
    let key = document::doc! { "_id": 1 };
    let spec = document::doc! { "v": 2, "key": &key, "name": "_id_" };
    IndexSpec { name: "_id_".into(), key, unique: true, sparse: false, spec }
}
