//! The fields that are read from an index's keys in the place of documents.

use crate::index::column_key::{NULLS, decode};
use crate::index::key_column::KeyColumn;
use mariadb_client::Result;
use mariadb_wire::row::BinaryRow;

/// The fields asked for: their names as JSON, in the order of the index's columns; `None` for the
/// other columns.
#[derive(Debug)]
pub(crate) struct CoveredFields(pub Vec<Option<Box<str>>>);

impl CoveredFields {
    /// The condition that a row's document is needed.
    pub fn untold(&self, columns: &[KeyColumn]) -> String {
        let asked = columns.iter().zip(&self.0).filter(|(_, asked)| asked.is_some());
        let untold: Vec<String> = asked.map(|(column, _)| decode::undecodable_condition(&column.name)).collect();
        untold.join(" OR ")
    }

    /// Whether any of the keys that come next in a row is null's: that says nothing of the index's
    /// others.
    pub fn has_null(&self, mut row: BinaryRow<'_>) -> Result<bool> {
        for asked in &self.0 {
            let key = row.next_bytes()?.unwrap_or(NULLS.0);
            if asked.is_some() && NULLS.0 <= key && key < NULLS.1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Appends the text of a document with the fields asked for, by the keys that come next in a
    /// row; false where they do not tell it.
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
