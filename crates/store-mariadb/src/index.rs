//! Secondary indexes: generated columns that hold the keys of a document's fields, and an ordinary MariaDB index over them.
//!
//! For each field there is a column with the JSON text that the path leads to, so that the document is searched once, and one with the
//! [`key`] of that text, for all indexes over the field ([`columns`]). Both are stored, because a virtual one would be computed again for each row
//! that is read, changed or purged (2,000 rows by index: 77 ms instead of 15), and be it only for a key that goes by it: what is stored says something
//! of a row without its document. An index over several fields has one more column, `odd`, with an index of its own: whether any field has a key without a
//! place.
//!
//! A missing field counts as null (unless the index is sparse), so a unique key in MariaDB is a unique index in MongoDB's sense. Values within
//! arrays cannot be had this way: all arrays have one key, which every lookup reads as well, unless there is a table with their values
//! ([`crate::index::element_table`]). A CHECK constraint keeps arrays out of a unique index until there is one.

pub(crate) mod alter_table;
mod arrays;
pub(crate) mod build;
pub(crate) mod column_key;
pub(crate) mod columns;
pub(crate) mod element_table;
pub(crate) mod json_path;
pub(crate) mod key_column;
pub(crate) mod manage;
pub(crate) mod partial;
pub(crate) mod records;
pub(crate) mod side_index;

pub(crate) use arrays::{has_number, meets_array};

use crate::index::element_table::record::Values;
use crate::index::key_column::KeyColumn;
use crate::index::partial::Filter;
use crate::index::side_index::side_table::KeyTable;
use ahash::AHashMap;
use columns::{Columns, FieldColumns, text_expression};
use document::{Collation, Doc, Value};
use error::{Code, Error};
use fulltext::TextIndex;
use index_keys::{IndexShape, keys};
use mariadb_client::{Failure, quote};
use query::predicate::Test;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use store::{IndexKind, IndexSpec, geo_keys};

/// ReadFields of one index: MariaDB has 32 columns in a key, the row's own among them.
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
    pub filter: Option<Filter>,
    pub columns: Columns,
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
    pub has_columns: bool,
    /// Columns could have its keys, but the table has no room for them.
    pub spilled: bool,
    kind: IndexKind,
    /// What a text index says of documents.
    text: Option<Arc<TextIndex>>,
}

impl Index {
    pub fn new(spec: IndexSpec) -> Index {
        Index::of(spec, true)
    }

    /// An index of which gateways compute the keys because a table has no room for its columns; `None` where it has to have them.
    pub fn spilled(spec: IndexSpec) -> Option<Index> {
        let index = Index::of(spec, false);
        (index.spilled && index.shape.is_some()).then_some(index)
    }

