//! Plans by hinted indexes.

use super::candidate::IndexCandidate;
use super::natural::natural;
use super::simple::with_access;
use super::{choice, unordered};
use crate::catalog::{Collection, Index};
use crate::plan::{Access, SqlitePlan};
use access::conditions::PlannerQuery;
use access::wildcard;
use error::Result;
use query::sort::KeyRange;
use std::sync::Arc;
use store::{Hint, Query, hint};

/// Plans by a hint, even if the index lacks documents, as MongoDB does. Fails with 2 if the index
/// does not exist.
pub fn hinted(
    collection: &Arc<Collection>,
    query: &Query<'_>,
    wanted: &PlannerQuery<'_>,
) -> Result<Option<SqlitePlan>> {
    let Some(hint) = Hint::of(query.hint) else { return Ok(None) };
    if let Some(forward) = hint.natural() {
        return Ok(Some(natural(collection, wanted, forward)));
    }
    let index = if hint.names("_id_", document::doc! { "_id": 1 }.as_doc()) {
        None
    } else {
        let mut indexes = collection.indexes.iter().filter(|index| index.is_usable());
        let index = indexes.find(|index| hint.names(&index.spec.name, index.spec.key.as_doc()));
        Some(index.ok_or_else(hint::missing_index)?)
    };
    if let Some(index) = index.filter(|index| !index.kind.is_ordered()) {
        wildcard::check_hint(&index.kind, query)?;
        let scan = unordered::hinted_scan(index, wanted);
        return Ok(Some(with_access(collection, false, wanted.sort.is_none(), Access::Index(scan))));
    }
    Ok(Some(match wanted.range {
        None => choice::hinted_plan(collection, IndexCandidate::new(collection, index, wanted), wanted),
        Some(range) => key_range_plan(collection, index, wanted, range),
    }))
}

/// Plans a scan from `min` to `max`; conditions are left to the evaluator.
fn key_range_plan(
    collection: &Arc<Collection>,
    index: Option<&Arc<Index>>,
    wanted: &PlannerQuery<'_>,
    range: &KeyRange,
) -> SqlitePlan {
    let mut whole = wanted.clone();
    whole.conditions.clear();
    whole.disjunctions.clear();
    let mut plan = choice::hinted_plan(collection, IndexCandidate::new(collection, index, &whole), &whole);
    if let Access::Index(scan) = &mut plan.access {
        for interval in &mut scan.intervals {
            (interval.low, interval.high) = (range.low().to_vec(), range.high().to_vec());
        }
        // `explain` shows no bounds here, as in MongoDB.
        scan.bounds.clear();
    }
    plan
}
