//! The text of an update that is executed without reading first.

use crate::catalog::table::Table;
use crate::catalog::update_mark::UpdateMark;
use mariadb_wire::Param;
use update::{FieldAssignment, UnsortedPush};

/// Longer documents are read first. BSON has at most seven bytes per byte of text, so a document
/// stays below MongoDB's limit.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;
pub(super) const VALUES_BYTES_MAX: usize = 1 << 18;

/// An update that the server can apply without reading the document first.
pub(crate) enum UnreadUpdate<'u> {
    Push(UnsortedPush<'u>),
    Set(Vec<FieldAssignment<'u>>),
}

/// A statement with its parameters. Its text is the same for all updates of one form, so it is
/// prepared once.
pub(super) struct Statement<'p> {
    pub sql: String,
    pub params: Vec<Param<'p>>,
}

impl<'p> Statement<'p> {
    /// Begins an UPDATE; the text added next is the expression of the new document.
    pub fn update(table: &Table) -> Statement<'p> {
        let mut statement = Statement { sql: String::with_capacity(768), params: Vec::with_capacity(16) };
        let verb = UpdateMark::Operators.verb();
        statement.add(&format!("{verb} {} SET doc = JSON_COMPACT(", table.quoted), []);
        statement
    }

    /// Ends the expression, and adds the condition on the document's id.
    pub fn add_condition(&mut self, id: &'p [u8]) {
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
