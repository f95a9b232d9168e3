//! The bounds of an index: those of all conditions on its fields.

use crate::bounds::{self, FieldContext, IndexBounds};
use crate::conditions::{Condition, PlannerQuery, Scope};
use crate::{FieldBounds, ValueRange, partial};
use document::{Kind, Value};
use index_keys::{IndexField, IndexShape};
use query::predicate::Test;
use steps::Counted;

/// The bounds of an index that is ordered by the fields' values. Other indexes have no bounds.
pub struct CompoundBounds<'c> {
    /// `None`: the index on `_id`, which has every document.
    pub shape: Option<&'c IndexShape>,
    pub fields: &'c [IndexField],
    /// The components of the index's paths that have met arrays.
    pub arrays: u64,
    /// The ranges of each field; all values if it is not bound.
    pub bounds: Vec<FieldBounds>,
    /// Every document in the bounds matches.
    pub exact: bool,
    /// The number of leading fields bound to points, and whether the one behind them is bound.
    pub points: usize,
    pub ranged: bool,
    /// The index has all documents that may match.
    pub complete: bool,
}

/// The bounds of one field, with their origin.
struct Bound {
    bounds: IndexBounds,
    scope: Scope,
    conditions: usize,
}

impl<'c> CompoundBounds<'c> {
    pub fn new(
        shape: Option<&'c IndexShape>,
        fields: &'c [IndexField],
        arrays: u64,
        wanted: &PlannerQuery<'_>,
    ) -> CompoundBounds<'c> {
        let mut binding = CompoundBounds {
            shape,
            fields,
            arrays,
            bounds: Vec::with_capacity(fields.len()),
            exact: wanted.is_complete(),
            points: 0,
            ranged: false,
            complete: true,
        };
        let conditions = binding.bind(wanted);
        binding.complete = binding.is_complete(wanted);
        binding.exact &= conditions == wanted.conditions.len() && binding.complete;
        binding
    }

    /// Determines each field's bounds. Returns how many conditions they express.
    fn bind(&mut self, wanted: &PlannerQuery<'_>) -> usize {
        let mut conditions = 0;
        let mut bound: Vec<(usize, Scope)> = Vec::new();
        for at in 0..self.fields.len() {
            let leading = self.points == at;
            let found = self.bind_field(at, wanted, &bound);
            let Some(Bound { bounds, scope, conditions: used }) = found else {
                self.bounds.push(vec![ValueRange::everything()]);
                continue;
            };
            conditions += used;
            self.exact &= bounds.exact;
            if !bounds.universal {
                bound.push((at, scope));
            }
            if leading {
                let all = crate::is_everything(&bounds.ranges);
                self.points += usize::from(bounds.is_points());
                self.ranged = !bounds.is_points() && !all;
            }
            self.bounds.push(bounds.ranges);
        }
        conditions
    }

    fn bind_field(&self, at: usize, wanted: &PlannerQuery<'_>, before: &[(usize, Scope)]) -> Option<Bound> {
        let field = &self.fields[at];
        if !self.is_ordered() {
            return None;
        }
        let mut here: Vec<(Scope, IndexBounds)> = Vec::new();
        for condition in wanted.conditions.iter().counted().filter(|condition| *condition.path == field.path) {
            here.extend(self.read(at, condition).map(|bounds| (condition.scope, bounds)));
        }
        let joined = |all: Vec<(Scope, IndexBounds)>| {
            let (conditions, scope) = (all.len(), all.first()?.0);
            let bounds = bounds::all_of(all.into_iter().map(|(_, bounds)| bounds).collect())?;
            Some(Bound { bounds, scope, conditions })
        };
        if self.arrays_of(at) == 0 {
            return joined(here);
        }
        // Conditions on all values of a document can be combined with any others.
        let is_universal = |scope: Scope, bounds: &IndexBounds| bounds.universal && scope == Scope::DOCUMENT;
        let (mut chosen, mut some): (Vec<_>, Vec<_>) =
            here.into_iter().partition(|(scope, bounds)| is_universal(*scope, bounds));
        some.retain(|(scope, _)| before.iter().all(|(other, theirs)| self.go_together(at, *scope, *other, *theirs)));
        // Points are more selective than ranges; conditions of one element can be combined with
        // those on its other fields.
        some.sort_by_cached_key(|(scope, bounds)| (!bounds.is_points(), *scope == Scope::DOCUMENT, bounds.universal));
        if let Some(scope) = some.first().map(|(scope, _)| *scope) {
            let single = self.is_single(at, scope);
            let mut first = true;
            some.retain(|(other, bounds)| {
                *other == scope && (std::mem::take(&mut first) || single || bounds.universal)
            });
            some.iter_mut().for_each(|(_, bounds)| bounds.universal = false);
            some.append(&mut chosen);
            chosen = some;
        }
        joined(chosen)
    }

    /// Returns a condition's bounds on a field of the index.
    fn read(&self, at: usize, condition: &Condition<'_>) -> Option<IndexBounds> {
        let field = &self.fields[at];
        let context = FieldContext { collation: &field.collation, single: self.is_single(at, condition.scope) };
        let mut bounds = bounds::of(condition.test, context)?;
        if self.arrays_of(at) != 0 {
            // A sparse index may lack the null of one element if it has the value of another.
            let lacks_nulls = self.shape.is_some_and(|shape| shape.spec.sparse);
            let by_position = has_position(field);
            if (lacks_nulls || by_position) && reaches_null(&bounds) || by_position && bounds.universal {
                return None;
            }
            bounds.exact &= !by_position;
        }
        Some(bounds)
    }

    /// Returns whether bounds on two fields apply to one key: not if the fields are in the same
    /// array, and the conditions concern its elements in general.
    fn go_together(&self, at: usize, scope: Scope, other: usize, theirs: Scope) -> bool {
        let (field, other) = (&self.fields[at], &self.fields[other]);
        let shared = field.path.split('.').zip(other.path.split('.')).take_while(|(a, b)| a == b).count() as u32;
        let from = if scope == theirs { scope.depth } else { 0 };
        self.arrays & field.parts_between(from, shared) == 0
    }

    /// Returns whether the field has one value within the scope: no array.
    fn is_single(&self, at: usize, scope: Scope) -> bool {
        let field = &self.fields[at];
        self.arrays & field.parts_between(scope.depth, field.part_count()) == 0
    }

    /// Returns the components of a field's path that have met arrays.
    pub fn arrays_of(&self, at: usize) -> u64 {
        self.arrays & self.fields[at].all_parts()
    }

    pub fn is_bound(&self, at: usize) -> bool {
        !crate::is_everything(&self.bounds[at])
    }

    /// Returns whether the index has every matching document.
    fn is_complete(&self, wanted: &PlannerQuery<'_>) -> bool {
        let Some(shape) = self.shape else { return true };
        partial::covers_query(shape, wanted)
            && (!shape.spec.sparse || (0..self.fields.len()).any(|at| self.excludes_missing(at, wanted)))
    }

    fn excludes_missing(&self, at: usize, wanted: &PlannerQuery<'_>) -> bool {
        let field = &self.fields[at];
        wanted.conditions.iter().counted().filter(|condition| *condition.path == field.path).any(|condition| {
            let context = FieldContext { collation: &field.collation, single: self.is_single(at, condition.scope) };
            bounds::of(condition.test, context)
                .map_or_else(|| needs_value(condition.test), |bounds| bounds.excludes_missing)
        })
    }

    /// Returns whether the index's keys consist of the fields' values.
    pub fn is_ordered(&self) -> bool {
        self.shape.is_none_or(|shape| shape.kind.is_ordered())
    }

    pub fn narrows(&self) -> bool {
        self.points > 0 || self.ranged
    }
}

fn reaches_null(bounds: &IndexBounds) -> bool {
    bounds.ranges.iter().counted().any(|range| {
        let (low, high) = (range.low.value.as_value(), range.high.value.as_value());
        document::compare(low, Value::Null).is_le() && document::compare(high, Value::Null).is_ge()
    })
}

/// Returns whether the test requires the field to exist.
fn needs_value(test: &Test) -> bool {
    match test {
        Test::Collated(inner, _) => needs_value(inner),
        Test::Equal(value) | Test::GreaterOrEqual(value) | Test::LessOrEqual(value) => {
            !matches!(value.kind(), Kind::Null | Kind::MinKey | Kind::MaxKey)
        }
        Test::Greater(value) | Test::Less(value) => !matches!(value.kind(), Kind::MinKey | Kind::MaxKey),
        Test::In(list) => list.values().iter().all(|value| value.kind() != Kind::Null),
        Test::Not(_) | Test::And(_) => false,
        _ => true,
    }
}

pub fn has_position(field: &IndexField) -> bool {
    field.path.split('.').any(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
}
