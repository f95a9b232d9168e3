//! From a query to a plan.
//!
//! The invariant of this module: a plan finds every document that matches. A condition that cannot
//! be turned into bounds on an index is left to the evaluator, and the plan is then not `exact`.
//!
//! In reading order: [`access::conditions`] splits a query into conditions. [`candidate`]
//! computes the bounds of an index and whether it gives the [`sort_order`]; [`unordered`] scans
//! other kinds of index. [`union`] combines
//! indexes for a disjunction, [`text`] plans text searches, [`choice`] compares access paths by
//! cost, and [`covered`] decides whether keys replace documents.

mod branch;
mod candidate;
mod choice;
mod covered;
mod hint;
mod natural;
mod near;
mod simple;
mod sort_order;
mod text;
mod union;
mod unordered;

use crate::catalog::Collection;
use crate::plan::{Access, SqlitePlan};
use access::conditions::PlannerQuery;
use access::hashed::equality_by_keys;
use document::{Kind, Value};
use error::Result;
use hint::hinted;
use index_keys::keys::Key;
use natural::natural;
use query::predicate::{Node, Test};
use simple::with_access;
use smallvec::SmallVec;
use std::sync::Arc;
use store::{ExaminedCounter, PlanFacts, Query};

pub use simple::{Measure, everything, tail, view};

/// Decides how to find the documents of `query`.
pub fn plan(collection: Option<&Arc<Collection>>, query: &Query<'_>, measure: Measure<'_>) -> Result<SqlitePlan> {
    let Some(collection) = collection else {
        let facts = PlanFacts { exact: true, sorted: true, view: false };
        return Ok(SqlitePlan {
            facts,
            collection: None,
            access: Access::all(true),
            tailable: false,
            counter: ExaminedCounter::default(),
        });
    };
    query.check()?;
    let mut plan = match query.allowed() {
        Some(allowed) => plan_with_filter(collection, query, allowed, measure),
        None => choose(collection, query, PlannerQuery::of(query), measure),
    }?;
    covered::cover(&mut plan, query);
    Ok(plan)
}

/// As [`plan`], with the indexes that an index filter allows. Hints are ignored then.
fn plan_with_filter(
    collection: &Arc<Collection>,
    query: &Query<'_>,
    allowed: store::AllowedIndexes<'_>,
    measure: Measure<'_>,
) -> Result<SqlitePlan> {
    let mut narrowed = Collection::clone(collection);
    narrowed.indexes.retain(|index| allowed.has(&index.spec.name, index.spec.key.as_doc()));
    let query = Query { hint: None, ..*query };
    let mut wanted = PlannerQuery::of(&query);
    wanted.without_id = !allowed.has_id();
    let plan = choose(&Arc::new(narrowed), &query, wanted, measure)?;
    Ok(SqlitePlan { collection: Some(collection.clone()), ..plan })
}

fn choose(
    collection: &Arc<Collection>,
    query: &Query<'_>,
    wanted: PlannerQuery<'_>,
    measure: Measure<'_>,
) -> Result<SqlitePlan> {
    if matches!(query.predicate.root(), Node::Never) {
        return Ok(with_access(collection, true, true, Access::Points(SmallVec::new())));
    }
    if let Some(plan) = text::plan(collection, &wanted) {
        return Ok(plan);
    }
    if let Some(plan) = near::by_distance(collection, query, &wanted, measure)? {
        return Ok(plan);
    }
    if let Some(plan) = hinted(collection, query, &wanted)? {
        return Ok(plan);
    }
    if let Some(plan) = by_id(collection, &wanted) {
        return Ok(plan);
    }
    if let Some(forward) = wanted.natural {
        return Ok(natural(collection, &wanted, forward));
    }
    Ok(choice::best(collection, &wanted, measure).unwrap_or_else(|| natural(collection, &wanted, true)))
}

/// As [`plan`], for callers that need one document for each value of `path`.
pub fn plan_distinct(
    collection: &Arc<Collection>,
    query: &Query<'_>,
    path: &str,
    collation: &document::Collation,
    measure: Measure<'_>,
) -> Result<SqlitePlan> {
    let found = match query.hint {
        None => choice::distinct_values(collection, &PlannerQuery::of(query), path, collation),
        Some(_) => None,
    };
    found.map_or_else(|| plan(Some(collection), query, measure), Ok)
}

/// Plans a lookup by `_id`, if it must equal one of several values.
fn by_id(collection: &Arc<Collection>, wanted: &PlannerQuery<'_>) -> Option<SqlitePlan> {
    let collation = &collection.collation;
    let ids = wanted.conditions.iter().filter(|condition| condition.path == "_id");
    let values =
        ids.filter_map(|condition| equality_by_keys(condition.test, collation)).find_map(|test| match test {
            Test::Equal(value) => Some(std::slice::from_ref(value)),
            Test::In(list) if list.regexes().is_empty() => Some(list.values()),
            _ => None,
        })?;
    if values.iter().any(|value| value.kind() == Kind::Array) {
        return None;
    }
    // A query for null also finds undefined, which has a key of its own.
    let nulls = values.iter().any(|value| value.kind() == Kind::Null);
    let undefined = nulls.then(|| Value::Undefined.to_owned());
    let mut points: SmallVec<[Key; 1]> = SmallVec::with_capacity(values.len());
    let mut buffer = Vec::with_capacity(40);
    for value in values.iter().chain(&undefined) {
        buffer.clear();
        collation.encode_key(value.as_value(), &mut buffer);
        points.push(Key::from_slice(&buffer));
    }
    points.sort_unstable();
    points.dedup();
    if (wanted.without_id || wanted.natural.is_some()) && points.len() > 1 {
        return None;
    }
    let sort = wanted.sort.filter(|sort| sort.collation() == collation);
    let by_id = sort.and_then(|sort| sort.parts().first()).filter(|part| part.path.as_str() == "_id");
    if by_id.is_some_and(|part| !part.ascending) {
        points.reverse();
    }
    let exact = wanted.is_complete() && wanted.conditions.len() == 1;
    // With other conditions, or by another collation, MongoDB sorts even a single document, and
    // fails if it cannot be sorted.
    let is_one = points.is_empty() || exact && points.len() == 1 && sort.is_some();
    let sorted = wanted.sort.is_none() || is_one || by_id.is_some();
    Some(with_access(collection, exact, sorted, Access::Points(points)))
}

#[cfg(test)]
mod tests;
