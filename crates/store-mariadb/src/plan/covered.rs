//! Keys in the place of documents, where all that is asked for are fields of the index that is read, and documents are long: short ones are
//! there as soon as their keys.
//!
//! Where keys do not tell their values (numbers, null, arrays), the server joins the document to them, row by row.

use crate::index::column_key::{NULLS, decode};
use crate::plan::sibling_index_filter::has_long_documents;
use crate::plan::{Access, KeyColumn, MariaDbPlan};
use index_keys::covered::requested_fields;
use mariadb_client::Result;
use mariadb_wire::row::BinaryRow;
use std::sync::Arc;
use store::Query;

/// The fields asked for: their names as JSON, in the order of the index's columns; `None` for the other columns.
#[derive(Debug)]
pub(crate) struct Covered(Vec<Option<Box<str>>>);

/// Has a plan read keys in the place of documents, if they may tell what is asked for.
pub(crate) fn cover(plan: &mut MariaDbPlan, query: &Query<'_>) {
    let (Access::Rows(rows), Some(table), Some(_)) = (&mut plan.access, &plan.table, query.fields) else { return };
    let Some(index) = rows.index.as_ref().filter(|_| rows.ids.is_none() && rows.found.is_none()) else { return };
    if !index.covers || index.merged.is_some() || index.filter.is_some() || index.hope.is_some() {
        return;
    }
    if !has_long_documents(table) || table.untold.has(&index.key) {
        return;
    }
    let key = index.spec.key.as_doc();
    let paths = key.elements().map(|element| element.key());
    let Some(asked) = requested_fields(paths.clone(), query, decode::tells) else { return };
    let name = |(path, asked): (&str, bool)| {
        asked.then(|| {
            let mut name = Vec::with_capacity(path.len() + 2);
            document::json::value_to_json(document::Value::String(path), &mut name);
            String::from_utf8_lossy(&name).into_owned().into()
        })
    };
    rows.covered = Some(Arc::new(Covered(paths.zip(asked).map(name).collect())));
    // That text is for plans of the same query whose documents are read.
    plan.written = None;
}

impl Covered {
    /// The condition that a row's document is needed.
    pub fn untold(&self, columns: &[KeyColumn]) -> String {
        let asked = columns.iter().zip(&self.0).filter(|(_, asked)| asked.is_some());
        let untold: Vec<String> = asked.map(|(column, _)| decode::untold(&column.name)).collect();
        untold.join(" OR ")
    }

    /// Whether any of the keys that come next in a row is null's: that says nothing of the index's others.
    pub fn has_null(&self, mut row: BinaryRow<'_>) -> Result<bool> {
        for asked in &self.0 {
            let key = row.next_bytes()?.unwrap_or(NULLS.0);
            if asked.is_some() && NULLS.0 <= key && key < NULLS.1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Appends the text of a document with the fields asked for, by the keys that come next in a row; false where they do not tell it.
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
