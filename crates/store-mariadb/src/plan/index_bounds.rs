//! IndexBounds of an index: from the conditions on a field to ranges of its keys.

mod low_selectivity;

use crate::index::column_key;
use document::{Kind, Value, ValueBuf};
use query::predicate::Test;
use query::sort;
use values::regex::Beginning;

/// The most values compared with; a longer list is left to the evaluator.
const POINTS_MAX: usize = 2_000;

/// Keys from `low` (inclusive) to `high` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub low: Vec<u8>,
    pub high: Vec<u8>,
}

impl KeyRange {
    fn point(key: Vec<u8>) -> KeyRange {
        KeyRange { high: column_key::after(key.clone()), low: key }
    }

    fn of((low, high): (&[u8], &[u8])) -> KeyRange {
        KeyRange { low: low.to_vec(), high: high.to_vec() }
    }

    /// Returns whether the range has a single key.
    pub fn is_point(&self) -> bool {
        self.high.split_last().is_some_and(|(last, rest)| *last == 0 && rest == self.low)
    }
}

/// The keys that matching documents may have in one field.
#[derive(Clone, Debug)]
pub(crate) struct IndexBounds {
    /// Ranges of ordered keys: disjoint, ascending.
    pub ordered: Vec<KeyRange>,
    /// Ranges of unordered keys that may match.
    pub unordered: Vec<KeyRange>,
    /// How many conditions the bounds represent.
    pub conditions: usize,
    /// Every document with one of the ordered keys meets those conditions.
    pub exact: bool,
    /// Documents without the field do not match.
    pub excludes_missing: bool,
    /// Only elements of an array may match, not an array as a whole.
    pub excludes_arrays: bool,
    /// Most documents may match: see [`low_selectivity`].
    pub low_selectivity: bool,
}

