//! Lookups in the element table of an index ([`crate::index::element_table`]).
//!
//! Each path component that may hold an array is a separate case. Within a case the other fields
//! have one value each, so all their conditions hold for each row. Of fields within the array,
//! conditions of one `$elemMatch` are combined, since one element must match them all. Of
//! independent conditions only one is used, because different elements may match them. Elements
//! within nested arrays are among the catch-all keys, which every lookup reads.

use crate::index::Index;
use crate::index::element_table::definition::{key_column, places, rest_within};
use crate::index::element_table::record::ElementTable;
use crate::plan::element_condition;
use crate::plan::index_bounds::IndexBounds;
use crate::plan::key_condition::in_ranges;
use crate::plan::pushdown::Condition;
use access::conditions::PlannerQuery;

/// Returns the bounds of an element's field by the conditions of one `$elemMatch`, to estimate
/// their selectivity.
pub(crate) fn bounds_of(path: &str, wanted: &PlannerQuery<'_>, bytes: usize) -> Option<IndexBounds> {
    let first = element_condition::of_query(wanted).find(|condition| condition.path == path)?.scope;
    of_scope(first, path, wanted, bytes)
}

fn of_scope(scope: u32, path: &str, wanted: &PlannerQuery<'_>, bytes: usize) -> Option<IndexBounds> {
    let own = element_condition::of_query(wanted).filter(|it| it.scope == scope && it.path == path);
    IndexBounds::of(own.map(|condition| condition.test), bytes)
}

/// Returns the condition on the element table; `None` if the index itself serves as well.
pub(crate) fn condition(index: &Index, values: &ElementTable, wanted: &PlannerQuery<'_>) -> Option<Condition> {
    let is_bound = |(position, path): (usize, &str)| {
        let bound = || IndexBounds::of(wanted.tests_of(path), index.bytes()).is_some();
        values.fields & 1 << position != 0 && bound() || bounds_of(path, wanted, index.bytes()).is_some()
    };
    if !index.fields().enumerate().any(is_bound) {
        return None;
    }
    let mut parts = Vec::new();
    for (number, place) in places(index).into_iter().enumerate() {
        // The value at `array` must be an array, and so has no arrays below this component.
        let is_behind = |array: &str| rest_within(place, array).is_some_and(|rest| !rest.is_empty());
        if element_condition::of_query(wanted).any(|condition| is_behind(condition.array)) {
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

/// Returns the bounds of each field in rows of this component.
fn bounds_in(place: &str, index: &Index, wanted: &PlannerQuery<'_>) -> Vec<Option<IndexBounds>> {
    let bytes = index.bytes();
    let scope = scope_in(place, index, wanted);
    let chosen = if scope.is_none() { condition_in(place, index, wanted) } else { None };
    let of_field = |(position, path): (usize, &str)| match (rest_within(path, place), scope) {
        // A required array elsewhere has a catch-all key in these rows.
        (None, _) => IndexBounds::of(wanted.tests_of(path), bytes).or_else(|| {
            element_condition::of_query(wanted).find(|it| it.path == path).map(|_| IndexBounds::of_arrays())
        }),
        (Some(_), Some(scope)) => of_scope(scope, path, wanted, bytes),
        (Some(_), None) => chosen.filter(|chosen| *chosen == position).and_then(|_| of_one(path, wanted, bytes)),
    };
    index.fields().enumerate().map(of_field).collect()
}

/// Returns the `$elemMatch` on this component that bounds the most fields.
fn scope_in(place: &str, index: &Index, wanted: &PlannerQuery<'_>) -> Option<u32> {
    let here = element_condition::of_query(wanted).filter(|it| it.array == place).map(|it| it.scope);
    let bound =
        |scope: u32| index.fields().filter(|path| of_scope(scope, path, wanted, index.bytes()).is_some()).count();
    here.map(|scope| (bound(scope), scope)).filter(|(bound, _)| *bound > 0).max().map(|(_, scope)| scope)
}

/// Returns the field within this component whose condition is used: the first, as it leads the
/// keys.
fn condition_in(place: &str, index: &Index, wanted: &PlannerQuery<'_>) -> Option<usize> {
    let mut fields = index.fields();
    fields.position(|path| rest_within(path, place).is_some() && of_one(path, wanted, index.bytes()).is_some())
}

fn of_one(path: &str, wanted: &PlannerQuery<'_>, bytes: usize) -> Option<IndexBounds> {
    IndexBounds::of_element(wanted.tests_of(path), bytes)
}
