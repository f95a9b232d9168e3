//! The text of an update that is executed without reading first.

use crate::catalog::table::Table;
use mariadb_wire::Param;
use update::{FieldAssignment, UnsortedPush};

/// Longer texts are read first. BSON has at most seven bytes for one of a text's, so a document stays below MongoDB's limit.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;
pub(super) const VALUES_BYTES_MAX: usize = 1 << 18;

/// What happens to the first document that matches, where nothing need be known of it.
pub(crate) enum Unseen<'u> {
    Push(UnsortedPush<'u>),
    Set(Vec<FieldAssignment<'u>>),
}

/// SQL with its parameters. The text is the same for all updates of one form, so it is prepared once.
pub(super) struct Statement<'p> {
    pub sql: String,
    pub params: Vec<Param<'p>>,
}

impl<'p> Statement<'p> {
    /// Begins one that gives a document of the table what is added next for its text.
    pub fn update(table: &Table) -> Statement<'p> {
        let mut statement = Statement { sql: String::with_capacity(768), params: Vec::with_capacity(16) };
        statement.add(&format!("UPDATE {} SET doc = JSON_COMPACT(", table.quoted), []);
        statement
    }

    /// Ends the text, and says which document it is.
    pub fn add_place(&mut self, id: &'p [u8]) {
        self.add(") WHERE id = ?", [Param::Text(id)]);
        self.add(&format!(" AND OCTET_LENGTH(doc) <= {DOCUMENT_BYTES_MAX}"), []);
    }

    pub fn add<const PARAMS: usize>(&mut self, sql: &str, params: [Param<'p>; PARAMS]) {
        self.sql.push_str(sql);
        self.params.extend(params);
    }
}

pub(super) fn text(text: &str) -> Param<'_> {
    Param::Text(text.as_bytes())
}