impl IndexBounds {
    /// Returns the bounds of a field by its conditions; `None` if none of them bounds it. `bytes`:
    /// length of a key without the type byte.
    pub fn of<'t>(tests: impl IntoIterator<Item = &'t Test>, bytes: usize) -> Option<IndexBounds> {
        tests.into_iter().filter_map(|test| IndexBounds::of_test(test, bytes)).reduce(IndexBounds::and)
    }

    /// Returns the bounds of a single condition on an array element, since other elements may meet
    /// the other conditions. Only a condition that the array as a whole cannot meet is used.
    pub fn of_element<'t>(tests: impl Iterator<Item = &'t Test>, bytes: usize) -> Option<IndexBounds> {
        let all = tests.filter_map(|test| IndexBounds::of_test(test, bytes));
        all.filter(|bounds| bounds.excludes_arrays).min_by_key(|bounds| bounds.low_selectivity)
    }

    /// Returns the bounds of an index's fields by `min` and `max`: the fields that are equal in
    /// both, and the next one.
    pub fn of_range_hint(range: &sort::KeyRange, fields: usize) -> Vec<IndexBounds> {
        let mut bounds = Vec::new();
        for field in 0..fields {
            let (low, high) = range.field_bounds(field);
            let goes_on = matches!((low, high), (Some((low, _)), Some((high, _))) if is_same(low, high));
            let low = low.map_or_else(|| column_key::NULLS.0.to_vec(), low_edge);
            let high = high.map_or_else(|| column_key::END.to_vec(), high_edge);
            bounds.push(IndexBounds::between(low, high));
            if !goes_on {
                break;
            }
        }
        bounds
    }

    /// Returns the bounds of all keys in a range, whatever their types.
    fn between(low: Vec<u8>, high: Vec<u8>) -> IndexBounds {
        let excludes_missing = low.as_slice() >= column_key::NULLS.1;
        let whole = KeyRange { low, high };
        let placed = [
            KeyRange::of((column_key::NULLS.0, column_key::UNORDERED.0)),
            KeyRange::of((column_key::UNORDERED.1, column_key::END)),
        ];
        let plain = intersections(&[whole], &placed);
        IndexBounds {
            conditions: 0,
            excludes_missing,
            excludes_arrays: false,
            ..IndexBounds::new(plain, vec![KeyRange::of(column_key::UNORDERED)], false)
        }
    }

    /// Returns whether the bounds are only of booleans and null, which many documents share.
    pub fn is_of_flags(&self) -> bool {
        let flag = |range: &KeyRange| {
            column_key::FLAGS.iter().any(|(low, high)| *low <= &range.low[..] && &range.high[..] <= *high)
        };
        !self.ordered.is_empty() && self.ordered.iter().all(flag)
    }

    /// Returns all ranges of keys that a matching document may have.
    pub fn all(&self) -> Vec<KeyRange> {
        [self.ordered.as_slice(), &self.unordered].concat()
    }

    /// Returns the bounds of all keys except that of arrays.
    pub fn except_arrays() -> IndexBounds {
        let range = |low: &[u8], high: &[u8]| KeyRange::of((low, high));
        let (plain, odd) = (
            range(column_key::NULLS.0, column_key::CATCH_ALL.0),
            range(column_key::CATCH_ALL_EXCEPT_ARRAYS.0, column_key::END),
        );
        IndexBounds { conditions: 0, excludes_missing: false, ..IndexBounds::new(vec![plain], vec![odd], false) }
    }

    /// Returns the bounds of documents in which the field must meet an array.
    pub fn of_arrays() -> IndexBounds {
        IndexBounds { conditions: 0, ..IndexBounds::new(Vec::new(), vec![KeyRange::of(column_key::CATCH_ALL)], false) }
    }

    /// Removes the key of arrays, whose elements are looked up in the element table.
    pub fn without_arrays(mut self) -> IndexBounds {
        let hiding = KeyRange::of(column_key::CATCH_ALL);
        let but_arrays = KeyRange::of(column_key::CATCH_ALL_EXCEPT_ARRAYS);
        self.unordered.iter_mut().filter(|range| **range == hiding).for_each(|range| *range = but_arrays.clone());
        self
    }

    fn of_test(test: &Test, bytes: usize) -> Option<IndexBounds> {
        match test {
            Test::Equal(value) => IndexBounds::of_points(std::slice::from_ref(value), bytes),
            Test::In(list) => {
                let beginnings =
                    list.regexes().iter().map(|regex| Some(IndexBounds::of_beginning(&regex.beginning()?, bytes)));
                beginnings.fold(IndexBounds::of_points(list.values(), bytes), |all, one| Some(all?.or(one?)))
            }
            Test::Less(value) => IndexBounds::of_range(value.as_value(), false, false, bytes),
            Test::LessOrEqual(value) => IndexBounds::of_range(value.as_value(), false, true, bytes),
            Test::Greater(value) => IndexBounds::of_range(value.as_value(), true, false, bytes),
            Test::GreaterOrEqual(value) => IndexBounds::of_range(value.as_value(), true, true, bytes),
            Test::Regex(regex) => match regex.beginning() {
                Some(beginning) => Some(IndexBounds::of_beginning(&beginning, bytes)),
                None => low_selectivity::of_test(test, bytes),
            },
            _ => low_selectivity::of_test(test, bytes),
        }
    }

    fn new(ordered: Vec<KeyRange>, unordered: Vec<KeyRange>, exact: bool) -> IndexBounds {
        IndexBounds {
            ordered,
            unordered,
            conditions: 1,
            exact,
            excludes_missing: true,
            excludes_arrays: true,
            low_selectivity: false,
        }
    }

    pub fn is_points(&self) -> bool {
        self.ordered.iter().all(KeyRange::is_point)
    }

    fn of_points(values: &[ValueBuf], bytes: usize) -> Option<IndexBounds> {
        if values.len() > POINTS_MAX {
            return None;
        }
        let mut bounds = IndexBounds::new(Vec::new(), vec![KeyRange::of(column_key::CATCH_ALL)], true);
        for value in values {
            bounds.add_point(value.as_value(), bytes)?;
        }
        bounds.ordered.sort_by(|left, right| left.low.cmp(&right.low));
        bounds.ordered.dedup();
        bounds.unordered.sort_by(|left, right| left.low.cmp(&right.low));
        bounds.unordered.dedup();
        Some(bounds)
    }

    fn add_point(&mut self, value: Value<'_>, bytes: usize) -> Option<()> {
        match value {
            Value::Null => {
                self.ordered.push(KeyRange::of(column_key::NULLS));
                (self.exact, self.excludes_missing, self.excludes_arrays) = (false, false, false);
            }
            Value::Document(_) => self.unordered.push(KeyRange::of(column_key::DOCUMENTS)),
            // Only arrays match.
            Value::Array(_) => self.excludes_arrays = false,
            Value::String(text) if text.len() > bytes => {
                let low = column_key::long_string(text.as_bytes(), bytes);
                self.unordered.push(KeyRange { high: column_key::after_prefix(low.clone()), low });
            }
            value => {
                let (key, exact) = column_key::key_of(value)?;
                self.exact &= exact;
                self.ordered.push(KeyRange::point(key));
            }
        }
        Some(())
    }

    fn of_range(value: Value<'_>, above: bool, included: bool, bytes: usize) -> Option<IndexBounds> {
        let (low, high) = bracket(value.kind())?;
        let (place, exact) = column_key::key_of(value)?;
        // NaN equals itself, and is neither above nor below any number.
        if place == b"30" {
            return None;
        }
        let past = column_key::after(place.clone());
        // An inexact key may also be that of another value.
        let plain = match above {
            true => KeyRange { low: if included || !exact { place } else { past }, high: high.to_vec() },
            false => KeyRange { low: low.to_vec(), high: if included || !exact { past } else { place } },
        };
        let mut odd = Vec::new();
        if let Some(text) = value.string_bytes() {
            let edge = column_key::long_string(text, bytes);
            odd.push(match above {
                true => KeyRange { low: edge, high: b"F".to_vec() },
                false => KeyRange { low: b"E".to_vec(), high: column_key::after_prefix(edge) },
            });
        }
        odd.push(KeyRange::of(column_key::CATCH_ALL));
        Some(IndexBounds::new(vec![plain], odd, exact))
    }

    /// Returns the bounds of strings that begin with a text.
    fn of_beginning(beginning: &Beginning, bytes: usize) -> IndexBounds {
        let text = beginning.text.as_bytes();
        let low = [b"A", text].concat();
        let long = column_key::long_string(text, bytes);
        let plain = KeyRange { high: column_key::after_prefix(low.clone()), low };
        let odd = KeyRange { high: column_key::after_prefix(long.clone()), low: long };
        IndexBounds::new(vec![plain], vec![odd, KeyRange::of(column_key::CATCH_ALL)], beginning.is_all)
    }

    pub fn and(self, other: IndexBounds) -> IndexBounds {
        IndexBounds {
            ordered: intersections(&self.ordered, &other.ordered),
            unordered: intersections(&self.unordered, &other.unordered),
            conditions: self.conditions + other.conditions,
            exact: self.exact && other.exact,
            excludes_missing: self.excludes_missing || other.excludes_missing,
            excludes_arrays: self.excludes_arrays && other.excludes_arrays,
            low_selectivity: self.low_selectivity && other.low_selectivity,
        }
    }
}

