//! From a query to a plan.
//!
//! The invariant of this module: a plan finds every document that matches. A condition that cannot
//! be turned into bounds on an index is left to the evaluator, and the plan is then not `exact`.
//!
//! In reading order: [`index_keys::conditions`] splits a query into conditions. [`candidate`]
//! computes the bounds of an index and whether it gives the [`sort_order`]; [`hashed`],
//! [`geo_scan`] and [`wildcard_scan`] do the same for other kinds of index. [`union`] combines
//! indexes for a disjunction, [`text`] plans text searches, [`choice`] compares access paths by
//! cost, and [`covered`] decides whether keys replace documents.

mod candidate;
mod choice;
mod covered;
mod geo_scan;
mod hashed;
mod sort_order;
mod text;
mod union;

use crate::catalog::{Collection, Index};
use crate::plan::{Access, IndexScan, SqlitePlan};
use candidate::IndexCandidate;
use document::{Doc, Kind, Value};
use error::{Error, Result};
use index_keys::conditions::PlannerQuery;
pub use index_keys::geo_bounds::ring;
use index_keys::keys::Key;
use index_keys::wildcard::BoundedKeys;
use index_keys::{bounds, intervals, ranges, wildcard};
use query::predicate::{Node, Test};
use query::sort::KeyRange;
use smallvec::SmallVec;
use std::sync::Arc;
use store::{ExaminedCounter, PlanFacts, Query};

/// The path by which MongoDB sorts for natural order.
const NATURAL: &str = "$natural";

/// Counts the keys of a scan, up to a limit: how indexes are compared where their bounds do not
/// decide.
pub type Measure<'m> = &'m dyn Fn(&Collection, &IndexScan, u64) -> u64;

