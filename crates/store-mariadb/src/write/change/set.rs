//! `$set` of fields of the document as one statement: the server puts the values in place, or adds them behind the others.
//!
//! The statement finds no row where each field has its value already. A value that SQL has spelled otherwise than Selkie does (`1.50`) is
//! another one here.

use crate::catalog::table::Table;
use crate::encoding;
use crate::index::json_path::json_path;
use crate::write::change::update_statement::{Statement, VALUES_BYTES_MAX, text};
use mariadb_wire::Param;
use update::FieldAssignment;

/// More fields are set by the way that reads first.
const FIELDS_MAX: usize = 16;

/// ElementTable to be set, ready to be stated.
pub(super) struct Set {
    fields: Vec<Field>,
}

struct Field {
    path: String,
    /// As JSON.
    value: Vec<u8>,
}

impl Set {
    /// `None` where there are too many of them or they are too long.
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
        statement.add_place(id);
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
