//! Secondary indexes: one generated column per field, holding the field's value as text, and an ordinary key over them.
//!
//! The text is the one that ids have ([`id_text`]), so equal values have equal texts whatever their type and spelling, and a unique key
//! in MariaDB is a unique index in MongoDB's sense: a missing field counts as null, which is a text and not NULL (unless the
//! index is sparse). Values within arrays cannot be had this way: an index that is not unique keeps arrays in a range of their own,
//! which every lookup reads as well; a unique index refuses documents with an array on its path, by a CHECK constraint.

use crate::connection::Connection;
use crate::failure::Result;
use crate::id_text::{self, IdForm};
use crate::names::quote;
use crate::own_schema;
use crate::table::Column;
use document::{Doc, DocBuf, Value};
use error::{Code, Error};
use mariadb_wire::Param;
use sha2::{Digest, Sha256};
use store::IndexSpec;

/// What a key of MariaDB may take, in characters of four bytes, less some room.
const KEY_CHARS_MAX: usize = 760;

/// Fields of one index: each needs room for a hash.
const FIELDS_MAX: usize = 10;

/// Levels of a path; deeper ones may lie in what the JSON spelling keeps as a blob.
const LEVELS_MAX: usize = 16;

/// A secondary index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub spec: IndexSpec,
    /// The key's name in MariaDB; its columns' names begin with it.
    pub sql_name: String,
}

impl Index {
    pub fn new(spec: IndexSpec) -> Index {
        let hash = Sha256::digest(&spec.name);
        let front: String = spec.name.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '_').take(30).collect();
        let sql_name = format!("{front}~{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3]);
        Index { spec, sql_name }
    }

    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.spec.key.as_doc().iter().map(|(path, _)| path)
    }

    /// Whether the index is not to be used for finding documents.
    pub fn is_hidden(&self) -> bool {
        self.spec.spec.as_doc().get("hidden").is_some_and(Value::is_truthy)
    }

    pub fn column(&self, position: usize) -> String {
        format!("{}.{position}", self.sql_name)
    }

    /// Length of each column, in characters.
    pub fn chars(&self) -> usize {
        (KEY_CHARS_MAX / self.fields().count().max(1)).min(id_text::ID_CHARS_MAX)
    }

    /// Error 67 for what cannot be an index here.
    pub fn check(&self) -> error::Result<()> {
        let refuse = |reason: String| Err(Error::new(Code::CANNOT_CREATE_INDEX, reason));
        if self.spec.unique && self.spec.spec.as_doc().get("collation").is_some() {
            return refuse(
                "a unique index on MariaDB cannot have a collation: its keys are told apart by their bytes".into(),
            );
        }
        if self.fields().count() > FIELDS_MAX {
            return refuse(format!("an index over more than {FIELDS_MAX} fields is not supported on MariaDB"));
        }
        for path in self.fields() {
            if path.contains(['\'', '"', '\\', '`', '*']) || path.chars().any(char::is_control) {
                return refuse(format!("the field '{path}' has a character that an index on MariaDB cannot have"));
            }
            if path.split('.').count() > LEVELS_MAX {
                return refuse(format!("the field '{path}' is nested too deep for an index on MariaDB"));
            }
        }
        let options = self.spec.spec.as_doc();
        for option in ["partialFilterExpression", "wildcardProjection"] {
            if options.get(option).is_some() {
                return refuse(format!("the index option '{option}' is not supported on MariaDB yet"));
            }
        }
        Ok(())
    }

    /// What ALTER TABLE adds, for [`create_clause`].
    fn clauses(&self) -> Vec<String> {
        let mut clauses = Vec::new();
        let mut columns = Vec::new();
        for (position, path) in self.fields().enumerate() {
            let column = quote(&self.column(position));
            clauses.push(format!(
                "ADD COLUMN {column} VARCHAR({}) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin AS ({}) VIRTUAL INVISIBLE",
                self.chars(),
                self.column_expression(path),
            ));
            if self.spec.unique {
                let constraint = quote(&format!("{}.array{position}", self.sql_name));
                clauses
                    .push(format!("ADD CONSTRAINT {constraint} CHECK ({column} IS NULL OR left({column},1) <> '[')"));
            }
            columns.push(column);
        }
        let kind = if self.spec.unique { "UNIQUE KEY" } else { "KEY" };
        clauses.push(format!("ADD {kind} {} ({})", quote(&self.sql_name), columns.join(",")));
        clauses
    }

    fn column_expression(&self, path: &str) -> String {
        let whole = id_text::expression_of(&json_path(path.split('.')), self.chars());
        // A missing field is null, except to a sparse index.
        let missing = if self.spec.sparse { "null" } else { "'null'" };
        let components: Vec<&str> = path.split('.').collect();
        let mut array_above = String::new();
        for depth in 1..components.len() {
            let above = json_path(components[..depth].iter().copied());
            array_above.push_str(&format!("when left(json_extract(`doc`,'{above}'),1) = '[' then '[' "));
        }
        let value = json_path(components.iter().copied());
        format!("case {array_above}when json_extract(`doc`,'{value}') is null then {missing} else {whole} end")
    }

    /// A condition, with parameters, that holds for every document in which the first field equals one of `values`; `None` where
    /// the index is of no use.
    pub fn equality<'v>(&self, values: impl Iterator<Item = Value<'v>>) -> Option<(String, Vec<Vec<u8>>)> {
        if self.spec.sparse {
            return None;
        }
        let mut texts = Vec::new();
        for value in values {
            match value {
                // Spelled in one way only.
                Value::String(text) => {
                    texts.extend(
                        id_text::candidates_within(Value::Symbol(text), IdForm::Canonical, self.chars())?.texts,
                    );
                }
                Value::ObjectId(_) | Value::Boolean(_) | Value::Int32(_) | Value::Int64(_) => {}
                Value::Double(number) if number.is_finite() => {}
                _ => return None,
            }
            texts.extend(id_text::candidates_within(value, IdForm::Canonical, self.chars())?.texts);
        }
        if texts.is_empty() || texts.len() > 1_000 {
            return None;
        }
        let column = quote(&self.column(0));
        let marks = vec!["?"; texts.len()].join(",");
        // Arrays may hold the value.
        Some((format!("({column} IN ({marks}) OR ({column} >= '[' AND {column} < '\\\\'))"), texts))
    }
}

