//! The fields that are read from an index's keys instead of documents.

use crate::index::column_key::{NULLS, decode};
use crate::index::key_column::KeyColumn;
use mariadb_client::Result;
use mariadb_wire::row::BinaryRow;

/// The requested fields: their names as JSON, in the order of the index's columns; `None` for the
/// other columns.
#[derive(Debug)]
pub(crate) struct CoveredFields(pub Vec<Option<Box<str>>>);

impl CoveredFields {
    /// Returns the condition that a row's document is needed.
    pub fn undecodable(&self, columns: &[KeyColumn]) -> String {
        let requested = columns.iter().zip(&self.0).filter(|(_, requested)| requested.is_some());
        let undecodable: Vec<String> =
            requested.map(|(column, _)| decode::undecodable_condition(&column.name)).collect();
        undecodable.join(" OR ")
    }

    /// Returns whether any requested key of a row is null. A null in one row does not make the
    /// index's other keys undecodable.
    pub fn has_null(&self, mut row: BinaryRow<'_>) -> Result<bool> {
        for requested in &self.0 {
            let key = row.next_bytes()?.unwrap_or(NULLS.0);
            if requested.is_some() && NULLS.0 <= key && key < NULLS.1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Appends the text of a document with the requested fields, decoded from the keys of a row.
    /// Returns false if a key does not determine its value.
    pub fn write(&self, mut row: BinaryRow<'_>, out: &mut Vec<u8>) -> Result<bool> {
        out.push(b'{');
        for name in &self.0 {
            let key = row.next_bytes()?;
            let Some(name) = name else { continue };
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(name.as_bytes());
            out.push(b':');
            if !key.is_some_and(|key| decode::write(key, out)) {
                return Ok(false);
            }
        }
        out.push(b'}');
        Ok(true)
    }
}
