//! From a query to a plan.
//!
//! The rule that everything here keeps: what a plan gives contains every document that matches. A condition that cannot be
//! turned into bounds on an index is left to the evaluator, and the plan is then not `exact`.
//!
//! In reading order: [`wanted`] takes a query apart into conditions; [`candidate`] sees what an index can do for them, by way of
//! [`index_keys`] (conditions as ranges of keys) and [`order`] (sorts); [`hashed`], [`places`] and [`wildcard_scan`] do the same for indexes
//! of other kinds; [`union`] puts several together for a disjunction; [`text`] has searches by words; [`choice`] decides; [`covered`] sees whether keys will
//! do in the place of documents.

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

/// The path MongoDB sorts by when natural order is asked for.
const NATURAL: &str = "$natural";

/// Counts the keys of a scan, up to a number: how indexes are compared where their bounds do not tell.
pub type Measure<'m> = &'m dyn Fn(&Collection, &IndexScan, u64) -> u64;

/// Decides how to find what `query` wants.
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

/// As [`plan`], by the indexes that an index filter leaves. Hints count for nothing then.
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

/// As [`plan`], where one document for each value of `path` is enough.
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

/// Whether every document that a scan gives meets a condition, for its keys say so.
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

/// The plan for a name that is a view's: it gives nothing but that.
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

/// The plan that follows a capped collection.
pub fn tail(collection: Arc<Collection>) -> SqlitePlan {
    let plan = with_access(&collection, false, true, Access::Natural { forward: true });
    SqlitePlan { tailable: true, ..plan }
}

/// The plan for everything in natural order, for the writer's own walks over a collection.
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

/// The natural order of a clustered collection: that of `_id`.
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

/// `_id` equal to one value or to one of several: looked up one by one.
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
    // Null stands for undefined too, which has a key of its own.
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
    // Beside other conditions, and by another collation, MongoDB sorts even the one document, and says so if it cannot be sorted.
    let is_one = points.is_empty() || exact && points.len() == 1 && sort.is_some();
    let sorted = wanted.sort.is_none() || is_one || by_id.is_some();
    Some(with_access(collection, exact, sorted, Access::Points(points)))
}

/// The test as one that keys made by this collation answer; `None` where strings compare by another one.
fn by_keys<'t>(test: &'t Test, collation: &document::Collation) -> Option<&'t Test> {
    match test {
        Test::Collated(test, of) => (of == collation).then_some(&**test),
        Test::Equal(value) => (!collation.concerns(value.kind())).then_some(test),
        Test::In(list) => (!list.values().iter().any(|value| collation.concerns(value.kind()))).then_some(test),
        _ => None,
    }
}

/// The scan by an index that is not ordered by values, if there is a condition that its kind can answer.
fn unordered_scan(index: &Arc<Index>, wanted: &PlannerQuery<'_>) -> Option<IndexScan> {
    geo_scan::scan_of(index, wanted).or_else(|| hashed::scan_of(index, wanted)).or_else(|| wildcard_scan(index, wanted))
}

/// The scan of an index over all fields.
fn wildcard_scan(index: &Arc<Index>, wanted: &PlannerQuery<'_>) -> Option<IndexScan> {
    let BoundedKeys { intervals, bounds, filter } = wildcard::bounded_keys(index, wanted)?;
    Some(IndexScan { bounds, filter, ..IndexScan::new(Some(index.clone()), intervals) })
}

/// The plan that a hint asks for, even where the index leaves documents out, as MongoDB has it. Error 2 when there is no such index.
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

/// The plan that goes through an index from `min` to `max`; conditions are left to the evaluator.
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
        // `explain` has none to show, as MongoDB.
        scan.bounds.clear();
    }
    plan
}

#[cfg(test)]
mod tests;
