//! What to look up in the table with the elements of an index's arrays
//! ([`crate::index::element_table`]).
//!
//! Each place where a document may have its array is looked up by itself, for there it is known
//! what the conditions are about: fields elsewhere have one value, so all conditions on them hold
//! for each row. Of fields within the array, those conditions go together that one element has to
//! meet (`$elemMatch`); of others, one is taken, as each may be met by another element. What an
//! element's own arrays hide is among the keys that every lookup reads.

use crate::index::Index;
use crate::index::element_table::definition::{key_column, places, rest_within};
use crate::index::element_table::record::ElementTable;
use crate::plan::index_bounds::IndexBounds;
use crate::plan::key_condition::in_ranges;
use crate::plan::planner_query::PlannerQuery;
use crate::plan::pushdown::Condition;
use query::predicate::Test;

/// The bounds on one element's field that conditions of one `$elemMatch` put there, for a measure
/// of what they are worth.
pub(crate) fn bounds_of(path: &str, wanted: &PlannerQuery<'_>, bytes: usize) -> Option<IndexBounds> {
    let first = wanted.elements.iter().find(|condition| condition.path == path)?.scope;
    of_scope(first, path, wanted, bytes)
}

fn of_scope(scope: usize, path: &str, wanted: &PlannerQuery<'_>, bytes: usize) -> Option<IndexBounds> {
    let own = wanted.elements.iter().filter(|condition| condition.scope == scope && condition.path == path);
    let tests: Vec<(&str, &Test)> = own.map(|condition| (path, condition.test)).collect();
    IndexBounds::of(path, &tests, bytes)
}

/// The condition on the rows of the index's table; `None` where the index itself does as well.
pub(crate) fn condition(index: &Index, values: &ElementTable, wanted: &PlannerQuery<'_>) -> Option<Condition> {
    let is_bound = |(position, path): (usize, &str)| {
        let bound = || IndexBounds::of(path, &wanted.conditions, index.bytes()).is_some();
        values.fields & 1 << position != 0 && bound() || bounds_of(path, wanted, index.bytes()).is_some()
    };
    if !index.fields().enumerate().any(is_bound) {
        return None;
    }
    let mut parts = Vec::new();
    for (number, place) in places(index).into_iter().enumerate() {
        // Of what has to be an array, nothing lies in an array behind it.
        let is_behind = |array: &str| rest_within(place, array).is_some_and(|rest| !rest.is_empty());
        if wanted.elements.iter().any(|condition| is_behind(condition.array)) {
            continue;
        }
        let bounds = bounds_in(place, index, wanted);
        let fields = bounds.iter().enumerate().filter_map(|(position, bounds)| Some((position, bounds.as_ref()?)));
        let fields = fields.map(|(position, bounds)| in_ranges(&format!("e.{}", key_column(position)), &bounds.all()));
        let fields: Vec<Condition> = fields.collect();
        if fields.is_empty() {
            return None;
        }
        let here = Condition::new(format!("e.place = {number}"), Vec::new());
        parts.push(Condition::joined(std::iter::once(here).chain(fields).collect(), " AND "));
    }
    match parts.is_empty() {
        true => Some(Condition::new("FALSE".into(), Vec::new())),
        false => Some(Condition::joined(parts, " OR ")),
    }
}

/// The bounds of each field in rows of this place.
fn bounds_in(place: &str, index: &Index, wanted: &PlannerQuery<'_>) -> Vec<Option<IndexBounds>> {
    let bytes = index.bytes();
    let scope = scope_in(place, index, wanted);
    let chosen = if scope.is_none() { condition_in(place, index, wanted) } else { None };
    let of_field = |(position, path): (usize, &str)| match (rest_within(path, place), scope) {
        // What has to be an array, and is none of this place, hides.
        (None, _) => IndexBounds::of(path, &wanted.conditions, bytes).or_else(|| {
            wanted.elements.iter().find(|condition| condition.path == path).map(|_| IndexBounds::of_arrays())
        }),
        (Some(_), Some(scope)) => of_scope(scope, path, wanted, bytes),
        (Some(_), None) => chosen.filter(|chosen| *chosen == position).and_then(|_| of_one(path, wanted, bytes)),
    };
    index.fields().enumerate().map(of_field).collect()
}

/// The `$elemMatch` on this place that says most of the fields in it.
fn scope_in(place: &str, index: &Index, wanted: &PlannerQuery<'_>) -> Option<usize> {
    let here = wanted.elements.iter().filter(|condition| condition.array == place).map(|condition| condition.scope);
    let said =
        |scope: usize| index.fields().filter(|path| of_scope(scope, path, wanted, index.bytes()).is_some()).count();
    here.map(|scope| (said(scope), scope)).filter(|(said, _)| *said > 0).max().map(|(_, scope)| scope)
}

/// The field within this place whose condition is taken: the first, as it leads the rows' keys.
fn condition_in(place: &str, index: &Index, wanted: &PlannerQuery<'_>) -> Option<usize> {
    let mut fields = index.fields();
    fields.position(|path| rest_within(path, place).is_some() && of_one(path, wanted, index.bytes()).is_some())
}

fn of_one(path: &str, wanted: &PlannerQuery<'_>, bytes: usize) -> Option<IndexBounds> {
    IndexBounds::of_element(path, &wanted.conditions, bytes)
}
