//! Secondary indexes.
//!
//! Most indexes are generated columns with the keys of a document's fields, and an ordinary MariaDB
//! index over them. Each field has a column with the JSON text of its path, so that the document is
//! searched once, and one with the [`column_key`] of that text, shared by all indexes over the
//! field ([`columns`]). Both are stored: a virtual column would be computed again for each row that
//! is read, changed or purged (2,000 rows by index: 77 ms instead of 15). Stored columns also give
//! facts about a row without its document. An index over several fields has one more column, `odd`,
//! with an index of its own, which shows whether any field has an unordered key.
//!
//! A missing field counts as null (unless the index is sparse), so a unique key in MariaDB is a
//! unique index in MongoDB's sense. Elements of arrays have no column keys: all arrays have one
//! key, which every lookup reads as well, unless there is an element table ([`element_table`]). A
//! CHECK constraint refuses arrays in a unique index until there is one.
//!
//! Indexes whose keys SQL cannot compute have a side table ([`side_index`]).

pub(crate) mod alter_table;
mod arrays;
pub(crate) mod build;
pub(crate) mod column_key;
pub(crate) mod columns;
pub(crate) mod element_table;
pub(crate) mod form;
pub(crate) mod json_path;
pub(crate) mod key_column;
pub(crate) mod manage;
pub(crate) mod partial;
pub(crate) mod records;
pub(crate) mod side_index;

pub(crate) use arrays::{has_number, meets_array};

use crate::index::element_table::record::ElementTable;
use crate::index::form::{ColumnKeyForm, IndexForm, SideIndexForm};
use crate::index::key_column::KeyColumn;
use crate::index::partial::Filter;
use crate::index::side_index::side_table::SideTable;
use access::conditions::PlannerQuery;
use ahash::AHashMap;
use columns::{Columns, text_expression};
use document::{Collation, Doc, Value};
use error::{Code, Error};
use fulltext::TextIndex;
use index_keys::{IndexShape, keys};
use mariadb_client::{Failure, quote};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use store::{IndexKind, IndexSpec, geo_keys};

/// Fields of one index: MariaDB has 32 columns in a key, the row's own among them.
const FIELDS_MAX: usize = 31;

/// The most levels of a path; the JSON encoding may store deeper ones as a blob.
const LEVELS_MAX: usize = 16;

/// A secondary index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub spec: Arc<IndexSpec>,
    /// The key's name in MariaDB; names of its own columns begin with it.
    pub sql_name: String,
    /// The filter of a partial index.
    pub filter: Option<Filter>,
    pub form: IndexForm,
    kind: IndexKind,
}

/// Facts about a kind of index on MariaDB.
struct KindFacts {
    /// Columns can hold its keys.
    suits_columns: bool,
    refusal: Refusal,
}

/// How a kind of index finds documents that it must refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Never,
    ByKeys,
    ByGeometry,
    ByText,
}

impl KindFacts {
    fn of(kind: &IndexKind) -> KindFacts {
        let (suits_columns, refusal) = match kind {
            IndexKind::Ordered | IndexKind::Hashed => (true, Refusal::ByKeys),
            IndexKind::Sphere(_) | IndexKind::Plane(_) => (false, Refusal::ByGeometry),
            IndexKind::Text(_) => (false, Refusal::ByText),
            IndexKind::Wildcard(_) => (false, Refusal::Never),
        };
        KindFacts { suits_columns, refusal }
    }
}

impl Index {
    pub fn new(spec: IndexSpec) -> Index {
        Index::with_room(spec, true)
    }

    /// Returns a side index in the place of one whose columns do not fit into the table; `None` if
    /// the index must have columns.
    pub fn spilled(spec: IndexSpec) -> Option<Index> {
        let index = Index::with_room(spec, false);
        index.side_index().is_some_and(|side| side.spilled).then_some(index)
    }

