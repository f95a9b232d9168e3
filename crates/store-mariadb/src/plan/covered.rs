//! Keys in the place of documents, where all that is asked for are fields of the index that is
//! read, and documents are long: short ones are there as soon as their keys.
//!
//! Where keys do not tell their values (numbers, null, arrays), the server joins the document to
//! them, row by row.

use crate::index::column_key::decode;
use crate::plan::MariaDbPlan;
use crate::plan::access::Access;
use crate::plan::covered_fields::CoveredFields;
use access::covered::requested_fields;
use std::sync::Arc;
use store::Query;

/// Has a plan read keys in the place of documents, if they may tell what is asked for.
pub(crate) fn cover(plan: &mut MariaDbPlan, query: &Query<'_>) {
    let (Access::Rows(rows), Some(table), Some(_)) = (&mut plan.access, &plan.table, query.fields) else { return };
    let Some(index) = rows.index.as_ref().filter(|_| rows.ids.is_none() && rows.lookup.is_none()) else { return };
    if !index.covers_condition
        || index.merged.is_some()
        || index.sibling_filter.is_some()
        || index.speculative_rows.is_some()
    {
        return;
    }
    if !table.has_long_documents() || table.plan_cache.undecodable.contains(&index.sql_name) {
        return;
    }
    let key = index.spec.key.as_doc();
    let paths = key.elements().map(|element| element.key());
    let Some(asked) = requested_fields(paths.clone(), query, decode::is_decodable) else { return };
    let name = |(path, asked): (&str, bool)| {
        asked.then(|| {
            let mut name = Vec::with_capacity(path.len() + 2);
            document::json::value_to_json(document::Value::String(path), &mut name);
            String::from_utf8_lossy(&name).into_owned().into()
        })
    };
    rows.covered = Some(Arc::new(CoveredFields(paths.zip(asked).map(name).collect())));
    // That text is for plans of the same query whose documents are read.
    plan.texts = None;
}
