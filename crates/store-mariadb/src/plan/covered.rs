//! Covered queries: fields are read from an index's keys instead of documents, if the query
//! requests only fields of that index. Only long documents are worth it.
//!
//! Keys that do not determine their values (numbers, null, arrays) are joined to the document, row
//! by row.

use crate::index::column_key::decode;
use crate::plan::MariaDbPlan;
use crate::plan::access::Access;
use crate::plan::covered_fields::CoveredFields;
use access::covered::requested_fields;
use std::sync::Arc;
use store::Query;

/// Lets a plan read keys instead of documents, if they may contain the requested fields.
pub(crate) fn apply_covered(plan: &mut MariaDbPlan, query: &Query<'_>) {
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
    let Some(requested) = requested_fields(paths.clone(), query, decode::is_decodable) else { return };
    let name = |(path, requested): (&str, bool)| {
        requested.then(|| {
            let mut name = Vec::with_capacity(path.len() + 2);
            document::json::value_to_json(document::Value::String(path), &mut name);
            String::from_utf8_lossy(&name).into_owned().into()
        })
    };
    rows.covered = Some(Arc::new(CoveredFields(paths.zip(requested).map(name).collect())));
    // The cached statement texts are for plans that read documents.
    plan.texts = None;
}