/// Decides how to find the documents of `query`.
pub fn plan(collection: Option<&Arc<Collection>>, query: &Query<'_>, measure: Measure<'_>) -> Result<SqlitePlan> {
    let Some(collection) = collection else {
        let facts = PlanFacts { exact: true, sorted: true, view: false };
        return Ok(SqlitePlan {
            facts,
            collection: None,
            access: Access::Natural { forward: true },
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
    if let Some(plan) = geo_scan::by_distance(collection, query, &wanted, measure)? {
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

/// Returns whether every document of a scan meets a condition, by its keys.
pub fn meets(scan: &IndexScan, collection: &Collection, path: &str, test: &Test) -> bool {
    let wildcard = scan.index.as_ref().is_some_and(|index| matches!(index.kind, store::IndexKind::Wildcard(_)));
    if scan.index.as_ref().is_some_and(|index| !index.kind.is_ordered()) && !wildcard {
        return false;
    }
    let fields = scan.fields(collection);
    scan.bounds.iter().enumerate().filter(|(_, (bound, _))| bound == path).any(|(at, (_, ranges))| {
        let Some(field) = fields.get(at).or(fields.first()) else { return false };
        let arrays = scan.index.as_ref().map_or(0, |index| index.multikey.parts());
        let single = !wildcard && arrays & field.all_parts() == 0;
        let found = bounds::of(test, bounds::FieldContext { collation: &field.collation, single });
        found.is_some_and(|found| {
            found.exact && (single || !found.universal) && ranges::is_subset(ranges, &found.ranges)
        })
    })
}

/// Returns the plan for a view's name, which only says so.
pub fn view() -> SqlitePlan {
    let facts = PlanFacts { exact: false, sorted: false, view: true };
    SqlitePlan {
        facts,
        collection: None,
        access: Access::Natural { forward: true },
        tailable: false,
        counter: ExaminedCounter::default(),
    }
}

/// Returns the plan that follows a capped collection.
pub fn tail(collection: Arc<Collection>) -> SqlitePlan {
    let plan = with_access(&collection, false, true, Access::Natural { forward: true });
    SqlitePlan { tailable: true, ..plan }
}

/// Returns the plan for all documents in natural order, for the writer's own scans.
pub fn everything(collection: &Arc<Collection>) -> SqlitePlan {
    with_access(collection, true, true, Access::Natural { forward: true })
}

fn with_access(collection: &Arc<Collection>, exact: bool, sorted: bool, access: Access) -> SqlitePlan {
    let facts = PlanFacts { exact, sorted, view: false };
    SqlitePlan {
        facts,
        collection: Some(collection.clone()),
        access,
        tailable: false,
        counter: ExaminedCounter::default(),
    }
}

fn natural(collection: &Arc<Collection>, wanted: &PlannerQuery<'_>, forward: bool) -> SqlitePlan {
    if collection.rules.as_ref().is_some_and(|rules| rules.clustered) {
        return clustered_order(collection, wanted, forward);
    }
    let exact = wanted.is_complete() && wanted.conditions.is_empty();
    let sorted = wanted.sort.is_none() || wanted.natural == Some(forward);
    with_access(collection, exact, sorted, Access::Natural { forward })
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

/// Plans a lookup by `_id`, if it must equal one of several values.
fn by_id(collection: &Arc<Collection>, wanted: &PlannerQuery<'_>) -> Option<SqlitePlan> {
    let collation = &collection.collation;
    let ids = wanted.conditions.iter().filter(|condition| condition.path == "_id");
    let values = ids.filter_map(|condition| by_keys(condition.test, collation)).find_map(|test| match test {
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

/// Returns the test that keys of this collation decide; `None` if strings compare by another one.
fn by_keys<'t>(test: &'t Test, collation: &document::Collation) -> Option<&'t Test> {
    match test {
        Test::Collated(test, of) => (of == collation).then_some(&**test),
        Test::Equal(value) => (!collation.concerns(value.kind())).then_some(test),
        Test::In(list) => (!list.values().iter().any(|value| collation.concerns(value.kind()))).then_some(test),
        _ => None,
    }
}

/// Returns the scan of an index that is not ordered by values, if its kind serves one of the
/// conditions.
fn unordered_scan(index: &Arc<Index>, wanted: &PlannerQuery<'_>) -> Option<IndexScan> {
    geo_scan::scan_of(index, wanted).or_else(|| hashed::scan_of(index, wanted)).or_else(|| wildcard_scan(index, wanted))
}

/// Returns the scan of a wildcard index.
fn wildcard_scan(index: &Arc<Index>, wanted: &PlannerQuery<'_>) -> Option<IndexScan> {
    let BoundedKeys { intervals, bounds, filter } = wildcard::bounded_keys(index, wanted)?;
    Some(IndexScan { bounds, filter, ..IndexScan::new(Some(index.clone()), intervals) })
}

/// Plans by a hint, even if the index lacks documents, as MongoDB does. Fails with 2 if the index
/// does not exist.
fn hinted(collection: &Arc<Collection>, query: &Query<'_>, wanted: &PlannerQuery<'_>) -> Result<Option<SqlitePlan>> {
    let pattern = match query.hint {
        None => return Ok(None),
        Some(Value::Document(pattern)) if pattern.is_empty() => return Ok(None),
        Some(hint) => hint,
    };
    if let Value::Document(pattern) = pattern
        && let Some(direction) = pattern.get(NATURAL)
    {
        let forward = !matches!(direction, Value::Int32(..0) | Value::Int64(..0))
            && !matches!(direction, Value::Double(number) if number < 0.0);
        return Ok(Some(natural(collection, wanted, forward)));
    }
    let names = |name: &str, key: Doc<'_>| match pattern {
        hint if hint.kind() == Kind::String => hint.as_name().is_some_and(|text| text == name),
        Value::Document(pattern) => store::index_rules::same_key(pattern, key),
        _ => false,
    };
    let index = if names("_id_", document::doc! { "_id": 1 }.as_doc()) {
        None
    } else {
        let mut indexes = collection.indexes.iter().filter(|index| index.is_usable());
        let index = indexes.find(|index| names(&index.spec.name, index.spec.key.as_doc()));
        let missing = "error processing query: planner returned error :: caused by :: \
             hint provided does not correspond to an existing index";
        Some(index.ok_or_else(|| Error::bad_value(missing))?)
    };
    if let Some(index) = index.filter(|index| !index.kind.is_ordered()) {
        wildcard::check_hint(&index.kind, query)?;
        let scan = unordered_scan(index, wanted).unwrap_or_else(|| geo_scan::everything_in(index));
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

#[cfg(test)]
mod tests;
