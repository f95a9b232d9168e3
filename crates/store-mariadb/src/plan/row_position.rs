//! The position that a scan has reached, and the condition for the rows behind it.

use crate::catalog::row_key::RowKey;
use crate::index::key_column::KeyColumn;
use mariadb_wire::Param;

/// Returns the condition for rows after a position: after it in the first column, or equal there
/// and after it in the rest. From this form the server derives index ranges down to the row key, so
/// that a page begins where the last one ended.
pub(crate) fn after_position(columns: &[KeyColumn], key: &str, forward: bool) -> String {
    let compare = |descends: bool| if descends == forward { "<" } else { ">" };
    let mut condition = format!("{key} {} ?", if forward { ">" } else { "<" });
    for column in columns.iter().rev() {
        let (name, compare) = (&column.name, compare(column.descends));
        condition = format!("({name} {compare} ? OR {name} = ? AND {condition})");
    }
    condition
}

/// The last row of a scan: its row key, and its keys in the index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RowPosition {
    pub row: Vec<u8>,
    pub keys: Vec<Vec<u8>>,
}

impl RowPosition {
    /// Appends the position as bytes: each key with its length, then the row key.
    pub fn write(&self, out: &mut Vec<u8>) {
        for key in &self.keys {
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
        }
        out.extend_from_slice(&self.row);
    }

    /// Decodes what [`RowPosition::write`] has encoded, for an index of this many columns.
    pub fn read(mut bytes: &[u8], columns: usize) -> Option<RowPosition> {
        let mut keys = Vec::with_capacity(columns);
        for _ in 0..columns {
            let (length, rest) = bytes.split_first_chunk()?;
            let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            keys.push(key.to_vec());
            bytes = rest;
        }
        Some(RowPosition { row: bytes.to_vec(), keys })
    }
}

/// Returns the bytes of a row key as a parameter.
pub(crate) fn key_param(row_key: RowKey, key: &[u8]) -> Param<'_> {
    match row_key {
        RowKey::Sequence => Param::Unsigned(key.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))),
        RowKey::Id => Param::Text(key),
    }
}
