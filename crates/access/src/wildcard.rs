//! Conditions on one field, by a wildcard index: the keys of the field's path.

use crate::bounded_keys::{BoundedKeys, WILDCARD_PATH};
use crate::bounds::{self, FieldContext, IndexBounds};
use crate::conditions::{Condition, PlannerQuery, Scope};
use crate::{Interval, ValueRange};
use document::{Doc, Value};
use error::{Code, Error, Result};
use index_keys::keys::{is_plain, wildcard};
use index_keys::{IndexField, IndexShape};
use query::predicate::Test;
use steps::Counted;
use store::index_kind::WildcardOptions;
use store::{IndexKind, Query};

/// Returns the keys of the most selective condition; `None` if no condition is on a field of the
/// index.
pub fn keys(shape: &IndexShape, options: &WildcardOptions, wanted: &PlannerQuery<'_>) -> Option<BoundedKeys> {
    let field = shape.fields.first()?;
    let usable = |condition: &&Condition<'_>| {
        let by_position = condition.path.split('.').any(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        condition.scope == Scope::DOCUMENT && !by_position && options.covers(&condition.path)
    };
    let usable = wanted.conditions.iter().counted().filter(usable);
    let found = usable.filter_map(|condition| Some((&*condition.path, bounds_of(condition.test, field)?)));
    let (path, bounds) = found.min_by_key(|(_, bounds)| !bounds.ranges.iter().all(ValueRange::is_point))?;
    let mut front = Vec::new();
    wildcard::encode_path(path, &mut front);
    let interval = |range: &ValueRange| {
        let Interval { low, high } = range.interval(field.ascending);
        Interval { low: [front.as_slice(), &low].concat(), high: [front.as_slice(), &high].concat() }
    };
    let mut intervals: Vec<Interval> = bounds.ranges.iter().counted().map(interval).collect();
    intervals.sort_unstable_by(|a, b| {
        steps::step();
        a.cmp(b)
    });
    let shown = ValueRange::point(Value::String(path).to_owned(), &document::Collation::SIMPLE);
    let bounds = vec![(WILDCARD_PATH.to_owned(), vec![shown]), (path.to_owned(), bounds.ranges)];
    Some(BoundedKeys { bounds, ..BoundedKeys::new(intervals) })
}

/// Fails with 291 for a hint of a wildcard index that does not serve the query.
///
/// Such an index has no key of a document without any of its fields, so a scan of the whole index
/// would miss documents.
pub fn check_hint(kind: &IndexKind, query: &Query<'_>) -> Result<()> {
    let IndexKind::Wildcard(options) = kind else { return Ok(()) };
    let wanted = PlannerQuery::of(query);
    let mut conditions = wanted.conditions.iter();
    let is_about_fields =
        !wanted.disjunctions.is_empty() || conditions.any(|condition| options.covers(&condition.path));
    let reason = match (is_about_fields, query.predicate.matches(Doc::EMPTY)?) {
        (true, false) => return Ok(()),
        (true, true) => "$hint: refusing to build whole-index solution, because it's a wildcard index",
        (false, _) => "No query solutions",
    };
    let message = format!("error processing query: planner returned error :: caused by :: {reason}");
    Err(Error::new(Code::NO_QUERY_EXECUTION_PLANS, message))
}

/// Returns the bounds of a comparison with a scalar value. Other comparisons may be met by
/// documents that have no such field, or whose inner fields are in the index.
fn bounds_of(test: &Test, field: &IndexField) -> Option<IndexBounds> {
    let comparison = if let Test::Collated(inner, _) = test { inner } else { test };
    let operands = match comparison {
        Test::Equal(value)
        | Test::Less(value)
        | Test::LessOrEqual(value)
        | Test::Greater(value)
        | Test::GreaterOrEqual(value) => std::slice::from_ref(value),
        Test::In(list) => list.values(),
        // The index has all strings, also those in arrays.
        Test::Regex(_) => &[],
        _ => return None,
    };
    if !operands.iter().counted().all(|value| is_plain(value.kind())) {
        return None;
    }
    bounds::of(test, FieldContext { collation: &field.collation, single: false })
        .filter(|bounds| bounds.excludes_missing)
}
