//! The position that a scan has reached, and the condition for the rows behind it.

use crate::catalog::row_key::RowKey;
use crate::index::key_column::KeyColumn;
use mariadb_wire::Param;

/// The condition for rows behind a position: behind it in the first column, or level with it there and behind it in the rest. Written so, the
/// server makes ranges of the index of it, down to the row's key, and begins where the last page ended.
pub(crate) fn behind(columns: &[KeyColumn], key: &str, forward: bool) -> String {
    let compare = |descends: bool| if descends == forward { "<" } else { ">" };
    let mut condition = format!("{key} {} ?", if forward { ">" } else { "<" });
    for column in columns.iter().rev() {
        let (name, compare) = (&column.name, compare(column.descends));
        condition = format!("({name} {compare} ? OR {name} = ? AND {condition})");
    }
    condition
}

/// Where a scan of rows has come to: a row's key, and the index's keys of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RowPosition {
    pub row: Vec<u8>,
    pub keys: Vec<Vec<u8>>,
}

impl RowPosition {
    /// Appends it as bytes: each key behind its length, the row's key last.
    pub fn write(&self, out: &mut Vec<u8>) {
        for key in &self.keys {
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
        }
        out.extend_from_slice(&self.row);
    }

    /// Reads what [`RowPosition::write`] has written, for an index of so many columns.
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

/// A row key's bytes, as positions keep them, as a parameter.
pub(crate) fn key_param(row_key: RowKey, key: &[u8]) -> Param<'_> {
    match row_key {
        RowKey::Sequence => Param::Unsigned(key.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))),
        RowKey::Id => Param::Text(key),
    }
}
