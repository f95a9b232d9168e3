//! IndexBounds of conditions with low selectivity, which most documents may meet: negations,
//! `$exists`, `$type`, `$mod`, and regular expressions without a prefix.
//!
//! A negation concerns all elements of an array, and `$exists` the array itself, so all arrays are
//! read.

use super::{IndexBounds, KeyRange};
use crate::index::column_key;
use document::{Kind, Value, ValueBuf};
use query::predicate::{Test, TypeSet};

pub(super) fn of_test(test: &Test, bytes: usize) -> Option<IndexBounds> {
    let bounds = match test {
        Test::Not(inner) => IndexBounds { excludes_arrays: false, ..of_negation(inner, bytes)? },
        // An existing null has the same key as a missing field.
        Test::Exists => {
            IndexBounds { exact: false, excludes_missing: true, excludes_arrays: false, ..except_ranges(&[]) }
        }
        Test::Type(types) => of_types(*types)?,
        Test::Mod { .. } => IndexBounds { exact: false, ..of_kinds([Kind::Double].into_iter()) },
        // The pattern does not bound the strings.
        Test::Regex(_) => IndexBounds { exact: false, ..of_kinds([Kind::String].into_iter()) },
        _ => return None,
    };
    Some(IndexBounds { low_selectivity: true, ..bounds })
}

fn of_negation(test: &Test, bytes: usize) -> Option<IndexBounds> {
    match test {
        Test::Exists => {
            let (nulls, hiding) = (KeyRange::of(column_key::NULLS), KeyRange::of(column_key::CATCH_ALL));
            Some(IndexBounds { excludes_missing: false, ..IndexBounds::new(vec![nulls], vec![hiding], false) })
        }
        Test::Equal(value) => except_values(std::slice::from_ref(value)),
        Test::In(list) if list.regexes().is_empty() => except_values(list.values()),
        _ => {
            let bounds = IndexBounds::of_test(test, bytes).filter(|bounds| bounds.exact && !bounds.low_selectivity)?;
            Some(except_ranges(&bounds.ordered))
        }
    }
}

/// Returns the bounds of all values except these. A key that other values share is kept.
fn except_values(values: &[ValueBuf]) -> Option<IndexBounds> {
    if values.len() > super::POINTS_MAX {
        return None;
    }
    let (mut places, mut exact) = (Vec::new(), true);
    for value in values {
        match value.as_value() {
            Value::Null => places.push(KeyRange::of(column_key::NULLS)),
            value => match column_key::key_of(value) {
                Some((place, true)) => places.push(KeyRange::point(place)),
                Some((_, false)) => exact = false,
                None => {}
            },
        }
    }
    let bounds = except_ranges(&places);
    Some(IndexBounds { exact, ..bounds })
}

/// Returns the bounds of all keys except those in some ranges, whose values all fail the condition.
fn except_ranges(ranges: &[KeyRange]) -> IndexBounds {
    let mut left = vec![
        KeyRange::of((column_key::NULLS.0, column_key::UNORDERED.0)),
        KeyRange::of((column_key::UNORDERED.1, column_key::END)),
    ];
    for range in ranges {
        left = left.iter().flat_map(|whole| subtract(whole, range)).collect();
    }
    let nulls = KeyRange::of(column_key::NULLS);
    let excludes_missing = !left.iter().any(|range| range.low < nulls.high && nulls.low < range.high);
    let odd =
        vec![KeyRange::of((column_key::UNORDERED.0, column_key::CATCH_ALL.0)), KeyRange::of(column_key::CATCH_ALL)];
    IndexBounds { excludes_missing, ..IndexBounds::new(left, odd, true) }
}

/// Subtracts a range from another one.
fn subtract(whole: &KeyRange, range: &KeyRange) -> impl Iterator<Item = KeyRange> {
    let before = KeyRange { low: whole.low.clone(), high: whole.high.clone().min(range.low.clone()) };
    let behind = KeyRange { low: whole.low.clone().max(range.high.clone()), high: whole.high.clone() };
    [before, behind].into_iter().filter(|part| part.low < part.high)
}