    fn with_room(spec: IndexSpec, has_room: bool) -> Index {
        let hash = Sha256::digest(&spec.name);
        let front = columns::name_start(&spec.name);
        let sql_name = format!("{front}~{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3]);
        // A recorded specification was validated when the index was created.
        let kind = IndexKind::of(&spec).unwrap_or(IndexKind::Ordered);
        let collation = store::catalog::default_collation(spec.spec.as_doc());
        let suits_columns = KindFacts::of(&kind).suits_columns && collation.is_ok_and(|it| it.is_simple());
        let filter = Filter::of(spec.spec.as_doc());
        // Documents outside a unique index must not be compared, so SQL must decide its filter.
        let is_decided = !spec.unique || filter.as_ref().is_none_or(|filter| !filter.is_undecided);
        let in_columns = suits_columns && is_decided && (has_room || kind == IndexKind::Hashed);
        let side_shape = if in_columns { None } else { IndexShape::new(spec.clone()).ok().map(Arc::new) };
        let form = match side_shape {
            Some(shape) => IndexForm::SideIndex(SideIndexForm {
                shape,
                table: None,
                marker: format!("{sql_name}.0"),
                spilled: suits_columns,
                text: TextIndex::from_spec(spec.spec.as_doc()).map(Arc::new),
            }),
            None => {
                let refuses = kind == IndexKind::Hashed || arrays::refused(&spec).is_some();
                let refusal_shape = refuses.then(|| IndexShape::new(spec.clone()).ok().map(Arc::new)).flatten();
                let columns = Columns::new(&spec, &sql_name, filter.as_ref());
                IndexForm::ColumnKey(ColumnKeyForm::new(&spec, columns, refusal_shape))
            }
        };
        Index { filter, spec: Arc::new(spec), sql_name, form, kind }
    }

    /// Returns the paths of the fields.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.spec.key.as_doc().iter().map(|(path, _)| path)
    }

    /// Returns whether the index is hidden from queries.
    pub fn is_hidden(&self) -> bool {
        self.spec.spec.as_doc().get("hidden").is_some_and(Value::is_truthy)
    }

    /// Returns the kind of the index.
    pub fn kind(&self) -> &IndexKind {
        &self.kind
    }

    /// Returns the form of an index on generated columns.
    pub fn column_key(&self) -> Option<&ColumnKeyForm> {
        match &self.form {
            IndexForm::ColumnKey(form) => Some(form),
            IndexForm::SideIndex(_) => None,
        }
    }

    /// Returns the form of a side index.
    pub fn side_index(&self) -> Option<&SideIndexForm> {
        match &self.form {
            IndexForm::ColumnKey(_) => None,
            IndexForm::SideIndex(form) => Some(form),
        }
    }

    /// Returns whether generated columns hold the keys.
    pub fn has_column_keys(&self) -> bool {
        self.column_key().is_some()
    }

    /// Returns the table with the elements of arrays, if it exists.
    pub fn element_table(&self) -> Option<&ElementTable> {
        self.column_key()?.elements.present()
    }

    /// Returns the element table that the index should have and, after an interruption, lacks. A
    /// unique index is not unique until that is repaired.
    pub fn pending_element_table(&self) -> Option<&ElementTable> {
        self.column_key()?.elements.pending_repair()
    }

    /// Returns the table with the keys that gateways compute, if it exists.
    pub fn side_table(&self) -> Option<&SideTable> {
        self.side_index()?.table.as_ref()
    }

    /// Returns the columns with the keys of the fields; none of a side index.
    pub fn key_columns(&self) -> &[KeyColumn] {
        self.column_key().map_or(&[], |form| &form.key_columns)
    }

    /// Returns whether the side table serves queries.
    pub fn serves_by_side_table(&self) -> bool {
        self.side_table().is_some_and(|table| table.ready)
    }

    /// Returns whether the index may refuse documents, apart from arrays in a unique one.
    pub fn may_refuse_documents(&self) -> bool {
        self.column_key().is_none_or(|form| form.refusal_shape.is_some())
    }

