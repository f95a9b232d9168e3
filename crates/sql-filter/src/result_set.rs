//! Result sets as filters see and change them.

use crate::refusal::Refusal;
use mariadb_wire::column_definition::ColumnDefinition;
use mariadb_wire::{ColumnType, Malformed};
use std::fmt;

/// Observes and changes the result sets of a statement, row by row.
pub trait ResultEditor: fmt::Debug {
    /// Begins a result set with these columns.
    fn columns(&mut self, columns: &[Column]);

    /// Observes a row, and may change it. `is_binary`: it is of a prepared statement.
    fn row(&mut self, row: &mut Vec<u8>, is_binary: bool) -> Row;

    /// Returns whether no row may be sent before the end of its result set has been seen.
    fn holds_rows(&self) -> bool {
        false
    }
}

/// A column of a result set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its names can be read: the character set of the session's results is a superset of ASCII.
    pub is_readable: bool,
    pub schema: String,
    /// The table itself, not its alias; empty for an expression.
    pub table: String,
    /// The column of that table, not its alias; empty for an expression.
    pub original_name: String,
    /// Its name in the result set.
    pub name: String,
    pub column_type: ColumnType,
}

/// An editor's decision about a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    Keep,
    /// The reply ends with this error.
    End(Refusal),
    /// The result set has no rows. Only an editor that holds rows may decide so.
    Empty,
}

impl Column {
    /// Decodes a column definition. `is_extended`: extended metadata was negotiated.
    pub fn decode(payload: &[u8], is_extended: bool) -> Result<Column, Malformed> {
        let definition = ColumnDefinition::decode_with(payload, is_extended)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Column {
            is_readable: definition.catalog == b"def",
            schema: text(definition.schema),
            table: text(definition.original_table),
            original_name: text(definition.original_name),
            name: text(definition.name),
            column_type: definition.column_type,
        })
    }
}
