//! Plans in natural order.

use super::candidate::IndexCandidate;
use super::choice;
use super::simple::with_access;
use crate::catalog::Collection;
use crate::oplog;
use crate::plan::{Access, SqlitePlan};
use access::conditions::PlannerQuery;
use std::sync::Arc;

/// Returns the plan for a scan in natural order.
pub fn natural(collection: &Arc<Collection>, wanted: &PlannerQuery<'_>, forward: bool) -> SqlitePlan {
    if collection.rules.as_ref().is_some_and(|rules| rules.clustered) {
        return clustered_order(collection, wanted, forward);
    }
    let exact = wanted.is_complete() && wanted.conditions.is_empty();
    let sorted = wanted.sort.is_none() || wanted.natural == Some(forward);
    with_access(collection, exact, sorted, Access::Natural { forward, rows: oplog::rows_of(collection, wanted) })
}

/// Returns the plan in natural order of a clustered collection: that of `_id`.
fn clustered_order(collection: &Arc<Collection>, wanted: &PlannerQuery<'_>, forward: bool) -> SqlitePlan {
    let mut unsorted = wanted.clone();
    (unsorted.sort, unsorted.natural) = (None, None);
    let mut plan = choice::hinted_plan(collection, IndexCandidate::new(collection, None, &unsorted), &unsorted);
    if let Access::Index(scan) = &mut plan.access {
        scan.forward = forward;
    }
    plan.facts.sorted = wanted.sort.is_none() || wanted.natural == Some(forward);
    plan
}
