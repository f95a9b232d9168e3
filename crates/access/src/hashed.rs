//! Equality conditions, by the hash of the value.

use crate::bounded_keys::BoundedKeys;
use crate::conditions::{PlannerQuery, Scope};
use crate::{FieldBounds, Interval, ValueRange};
use document::{Collation, Kind, Value, ValueBuf};
use index_keys::keys::{encode_field, end_of_prefix};
use index_keys::{IndexField, IndexShape};
use query::predicate::Test;
use store::FieldKind;

/// Combinations of values that are looked up one by one.
const POINTS_MAX: usize = 4096;

/// Returns the keys of documents whose first fields equal some values; `None` without such a
/// condition on the first field.
pub fn keys(index: &IndexShape, wanted: &PlannerQuery<'_>) -> Option<BoundedKeys> {
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bounds: Vec<(String, FieldBounds)> = Vec::new();
    let mut excludes_missing = !index.spec.sparse;
    for field in &index.fields {
        let found = values(field, wanted).filter(|found| found.len() * prefixes.len() <= POINTS_MAX);
        let Some(found) = found else { break };
        excludes_missing |= found.iter().all(|value| !matches!(value.kind(), Kind::Null | Kind::Undefined));
        let stored: Vec<ValueBuf> = found.into_iter().map(|value| stored_value(value, field)).collect();
        prefixes =
            prefixes.iter().flat_map(|prefix| stored.iter().map(|value| append_field(prefix, value, field))).collect();
        let points = stored.into_iter().map(|value| ValueRange::point(value, &field.collation)).collect();
        bounds.push((field.path.clone(), points));
    }
    if bounds.is_empty() || !excludes_missing {
        return None;
    }
    for field in &index.fields[bounds.len()..] {
        bounds.push((field.path.clone(), vec![ValueRange::everything()]));
    }
    let mut intervals: Vec<Interval> =
        prefixes.into_iter().map(|low| Interval { high: end_of_prefix(low.clone()), low }).collect();
    intervals.sort_unstable();
    intervals.dedup();
    Some(BoundedKeys { bounds, ..BoundedKeys::new(intervals) })
}

/// Returns the values that a field must equal. A query for null also finds undefined.
fn values(field: &IndexField, wanted: &PlannerQuery<'_>) -> Option<Vec<ValueBuf>> {
    let here = wanted.conditions.iter().filter(|it| it.path == field.path && it.scope == Scope::DOCUMENT);
    let found = here.filter_map(|condition| equality(condition.test, field)).min_by_key(|values| values.len())?;
    if found.iter().any(|value| matches!(value.kind(), Kind::Array | Kind::Undefined)) {
        return None;
    }
    let mut found = found.to_vec();
    if found.iter().any(|value| value.kind() == Kind::Null) {
        found.push(Value::Undefined.to_owned());
    }
    Some(found)
}

fn equality<'t>(test: &'t Test, field: &IndexField) -> Option<&'t [ValueBuf]> {
    match equality_by_keys(test, &field.collation)? {
        Test::Equal(value) => Some(std::slice::from_ref(value)),
        Test::In(list) if list.regexes().is_empty() => Some(list.values()),
        _ => None,
    }
}

/// Returns the value that the index stores for a value.
fn stored_value(value: ValueBuf, field: &IndexField) -> ValueBuf {
    match field.kind {
        FieldKind::Hashed => Value::Int64(values::hash::hash(value.as_value(), &field.collation)).to_owned(),
        _ => value,
    }
}

fn append_field(prefix: &[u8], value: &ValueBuf, field: &IndexField) -> Vec<u8> {
    let mut key = prefix.to_vec();
    encode_field(value.as_value(), field, &mut key);
    key
}

/// Returns the test that keys of this collation decide; `None` if strings compare by another one.
pub fn equality_by_keys<'t>(test: &'t Test, collation: &Collation) -> Option<&'t Test> {
    match test {
        Test::Collated(test, of) => (of == collation).then_some(&**test),
        Test::Equal(value) => (!collation.concerns(value.kind())).then_some(test),
        Test::In(list) => (!list.values().iter().any(|value| collation.concerns(value.kind()))).then_some(test),
        _ => None,
    }
}
