//! Documents by distance.

use super::choice;
use super::hint::hinted;
use super::natural::natural;
use super::simple::{Measure, with_access};
use crate::catalog::{Collection, Index};
use crate::plan::{Access, NearScan, SqlitePlan};
use access::conditions::PlannerQuery;
use access::geo_bounds::GeoPrefix;
use access::partial;
use error::Result;
use query::Sort;
use std::sync::Arc;
use store::{Hint, Query, near};

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
    let hint = Hint::of(query.hint);
    if hint.is_some_and(|hint| hint.natural().is_some()) {
        return Err(near::not_natural("hint"));
    }
    let is_allowed = |index: &Index| match hint {
        Some(hint) => hint.names(&index.spec.name, index.spec.key.as_doc()),
        None => partial::covers_query(index, wanted),
    };
    let is_bound = |path: &str| wanted.conditions.iter().any(|condition| condition.path == path);
    let serves = |index: &&Arc<Index>| {
        index.is_usable() && near::serves(&index.spec, &index.kind, near, is_bound) && is_allowed(index)
    };
    let Some(any) = collection.indexes.iter().find(serves) else {
        hinted(collection, query, wanted)?;
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