    /// Fails for a document that MongoDB could not index: see [`TextIndex::check`],
    /// [`geo_keys::check`] and [`index_keys`].
    pub fn check_document(&self, document: Doc<'_>) -> error::Result<()> {
        match &self.form {
            IndexForm::ColumnKey(form) => {
                if self.spec.unique && self.fields().any(|path| arrays::nest(document, path)) {
                    return Err(array_in_unique());
                }
                match &form.refusal_shape {
                    Some(shape) if self.may_refuse(document) => keys::index_keys(document, shape).map(drop),
                    Some(_) => Ok(()),
                    None => geo_keys::check(document, &self.spec, &self.kind),
                }
            }
            IndexForm::SideIndex(SideIndexForm { text: Some(text), .. }) => text.check(document),
            IndexForm::SideIndex(SideIndexForm { shape, .. }) => match KindFacts::of(&self.kind).refusal {
                Refusal::ByGeometry if shape.partial.is_none() => geo_keys::check(document, &self.spec, &self.kind),
                Refusal::Never | Refusal::ByText if shape.partial.is_none() => Ok(()),
                _ => keys::index_keys(document, shape).map(drop),
            },
        }
    }

    /// Returns whether an index on columns may refuse a document, without computing its keys.
    fn may_refuse(&self, document: Doc<'_>) -> bool {
        if self.kind != IndexKind::Ordered {
            return true;
        }
        let arrays = self.fields().filter(|path| meets_array(document, path)).count();
        arrays::refused(&self.spec).is_some_and(|refused| arrays >= refused)
    }

    /// Returns an SQL condition that holds for each document that the index refuses. It does not
    /// need the index's columns.
    pub fn refused_condition(&self) -> String {
        let arrays = if self.spec.unique { Some(1) } else { arrays::refused(&self.spec) };
        match arrays.filter(|_| self.has_column_keys() && self.kind == IndexKind::Ordered) {
            None => "TRUE".to_owned(),
            Some(refused) => {
                let arrays = self.fields().map(|path| format!("ifnull(left({},1)='[',0)", text_expression(path)));
                format!("{} >= {refused}", arrays.collect::<Vec<_>>().join(" + "))
            }
        }
    }

    /// Returns whether the index may lack documents.
    pub fn excludes_documents(&self) -> bool {
        self.spec.sparse || self.filter.is_some()
    }

    /// Returns whether the index is partial.
    pub fn is_partial(&self) -> bool {
        self.filter.is_some()
    }

    /// Returns whether the filter of the index includes every document of the query.
    pub fn has_all_matches(&self, wanted: &PlannerQuery<'_>) -> bool {
        let is_implied = |filter: &Filter| filter.is_implied_by(&wanted.document_conditions().collect::<Vec<_>>());
        self.filter.as_ref().is_none_or(is_implied)
    }

    /// Returns the column with the keys of a field; of a side index, the marker.
    pub fn column(&self, position: usize) -> &str {
        match &self.form {
            IndexForm::ColumnKey(form) => &form.columns.fields[position].key,
            IndexForm::SideIndex(form) => &form.marker,
        }
    }

    /// Returns the column with the JSON text of a field. Must be an index on columns.
    pub fn text_column(&self, position: usize) -> &str {
        self.column_key().map_or("", |form| &form.columns.fields[position].text)
    }

    /// Returns the column with the compact JSON text of a path, if the path is one of the index's
    /// fields.
    pub fn column_of_text(&self, path: &str) -> Option<&str> {
        let position = self.fields().position(|field| field == path)?;
        Some(self.text_column(position))
    }

