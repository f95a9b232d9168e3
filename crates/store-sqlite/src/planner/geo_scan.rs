//! Conditions on geometries, by `2dsphere` and `2d` indexes.

use super::{Measure, NATURAL, PlannerQuery, choice, natural, with_access};
use crate::catalog::{Collection, Index};
use crate::plan::{Access, IndexScan, NearScan, SqlitePlan};
use document::{Kind, Value};
use error::Result;
use index_keys::geo_bounds::{GeoPrefix, region};
use index_keys::keys::KEY_END;
use index_keys::wildcard::BoundedKeys;
use index_keys::{Interval, partial};
use query::Sort;
use std::sync::Arc;
use store::{Query, near};

/// Returns the plan for documents by distance. Fails with 291 if no index serves it, and with 2 if
/// another order is requested.
pub fn by_distance(
    collection: &Arc<Collection>,
    query: &Query<'_>,
    wanted: &PlannerQuery<'_>,
    measure: Measure<'_>,
) -> Result<Option<SqlitePlan>> {
    let Some(near) = query.predicate.near() else { return Ok(None) };
    if wanted.natural.is_some() {
        return Err(near::not_natural("sort order"));
    }
    if query.hint.and_then(Value::as_document).is_some_and(|hint| hint.get(NATURAL).is_some()) {
        return Err(near::not_natural("hint"));
    }
    let hinted = |index: &Index| match query.hint {
        Some(hint) if hint.kind() == Kind::String => hint.as_name().is_some_and(|name| name == index.spec.name),
        Some(Value::Document(key)) if !key.is_empty() => store::index_rules::same_key(key, index.spec.key.as_doc()),
        _ => partial::covers_query(index, wanted),
    };
    let is_bound = |path: &str| wanted.conditions.iter().any(|condition| condition.path == path);
    let serves = |index: &&Arc<Index>| {
        index.is_usable() && near::serves(&index.spec, &index.kind, near, is_bound) && hinted(index)
    };
    let Some(any) = collection.indexes.iter().find(serves) else {
        super::hinted(collection, query, wanted)?;
        return Err(near::no_index(&collection.namespace, near));
    };
    near::check_center(&any.kind, near)?;
    let scan_by = |index: &Arc<Index>| {
        let front = GeoPrefix::new(index, near.path.as_str(), wanted).filter(GeoPrefix::is_known)?;
        Some(NearScan { index: index.clone(), near: near.clone(), filter: front.filter(index), front })
    };
    if let Some(scan) = collection.indexes.iter().filter(serves).find_map(scan_by) {
        let sorted = wanted.sort.is_none() || query.sort.is_some_and(Sort::is_by_distance);
        return Ok(Some(with_access(collection, false, sorted, Access::Near(scan))));
    }
    // The fields in front of the geometry are not bound to single values: all documents that meet
    // the other conditions are read, and the caller sorts them.
    let mut all = wanted.clone();
    all.limit = None;
    let mut plan = choice::best(collection, &all, measure).unwrap_or_else(|| natural(collection, &all, true));
    plan.facts.sorted &= !query.sort.is_some_and(Sort::is_by_distance);
    Ok(Some(plan))
}

/// Returns the scan by this index, if it serves a condition on a region.
pub fn scan_of(index: &Arc<Index>, wanted: &PlannerQuery<'_>) -> Option<IndexScan> {
    let BoundedKeys { intervals, bounds, filter } = region(index, wanted)?;
    Some(IndexScan { bounds, filter, ..IndexScan::new(Some(index.clone()), intervals) })
}

/// Returns the scan of a whole index of any kind, for a hint.
pub fn everything_in(index: &Arc<Index>) -> IndexScan {
    IndexScan::new(Some(index.clone()), vec![Interval { low: Vec::new(), high: KEY_END.to_vec() }])
}