impl IndexBounds {
    /// Returns the bounds of a disjunction, as one condition.
    fn or(self, other: IndexBounds) -> IndexBounds {
        IndexBounds {
            ordered: union([self.ordered, other.ordered].concat()),
            unordered: union([self.unordered, other.unordered].concat()),
            conditions: 1,
            exact: self.exact && other.exact,
            excludes_missing: self.excludes_missing && other.excludes_missing,
            excludes_arrays: self.excludes_arrays && other.excludes_arrays,
            low_selectivity: self.low_selectivity || other.low_selectivity,
        }
    }
}

/// Returns the ranges as disjoint, ascending ones.
fn union(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_by(|left, right| left.low.cmp(&right.low));
    let mut disjoint: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match disjoint.last_mut() {
            Some(last) if range.low < last.high => last.high = std::mem::take(&mut last.high).max(range.high),
            _ => disjoint.push(range),
        }
    }
    disjoint
}

fn intersections(left: &[KeyRange], right: &[KeyRange]) -> Vec<KeyRange> {
    let mut both = Vec::new();
    for one in left {
        for other in right {
            let low = one.low.clone().max(other.low.clone());
            let high = one.high.clone().min(other.high.clone());
            if low < high {
                both.push(KeyRange { low, high });
            }
        }
    }
    both
}

/// Returns whether two values have the same key, and no other value has it.
fn is_same(one: Value<'_>, other: Value<'_>) -> bool {
    let place = |value| column_key::key_of(value).filter(|(_, exact)| *exact);
    place(one).is_some_and(|one| place(other).is_some_and(|other| one == other))
}

/// Returns the first key of a range that begins at a value.
fn low_edge((value, included): (Value<'_>, bool)) -> Vec<u8> {
    match column_key::key_of(value) {
        Some((place, exact)) if exact && !included => column_key::after(place),
        Some((place, _)) => place,
        None => around(value).0.to_vec(),
    }
}

/// Returns the first key after a range that ends at a value.
fn high_edge((value, included): (Value<'_>, bool)) -> Vec<u8> {
    match column_key::key_of(value) {
        Some((place, exact)) if exact && !included => place,
        Some((place, _)) => column_key::after(place),
        None => around(value).1.to_vec(),
    }
}

/// Returns the range of keys of a type, for a value without an ordered key.
fn around(value: Value<'_>) -> (&'static [u8], &'static [u8]) {
    match value {
        Value::Undefined | Value::Null => column_key::NULLS,
        Value::Document(_) | Value::Array(_) => column_key::UNORDERED,
        _ => (column_key::NULLS.0, column_key::END),
    }
}

/// Returns the keys that a range condition with a value of this kind can match: those of its type.
fn bracket(kind: Kind) -> Option<(&'static [u8], &'static [u8])> {
    Some(match kind {
        // NaN is before them.
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => (b"31", b"4"),
        Kind::String => column_key::STRINGS,
        Kind::Binary => (b"J", b"K"),
        Kind::ObjectId => (b"K", b"L"),
        Kind::Boolean => (b"L", b"M"),
        Kind::DateTime => (b"M", b"N"),
        Kind::Timestamp => (b"N", b"O"),
        _ => return None,
    })
}