    /// Returns the names of all columns of the index, some of them more than once.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        let marker = self.side_index().map(|form| form.marker.as_str());
        let all = self.column_key().map(|form| form.columns.names());
        marker.into_iter().chain(all.into_iter().flatten())
    }

    /// Returns the column, and the MariaDB index over it, that show whether a field has an
    /// unordered key. Only indexes over several fields have it.
    pub fn unordered_column(&self) -> Option<&str> {
        self.column_key()?.columns.odd.as_deref()
    }

    /// Returns the length of each key, without the type byte.
    pub fn bytes(&self) -> usize {
        self.column_key().map_or(0, |form| form.columns.bytes)
    }

    /// Fails with 67 if the index is not supported.
    pub fn check(&self) -> error::Result<()> {
        let refuse = |reason: String| Err(Error::new(Code::CANNOT_CREATE_INDEX, reason));
        if !self.has_column_keys() {
            return self.check_side_index();
        }
        if self.fields().count() > FIELDS_MAX {
            return refuse(format!("an index over more than {FIELDS_MAX} fields is not supported on MariaDB"));
        }
        let filtered = self.filter.iter().flat_map(Filter::paths);
        for path in self.fields().chain(filtered) {
            if path.split('.').count() > LEVELS_MAX {
                return refuse(format!("the field '{path}' is nested too deep for an index on MariaDB"));
            }
        }
        Ok(())
    }

    /// Returns whether the index is useless without its side table: it refuses no documents, or the
    /// side table keeps it unique.
    pub fn needs_side_table(&self) -> bool {
        self.side_index()
            .is_some_and(|form| form.spilled || self.spec.unique || KindFacts::of(&self.kind).refusal == Refusal::Never)
    }

    /// Returns the side table by which gateways keep the index unique: see
    /// [`crate::index::side_index::claims`].
    pub fn claims(&self) -> Option<&SideTable> {
        self.side_table().filter(|_| self.spec.unique)
    }

    /// Returns whether gateways, and not MariaDB, keep the index unique.
    pub fn is_claimed(&self) -> bool {
        self.spec.unique && !self.has_column_keys()
    }

    /// Returns whether the gateway that creates the index has not finished: it is building, or was
    /// killed.
    pub fn is_unfinished(&self) -> bool {
        self.needs_side_table() && !self.side_table().is_some_and(|table| table.filled)
    }

    /// Returns the collation of the index.
    pub fn collation(&self) -> Collation {
        store::catalog::default_collation(self.spec.spec.as_doc()).unwrap_or(Collation::SIMPLE)
    }

    /// Returns error 67 for a table that cannot have the index's side table.
    pub fn unsuitable_table(&self, table: &str) -> Error {
        let message = format!("the table {table} cannot have an index of the kind '{}'", self.kind.name());
        Error::new(Code::CANNOT_CREATE_INDEX, message)
    }

    /// Returns the error if the side table cannot be created, without which the index would be
    /// useless.
    pub fn without_side_table(&self, failure: Failure) -> Failure {
        if !self.side_index().is_some_and(|form| form.spilled) && !self.spec.unique {
            return failure;
        }
        let message = format!(
            "the keys of the index '{}' do not fit into columns of the table in MariaDB, and the triggers that it needs instead cannot be \
             made: {failure}",
            self.spec.name
        );
        Error::new(Code::CANNOT_CREATE_INDEX, message).into()
    }

    fn check_side_index(&self) -> error::Result<()> {
        let kind = self.kind.name();
        let refuse = |reason: &str| {
            Err(Error::new(Code::CANNOT_CREATE_INDEX, format!("an index of the kind '{kind}' on MariaDB {reason}")))
        };
        if self.spec.unique && self.kind != IndexKind::Ordered {
            return refuse("cannot be unique");
        }
        Ok(())
    }

    /// Returns the clauses of ALTER TABLE that add keys and constraints. `relaxed`: without
    /// uniqueness.
    pub fn key_clauses(&self, relaxed: bool) -> Vec<String> {
        let mut clauses = Vec::new();
        let Some(form) = self.column_key() else { return clauses };
        let unique = self.spec.unique && !relaxed;
        for (position, field) in form.columns.fields.iter().enumerate().filter(|_| unique) {
            let (constraint, column) = (quote(&self.constraint(position)), quote(&field.key));
            let array = column_key::ARRAY;
            clauses.push(format!("ADD CONSTRAINT {constraint} CHECK ({column} IS NULL OR {column} <> {array})"));
        }
        let kind = if unique { "UNIQUE KEY" } else { "KEY" };
        clauses.push(format!("ADD {kind} {} ({})", quote(&self.sql_name), self.key_parts()));
        clauses.extend(self.unordered_column().map(|odd| format!("ADD KEY {0} ({0})", quote(odd))));
        clauses
    }

    /// Returns the name of the constraint that refuses arrays in a field of a unique index.
    pub fn constraint(&self, position: usize) -> String {
        format!("{}.array{position}", self.sql_name)
    }

    fn key_parts(&self) -> String {
        let part = |(position, column): (usize, &KeyColumn)| {
            format!("{}{}", quote(self.column(position)), if column.descends { " DESC" } else { "" })
        };
        self.key_columns().iter().enumerate().map(part).collect::<Vec<_>>().join(",")
    }

    /// Returns the statement that replaces a unique key by a plain one, because another table
    /// ensures uniqueness from now on.
    pub fn relaxing_clause(&self, table: &str) -> String {
        let constraints = (0..self.fields().count())
            .map(|position| format!("DROP CONSTRAINT IF EXISTS {}, ", quote(&self.constraint(position))))
            .collect::<String>();
        let name = quote(&self.sql_name);
        format!("ALTER TABLE {table} {constraints}DROP KEY {name}, ADD KEY {name} ({})", self.key_parts())
    }
}