    fn of(spec: IndexSpec, has_room: bool) -> Index {
        let hash = Sha256::digest(&spec.name);
        let front = columns::front(&spec.name);
        let sql_name = format!("{front}~{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3]);
        let text = TextIndex::from_spec(spec.spec.as_doc()).map(Arc::new);
        // What is kept has been read before, when it was asked for.
        let kind = IndexKind::of(&spec).unwrap_or(IndexKind::Ordered);
        let collation = store::catalog::default_collation(spec.spec.as_doc());
        let suits_columns =
            matches!(kind, IndexKind::Ordered | IndexKind::Hashed) && collation.is_ok_and(|it| it.is_simple());
        let filter = Filter::of(spec.spec.as_doc());
        // What a unique index does not have must not be told apart, so its filter has to be decided.
        let is_decided = !spec.unique || filter.as_ref().is_none_or(|filter| !filter.is_undecided);
        let of_columns = suits_columns && is_decided && (has_room || kind == IndexKind::Hashed);
        let shape = if of_columns { None } else { IndexShape::new(spec.clone()).ok().map(Arc::new) };
        let refusing = match kind {
            IndexKind::Ordered if shape.is_some() => shape.clone(),
            IndexKind::Ordered if arrays::refused(&spec).is_none() => None,
            IndexKind::Hashed | IndexKind::Ordered => IndexShape::new(spec.clone()).ok().map(Arc::new),
            _ => None,
        };
        let columns = match of_columns {
            true => Columns::of_fields(&spec, &sql_name, filter.as_ref()),
            false => Columns::of_index(&spec, &sql_name, filter.as_ref()),
        };
        Index {
            key_columns: key_columns(&spec, &columns),
            columns,
            filter,
            spec: Arc::new(spec),
            sql_name,
            values: None,
            owed: None,
            stands_alone: false,
            keys: None,
            has_columns: of_columns,
            spilled: suits_columns && !of_columns,
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

    /// Whether documents are found by keys in a table of their own: see [`crate::index::side_index`].
    pub fn finds_by_keys(&self) -> bool {
        self.shape.is_some() && self.keys.as_ref().is_some_and(|keys| keys.ready)
    }

    /// Whether there are documents that the index refuses, arrays in a unique one aside.
    pub fn is_choosy(&self) -> bool {
        !self.has_keys() || self.refusing.is_some()
    }

    /// Errors for a document that MongoDB could not index: see [`TextIndex::check`], [`geo_keys::check`] and [`index_keys`].
    pub fn check_document(&self, document: Doc<'_>) -> error::Result<()> {
        if self.spec.unique && self.has_keys() && self.fields().any(|path| arrays::nest(document, path)) {
            return Err(array_in_unique());
        }
        match (&self.text, &self.refusing) {
            (Some(text), _) => text.check(document),
            (None, Some(shape)) if self.may_refuse(document) => keys::index_keys(document, shape).map(drop),
            (None, Some(_)) => Ok(()),
            (None, None) => match self.shape.as_ref().filter(|shape| shape.partial.is_some()) {
                Some(shape) => keys::index_keys(document, shape).map(drop),
                None => geo_keys::check(document, &self.spec, &self.kind),
            },
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
    pub fn column(&self, position: usize) -> &str {
        &self.columns.fields[position].key
    }

    /// The column with the JSON text of a field.
    pub fn text_column(&self, position: usize) -> &str {
        &self.columns.fields[position].text
    }

    /// The column with the compact JSON text of a path, if the path is one of the index's fields.
    pub fn column_of_text(&self, path: &str) -> Option<&str> {
        let position = self.fields().position(|field| field == path)?;
        let column = self.text_column(position);
        (column == columns::text_name(path)).then_some(column)
    }

    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        // Another kind of index has nothing but what marks it.
        let marker = (!self.has_columns).then(|| self.column(0));
        let all = self.has_columns.then(|| self.columns.names());
        marker.into_iter().chain(all.into_iter().flatten())
    }

    /// The column, and the MariaDB index over it, that tell whether a field has a key without a place; where there are several fields.
    pub fn odd_column(&self) -> Option<&str> {
        self.columns.odd.as_deref()
    }

    /// Length of each key, less the byte in front.
    pub fn bytes(&self) -> usize {
        self.columns.bytes
    }

    /// Error 67 for what cannot be an index here.
    pub fn check(&self) -> error::Result<()> {
        let refuse = |reason: String| Err(Error::new(Code::CANNOT_CREATE_INDEX, reason));
        if !self.has_keys() {
            return self.check_without_keys();
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

    /// Whether it is of no use without the tables with its keys: it says nothing to documents, or it is unique by them.
    pub fn is_nothing_without_keys(&self) -> bool {
        matches!(self.kind, IndexKind::Wildcard(_)) || self.spilled || self.spec.unique && !self.has_keys()
    }

    /// The tables by which gateways keep the index unique, if they do and not MariaDB: see [`crate::index::side_index::claims`].
    pub fn claims(&self) -> Option<&KeyTable> {
        self.keys.as_ref().filter(|_| self.is_claimed())
    }

    /// Whether gateways keep the index unique, and not MariaDB.
    pub fn is_claimed(&self) -> bool {
        self.spec.unique && !self.has_keys()
    }

    /// Whether the gateway that made the index has not come to the end: it is at it, or was killed.
    pub fn is_unfinished(&self) -> bool {
        self.is_nothing_without_keys() && !self.keys.as_ref().is_some_and(|keys| keys.filled)
    }

    /// How strings are compared in it.
    pub fn collation(&self) -> Collation {
        store::catalog::default_collation(self.spec.spec.as_doc()).unwrap_or(Collation::SIMPLE)
    }

    /// Error 67, of a table that cannot have what an index needs beside it.
    pub fn without_keys(&self, table: &str) -> Error {
        let message = format!("the table {table} cannot have an index of the kind '{}'", self.kind.name());
        Error::new(Code::CANNOT_CREATE_INDEX, message)
    }

    /// What is told where the tables with an index's keys cannot be made, without which it would be good for nothing.
    pub fn without_triggers(&self, failure: Failure) -> Failure {
        if !self.spilled && !self.spec.unique {
            return failure;
        }
        let message = format!(
            "the keys of the index '{}' do not fit into columns of the table in MariaDB, and the triggers that it needs instead cannot be \
             made: {failure}",
            self.spec.name
        );
        Error::new(Code::CANNOT_CREATE_INDEX, message).into()
    }

    fn check_without_keys(&self) -> error::Result<()> {
        let kind = self.kind.name();
        let refuse = |reason: &str| {
            Err(Error::new(Code::CANNOT_CREATE_INDEX, format!("an index of the kind '{kind}' on MariaDB {reason}")))
        };
        if self.spec.unique && self.kind != IndexKind::Ordered {
            return refuse("cannot be unique");
        }
        Ok(())
    }

    /// What ALTER TABLE adds for the index besides columns. `relaxed`: nothing in it says that the index is unique.
    pub fn key_clauses(&self, relaxed: bool) -> Vec<String> {
        let mut clauses = Vec::new();
        let unique = self.spec.unique && !relaxed;
        for (position, field) in self.columns.fields.iter().enumerate().filter(|_| unique) {
            let (constraint, column) = (quote(&self.constraint(position)), quote(&field.key));
            let array = column_key::ARRAY;
            clauses.push(format!("ADD CONSTRAINT {constraint} CHECK ({column} IS NULL OR {column} <> {array})"));
        }
        let kind = if unique { "UNIQUE KEY" } else { "KEY" };
        clauses.push(format!("ADD {kind} {} ({})", quote(&self.sql_name), self.key_parts()));
        clauses.extend(self.odd_column().map(|odd| format!("ADD KEY {0} ({0})", quote(odd))));
        clauses
    }

    /// The constraint that keeps a field of a unique index from meeting arrays.
    pub fn constraint(&self, position: usize) -> String {
        format!("{}.array{position}", self.sql_name)
    }

    fn key_parts(&self) -> String {
        let part = |(position, column): (usize, &KeyColumn)| {
            format!("{}{}", quote(self.column(position)), if column.descends { " DESC" } else { "" })
        };
        self.key_columns.iter().enumerate().map(part).collect::<Vec<_>>().join(",")
    }

    /// The statement that makes a plain index of a unique one, which another table watches over from now on.
    pub fn relaxing_clause(&self, table: &str) -> String {
        let constraints = (0..self.fields().count())
            .map(|position| format!("DROP CONSTRAINT IF EXISTS {}, ", quote(&self.constraint(position))))
            .collect::<String>();
        let name = quote(&self.sql_name);
        format!("ALTER TABLE {table} {constraints}DROP KEY {name}, ADD KEY {name} ({})", self.key_parts())
    }
}

pub(crate) fn key_columns(spec: &IndexSpec, columns: &Columns) -> Box<[KeyColumn]> {
    let directions = spec.key.as_doc().iter().map(|(_, direction)| number(direction));
    let column = |(field, direction): (&FieldColumns, Option<f64>)| {
        KeyColumn::named(&field.key, direction.is_some_and(|direction| direction < 0.0))
    };
    columns.fields.iter().zip(directions).map(column).collect()
}

fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number as f64),
        Value::Double(number) => Some(number),
        _ => None,
    }
}

/// A unique index on MariaDB holds elements of arrays, but what lies in arrays within them is more than SQL takes apart.
pub(crate) fn array_in_unique() -> Error {
    let message = "a unique index on MariaDB cannot hold documents with an array within an array on the path of an indexed field, nor \
                   with any where a path has numbers in it or Selkie may not create triggers";
    Error::new(Code::CANNOT_CREATE_INDEX, message)
}

/// Error 67 for fields that cannot both be indexed: the names of their columns, which are made of hashes, are the same.
pub(crate) fn check_apart(known: &[Index], wanted: &[Index]) -> error::Result<()> {
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

/// The index every collection has.
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
        assert!(check_apart(std::slice::from_ref(&one), &[same, index("a")]).is_ok());
        assert_eq!(check_apart(&[one], &[other]).unwrap_err().code(), Code::CANNOT_CREATE_INDEX);
    }
}
