//! `indexBounds`: the values of each field that an index is read for, as far as the plan's keys go
//! by conditions.

use crate::plan::element_condition;
use crate::plan::index_bounds::IndexBounds;
use access::bounds::{self, FieldContext};
use access::conditions::PlannerQuery;
use access::explain::{write_ranges, write_start_and_end};
use access::{FieldBounds, ValueRange, ranges};
use document::{Collation, DocWriter, Value};
use query::Predicate;
use query::predicate::Test;
use store::index_kind::descends;
use store::{FieldKind, IndexSpec};

/// A key length that does not affect the facts read from [`IndexBounds`] here.
const KEY_BYTES: usize = 256;

pub(super) fn write(
    spec: &IndexSpec,
    arrays: u64,
    predicate: Option<&Predicate>,
    forward: bool,
    writer: &mut DocWriter<'_>,
) {
    let wanted = conditions(predicate);
    // MongoDB shows no bounds for `min` and `max`.
    if wanted.range.is_some() {
        return;
    }
    for ((path, direction), sought) in spec.key.as_doc().iter().zip(of_fields(spec, arrays, &wanted)) {
        let mut ranges = ranges_of(&sought);
        let ascends = forward != descends(direction);
        if FieldKind::of(path, direction) == FieldKind::Hashed {
            // As MongoDB has them: in no order, each by its hash.
            ranges.iter_mut().filter(|range| range.is_point()).for_each(hash);
        }
        write_ranges(&ranges, ascends, &mut writer.array(path));
    }
}

/// Makes a range of one value that of its hash.
fn hash(range: &mut ValueRange) {
    let hash = values::hash::hash(range.low.value.as_value(), &Collation::SIMPLE);
    *range = ValueRange::point(Value::Int64(hash).to_owned(), &Collation::SIMPLE);
}

/// Returns whether keys from one to another are read, and nothing in between is left out.
pub(super) fn is_one_range(spec: &IndexSpec, arrays: u64, predicate: Option<&Predicate>) -> bool {
    of_fields(spec, arrays, &conditions(predicate)).iter().all(|sought| ranges_of(sought).len() == 1)
}

/// Writes the first key that is counted, and the last, of one range.
pub(super) fn write_edges(spec: &IndexSpec, arrays: u64, predicate: Option<&Predicate>, writer: &mut DocWriter<'_>) {
    let ranges: Vec<FieldBounds> =
        of_fields(spec, arrays, &conditions(predicate)).iter().map(|sought| ranges_of(sought)).collect();
    let paths = spec.key.as_doc().iter().map(|(path, _)| path);
    let fields: Vec<(&str, &ValueRange)> =
        paths.zip(&ranges).filter_map(|(path, ranges)| Some((path, ranges.first()?))).collect();
    write_start_and_end(&fields, writer);
}

/// Returns whether the keys decide a condition on a field.
pub(super) fn is_decided(
    spec: &IndexSpec,
    arrays: u64,
    predicate: Option<&Predicate>,
    path: &str,
    test: &Test,
) -> bool {
    let wanted = conditions(predicate);
    // Different values may have the same hash.
    let is_here = |(field, kind): (&str, Value<'_>)| field == path && FieldKind::of(field, kind) != FieldKind::Hashed;
    let position = spec.key.as_doc().iter().position(is_here);
    let (Some(position), None) = (position, wanted.range) else { return false };
    let Some(bounds) = IndexBounds::of([test], KEY_BYTES).filter(|bounds| bounds.exact) else { return false };
    let sought = || of_fields(spec, arrays, &wanted).swap_remove(position);
    let is_sought = |one: &Sought<'_>| one.test.is_some_and(|sought| std::ptr::eq(sought, test));
    // Conditions of low selectivity concern all elements of an array.
    arrays & 1 << position == 0 || !bounds.low_selectivity && sought().iter().any(is_sought)
}

fn conditions(predicate: Option<&Predicate>) -> PlannerQuery<'_> {
    predicate.map_or_else(PlannerQuery::default, |predicate| PlannerQuery::of_node(predicate.root()))
}

/// Conditions on a field that keys are looked up for.
struct Sought<'w> {
    /// The condition, if it concerns whole documents.
    test: Option<&'w Test>,
    /// The `$elemMatch`, if the conditions concern one element of an array.
    element: Option<u32>,
    ranges: FieldBounds,
}

/// Returns the conditions that each of the index's fields is read for. `arrays`: the fields that
/// have met arrays, as bits.
fn of_fields<'w>(spec: &'w IndexSpec, arrays: u64, wanted: &'w PlannerQuery<'_>) -> Vec<Vec<Sought<'w>>> {
    let mut fields: Vec<Vec<Sought<'w>>> = Vec::new();
    let mut within: Vec<(&str, Option<u32>)> = Vec::new();
    for (position, (path, _)) in spec.key.as_doc().iter().enumerate() {
        let is_array = arrays & 1 << position != 0;
        let mut sought = of_field(path, is_array, wanted);
        if is_array {
            // One element may meet one condition, another the next, but for those of one
            // `$elemMatch`.
            let first = |path: &str| path.split('.').next().map(str::to_owned);
            let beside = within.iter().filter(|(other, _)| first(other) == first(path));
            let beside: Vec<Option<u32>> = beside.map(|(_, element)| *element).collect();
            sought.retain(|one| beside.iter().all(|other| other.is_some() && *other == one.element));
            sought.truncate(1);
            within.extend(sought.first().map(|one| (path, one.element)));
        }
        fields.push(sought);
    }
    fields
}

fn ranges_of(sought: &[Sought<'_>]) -> FieldBounds {
    let all = sought.iter().map(|one| one.ranges.clone());
    all.reduce(|one, other| ranges::intersection(&one, &other)).unwrap_or_else(|| vec![ValueRange::everything()])
}

/// Returns the conditions on a field; those on elements of an array first.
fn of_field<'w>(path: &str, is_array: bool, wanted: &'w PlannerQuery<'_>) -> Vec<Sought<'w>> {
    let context = FieldContext { collation: &Collation::SIMPLE, single: !is_array };
    let mut all: Vec<Sought<'w>> = Vec::new();
    for condition in element_condition::of_query(wanted).filter(|it| is_array && it.path == path) {
        let Some(bounds) = bounds::of(condition.test, context) else { continue };
        match all.iter_mut().find(|one| one.element == Some(condition.scope)) {
            Some(same) => same.ranges = ranges::intersection(&same.ranges, &bounds.ranges),
            None => all.push(Sought { test: None, element: Some(condition.scope), ranges: bounds.ranges }),
        }
    }
    let whole = wanted.tests_of(path).filter(|test| !matches!(test, Test::ElementSatisfies(_)));
    all.extend(whole.filter_map(|test| {
        let ranges = bounds::of(test, context)?.ranges;
        Some(Sought { test: Some(test), element: None, ranges })
    }));
    all
}
