//! `$set` of top-level fields as one statement: the server replaces the values, or appends them.
//!
//! The statement finds no row if each field has its value already. A value that SQL has encoded
//! differently (`1.50`) counts as another value.

use crate::catalog::table::Table;
use crate::encoding;
use crate::index::json_path::json_path;
use crate::write::change::update_statement::{Statement, VALUES_BYTES_MAX, text};
use mariadb_wire::Param;
use update::FieldAssignment;

/// With more fields the document is read first.
const FIELDS_MAX: usize = 16;

/// Values to be set, as parameters of the statement.
pub(super) struct Set {
    fields: Vec<Field>,
}

struct Field {
    path: String,
    /// As JSON.
    value: Vec<u8>,
}

impl Set {
    /// Returns `None` if there are too many values or they are too long.
    pub fn new(fields: &[FieldAssignment<'_>]) -> Option<Set> {
        if fields.len() > FIELDS_MAX {
            return None;
        }
        let field = |set: &FieldAssignment<'_>| Field {
            path: json_path(std::iter::once(set.field)),
            value: encoding::encode_value(set.value),
        };
        let fields: Vec<Field> = fields.iter().map(field).collect();
        let bytes: usize = fields.iter().map(|field| field.value.len()).sum();
        (bytes <= VALUES_BYTES_MAX).then_some(Set { fields })
    }

    pub fn statement<'p>(&'p self, table: &Table, id: &'p [u8]) -> Statement<'p> {
        let mut statement = Statement::update(table);
        statement.add("JSON_SET(doc", []);
        for Field { path, value } in &self.fields {
            statement.add(", ?, JSON_COMPACT(?)", [text(path), Param::Text(value)]);
        }
        statement.add(")", []);
        statement.add_condition(id);
        let mut before = " AND NOT (";
        for Field { path, value } in &self.fields {
            statement.add(before, []);
            statement.add("JSON_COMPACT(JSON_EXTRACT(doc, ?)) <=> ?", [text(path), Param::Text(value)]);
            before = " AND ";
        }
        statement.add(")", []);
        statement
    }
}