/// A path in MariaDB's notation. The components have been looked at by [`Index::check`].
fn json_path<'c>(components: impl Iterator<Item = &'c str>) -> String {
    let mut path = String::from("$");
    for component in components {
        path.push_str(".\"");
        path.push_str(component);
        path.push('"');
    }
    path
}

/// The statement that adds indexes, all or none.
pub(crate) fn create_clause(table: &str, indexes: &[Index]) -> String {
    let clauses: Vec<String> = indexes.iter().flat_map(Index::clauses).collect();
    format!("ALTER TABLE {table} {}", clauses.join(", "))
}

/// The statement that drops indexes.
pub(crate) fn drop_clause(table: &str, indexes: &[Index]) -> String {
    let mut clauses = Vec::new();
    for index in indexes {
        clauses.push(format!("DROP KEY {}", quote(&index.sql_name)));
        for position in 0..index.fields().count() {
            if index.spec.unique {
                clauses.push(format!("DROP CONSTRAINT {}", quote(&format!("{}.array{position}", index.sql_name))));
            }
            clauses.push(format!("DROP COLUMN {}", quote(&index.column(position))));
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
    let sql = "SELECT spec FROM selkie.indexes WHERE schema_name = ? AND table_name = ? ORDER BY position, sql_name";
    let mut indexes = Vec::new();
    let params = [Param::Text(schema.as_bytes()), Param::Text(table.as_bytes())];
    own_schema::query(connection, &sql.into(), &params, |row| {
        if let [Some(spec)] = row {
            let spec = DocBuf::from_vec(spec.clone()).unwrap_or_default();
            let index = Index::new(spec_of(spec));
            if columns.iter().any(|column| column.name == index.column(0)) {
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

/// The specification that a document spells.
fn spec_of(spec: DocBuf) -> IndexSpec {
    let document = spec.as_doc();
    let flag = |name: &str| document.get(name).is_some_and(Value::is_truthy);
    IndexSpec {
        name: document.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        key: document.get("key").and_then(Value::as_document).map(Doc::to_owned).unwrap_or_default(),
        unique: flag("unique"),
        sparse: flag("sparse"),
        spec,
    }
}

/// The index every collection has.
pub(crate) fn id_index() -> IndexSpec {
    let key = document::doc! { "_id": 1 };
    let spec = document::doc! { "v": 2, "key": &key, "name": "_id_" };
    IndexSpec { name: "_id_".into(), key, unique: true, sparse: false, spec }
}