/// Returns error 67: a unique index on MariaDB holds elements of arrays, but SQL cannot unwind
/// arrays within them.
pub(crate) fn array_in_unique() -> Error {
    let message = "a unique index on MariaDB cannot hold documents with an array within an array on the path of an indexed field, nor \
                   with any where a path has numbers in it or Selkie may not create triggers";
    Error::new(Code::CANNOT_CREATE_INDEX, message)
}

/// Fails with 67 for fields that cannot both be indexed: the names of their columns, made of
/// hashes, collide.
pub(crate) fn check_column_names(known: &[Index], wanted: &[Index]) -> error::Result<()> {
    let mut paths = AHashMap::new();
    for index in known.iter().chain(wanted) {
        for path in index.fields().chain(index.filter.iter().flat_map(Filter::paths)) {
            let other = *paths.entry(columns::text_name(path)).or_insert(path);
            if other != path {
                let message = format!("an index on MariaDB cannot be on '{path}' where another is on '{other}'");
                return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
            }
        }
    }
    Ok(())
}

/// Returns the index on `_id`, which every collection has.
pub(crate) fn id_index() -> IndexSpec {
    let key = document::doc! { "_id": 1 };
    let spec = document::doc! { "v": 2, "key": &key, "name": "_id_" };
    IndexSpec { name: "_id_".into(), key, unique: true, sparse: false, spec }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocBuf, doc};

    fn index(path: &str) -> Index {
        let key = DocBuf::build(|writer| writer.append(path, 1));
        let spec = doc! { "v": 2, "key": &key, "name": "i" };
        Index::new(IndexSpec { name: "i".into(), key, unique: false, sparse: false, spec })
    }

    #[test]
    fn fields_whose_columns_have_one_name_are_not_both_indexed() {
        let [one, other, same] = ["field30687", "field76524", "field30687"].map(index);
        assert_eq!(columns::text_name("field30687"), columns::text_name("field76524"));
        assert!(check_column_names(std::slice::from_ref(&one), &[same, index("a")]).is_ok());
        assert_eq!(check_column_names(&[one], &[other]).unwrap_err().code(), Code::CANNOT_CREATE_INDEX);
    }
}
