//! The column that orders and addresses the rows of a collection's table.

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