fn of_types(types: TypeSet) -> Option<IndexBounds> {
    if types.contains(Kind::Array) {
        return None;
    }
    let bounds = of_kinds(Kind::ALL.into_iter().filter(|kind| types.contains(*kind)));
    // Equal numbers of all types share a key.
    let of_numbers = Kind::ALL.into_iter().filter(|kind| kind.is_number()).map(|kind| types.contains(kind));
    let (some, all) = of_numbers.fold((false, true), |(some, all), has| (some || has, all && has));
    Some(IndexBounds { exact: bounds.exact && (all || !some), ..bounds })
}

/// Returns the bounds of some types, which must not include arrays.
fn of_kinds(kinds: impl Iterator<Item = Kind>) -> IndexBounds {
    let mut bounds = IndexBounds::new(Vec::new(), vec![KeyRange::of(column_key::CATCH_ALL)], true);
    for kind in kinds {
        match kind {
            Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {
                bounds.ordered.push(KeyRange::of((b"3", b"4")))
            }
            Kind::Null | Kind::Undefined => {
                bounds.ordered.push(KeyRange::of(column_key::NULLS));
                (bounds.exact, bounds.excludes_missing, bounds.excludes_arrays) = (false, false, false);
            }
            Kind::String => {
                bounds.ordered.push(KeyRange::of(column_key::STRINGS));
                bounds.unordered.push(KeyRange::of((b"E", column_key::CATCH_ALL.0)));
            }
            Kind::Document => bounds.unordered.push(KeyRange::of(column_key::DOCUMENTS)),
            kind => bounds.ordered.extend(super::bracket(kind).map(KeyRange::of)),
        }
    }
    bounds.ordered.sort_by(|left, right| left.low.cmp(&right.low));
    bounds.ordered.dedup();
    bounds.unordered.sort_by(|left, right| left.low.cmp(&right.low));
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::column_key::key_of;
    use document::doc;
    use query::Context;
    use query::predicate::{Node, Predicate};

    fn bounds(test: document::DocBuf) -> Option<IndexBounds> {
        let filter = doc! { "a": &test };
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap();
        let Node::Path { test, .. } = predicate.root() else { panic!("one condition") };
        of_test(test, 960)
    }

    fn holds(bounds: &IndexBounds, value: Value<'_>) -> bool {
        let (place, _) = key_of(value).unwrap();
        bounds.ordered.iter().any(|range| range.low <= place && place < range.high)
    }

    #[test]
    fn a_negated_equality_has_both_sides() {
        let not_five = bounds(doc! { "$ne": 5 }).unwrap();
        assert!(not_five.exact && !not_five.excludes_missing && not_five.low_selectivity);
        let (five, six) = (Value::Int32(5), Value::Int32(6));
        assert!(!holds(&not_five, five) && holds(&not_five, six) && holds(&not_five, Value::String("5")));
        let there = bounds(doc! { "$ne": Value::Null }).unwrap();
        assert!(there.excludes_missing && holds(&there, five) && there.ordered[0].low >= column_key::NULLS.1.to_vec());
        let neither = bounds(doc! { "$nin": &document::array![5, Value::Null, true] }).unwrap();
        assert!(!holds(&neither, five) && holds(&neither, six) && !holds(&neither, Value::Boolean(true)));
        assert!(holds(&neither, Value::Boolean(false)) && neither.excludes_missing);
    }

    #[test]
    fn a_negated_range_has_all_other_keys() {
        let above = bounds(doc! { "$not": &doc! { "$lte": 5 } }).unwrap();
        assert!(!holds(&above, Value::Int32(5)) && holds(&above, Value::Int32(6)) && holds(&above, Value::String("")));
        assert!(!above.excludes_missing && above.exact);
        assert!(bounds(doc! { "$not": &doc! { "$mod": &document::array![2, 0] } }).is_none());
    }

    #[test]
    fn types_have_their_keys() {
        let strings = bounds(doc! { "$type": "string" }).unwrap();
        assert!(holds(&strings, Value::String("a")) && !holds(&strings, Value::Int32(1)) && strings.exact);
        let integers = bounds(doc! { "$type": &document::array!["int", "bool"] }).unwrap();
        assert!(holds(&integers, Value::Int32(1)) && holds(&integers, Value::Boolean(true)) && !integers.exact);
        assert!(bounds(doc! { "$type": "array" }).is_none());
    }
}
