//! The physical form of an index: the location of its keys, and whether the server or the gateway
//! computes them.

use crate::index::columns::{Columns, FieldColumns};
use crate::index::element_table::record::ElementTableState;
use crate::index::key_column::KeyColumn;
use crate::index::side_index::side_table::SideTable;
use document::Value;
use fulltext::TextIndex;
use index_keys::IndexShape;
use std::sync::Arc;
use store::IndexSpec;
use store::index_kind::descends;

/// The physical form of an index.
#[derive(Clone, Debug)]
pub(crate) enum IndexForm {
    /// The server computes the keys in generated columns, and an ordinary index of MariaDB orders
    /// them.
    ColumnKey(ColumnKeyForm),
    /// Gateways compute the keys and keep them in a side table: see [`crate::index::side_index`].
    SideIndex(SideIndexForm),
}

/// An index on generated columns.
#[derive(Clone, Debug)]
pub(crate) struct ColumnKeyForm {
    pub columns: Columns,
    /// The columns with the keys of the fields.
    pub key_columns: Box<[KeyColumn]>,
    /// The table with the elements of arrays.
    pub elements: ElementTableState,
    /// The shape by which the gateway finds documents that the index must refuse: arrays in a
    /// hashed index, several arrays in a compound one. `None` if it refuses none.
    pub refusal_shape: Option<Arc<IndexShape>>,
}

/// An index whose keys are in a side table.
#[derive(Clone, Debug)]
pub(crate) struct SideIndexForm {
    /// How keys are computed.
    pub shape: Arc<IndexShape>,
    /// The side table, once it is being created.
    pub table: Option<SideTable>,
    /// The column that marks in the collection's table that the index exists.
    pub marker: String,
    /// Columns could hold its keys, but the table has no room for them.
    pub spilled: bool,
    /// The text index, if it is one, which checks documents.
    pub text: Option<Arc<TextIndex>>,
}

impl ColumnKeyForm {
    pub fn new(spec: &IndexSpec, columns: Columns, refusal_shape: Option<Arc<IndexShape>>) -> ColumnKeyForm {
        let key_columns = key_columns(spec, &columns);
        ColumnKeyForm { columns, key_columns, elements: ElementTableState::Absent, refusal_shape }
    }
}

fn key_columns(spec: &IndexSpec, columns: &Columns) -> Box<[KeyColumn]> {
    let directions = spec.key.as_doc().values();
    let column = |(field, direction): (&FieldColumns, Value<'_>)| KeyColumn::named(&field.key, descends(direction));
    columns.fields.iter().zip(directions).map(column).collect()
}
