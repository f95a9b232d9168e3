//! Conditions that most documents may meet: what is not equal to something, is there, has a type, or is read to be known.
//!
//! Of an array a negation asks something about all elements, and presence about the array itself, so that all arrays are read.

use super::{Bounds, KeyRange};
use crate::index::column_key;
use document::{Kind, Value, ValueBuf};
use query::predicate::{Test, TypeSet};

pub(super) fn of_test(test: &Test, bytes: usize) -> Option<Bounds> {
    let bounds = match test {
        Test::Not(inner) => Bounds { excludes_arrays: false, ..of_negation(inner, bytes)? },
        // A null that is there has the key of one that is not.
        Test::Exists => Bounds { exact: false, excludes_missing: true, excludes_arrays: false, ..of_all_but(&[]) },
        Test::Type(types) => of_types(*types)?,
        Test::Mod { .. } => Bounds { exact: false, ..of_kinds([Kind::Double].into_iter()) },
        // Which strings, only the pattern knows.
        Test::Regex(_) => Bounds { exact: false, ..of_kinds([Kind::String].into_iter()) },
        _ => return None,
    };
    Some(Bounds { wide: true, ..bounds })
}

fn of_negation(test: &Test, bytes: usize) -> Option<Bounds> {
    match test {
        Test::Exists => {
            let (nulls, hiding) = (KeyRange::of(column_key::NULLS), KeyRange::of(column_key::HIDING));
            Some(Bounds { excludes_missing: false, ..Bounds::new(vec![nulls], vec![hiding], false) })
        }
        Test::Equal(value) => of_other_values(std::slice::from_ref(value)),
        Test::In(list) if list.regexes().is_empty() => of_other_values(list.values()),
        _ => {
            let bounds = Bounds::of_test(test, bytes).filter(|bounds| bounds.exact && !bounds.wide)?;
            Some(of_all_but(&bounds.plain))
        }
    }
}

/// All values but these. One that shares its place with others leaves it to be read.
fn of_other_values(values: &[ValueBuf]) -> Option<Bounds> {
    if values.len() > super::POINTS_MAX {
        return None;
    }
    let (mut places, mut exact) = (Vec::new(), true);
    for value in values {
        match value.as_value() {
            Value::Null => places.push(KeyRange::of(column_key::NULLS)),
            value => match column_key::place(value) {
                Some((place, true)) => places.push(KeyRange::point(place)),
                Some((_, false)) => exact = false,
                None => {}
            },
        }
    }
    let bounds = of_all_but(&places);
    Some(Bounds { exact, ..bounds })
}

/// All keys but those in some ranges, in which all values fail.
fn of_all_but(ranges: &[KeyRange]) -> Bounds {
    let mut left = vec![
        KeyRange::of((column_key::NULLS.0, column_key::ODD.0)),
        KeyRange::of((column_key::ODD.1, column_key::END)),
    ];
    for range in ranges {
        left = left.iter().flat_map(|whole| without(whole, range)).collect();
    }
    let nulls = KeyRange::of(column_key::NULLS);
    let excludes_missing = !left.iter().any(|range| range.low < nulls.high && nulls.low < range.high);
    let odd = vec![KeyRange::of((column_key::ODD.0, column_key::HIDING.0)), KeyRange::of(column_key::HIDING)];
    Bounds { excludes_missing, ..Bounds::new(left, odd, true) }
}

/// What a range leaves of another one.
fn without(whole: &KeyRange, range: &KeyRange) -> impl Iterator<Item = KeyRange> {
    let before = KeyRange { low: whole.low.clone(), high: whole.high.clone().min(range.low.clone()) };
    let behind = KeyRange { low: whole.low.clone().max(range.high.clone()), high: whole.high.clone() };
    [before, behind].into_iter().filter(|part| part.low < part.high)
}

fn of_types(types: TypeSet) -> Option<Bounds> {
    if types.contains(Kind::Array) {
        return None;
    }
    let bounds = of_kinds(Kind::ALL.into_iter().filter(|kind| types.contains(*kind)));
    // All numbers have one place.
    let of_numbers = Kind::ALL.into_iter().filter(|kind| kind.is_number()).map(|kind| types.contains(kind));
    let (some, all) = of_numbers.fold((false, true), |(some, all), has| (some || has, all && has));
    Some(Bounds { exact: bounds.exact && (all || !some), ..bounds })
}

/// The keys of some types, none of which is the array.
fn of_kinds(kinds: impl Iterator<Item = Kind>) -> Bounds {
    let mut bounds = Bounds::new(Vec::new(), vec![KeyRange::of(column_key::HIDING)], true);
    for kind in kinds {
        match kind {
            Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {
                bounds.plain.push(KeyRange::of((b"3", b"4")))
            }
            Kind::Null | Kind::Undefined => {
                bounds.plain.push(KeyRange::of(column_key::NULLS));
                (bounds.exact, bounds.excludes_missing, bounds.excludes_arrays) = (false, false, false);
            }
            Kind::String => {
                bounds.plain.push(KeyRange::of(column_key::STRINGS));
                bounds.odd.push(KeyRange::of((b"E", column_key::HIDING.0)));
            }
            Kind::Document => bounds.odd.push(KeyRange::of(column_key::DOCUMENTS)),
            kind => bounds.plain.extend(super::bracket(kind).map(KeyRange::of)),
        }
    }
    bounds.plain.sort_by(|left, right| left.low.cmp(&right.low));
    bounds.plain.dedup();
    bounds.odd.sort_by(|left, right| left.low.cmp(&right.low));
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::column_key::place;
    use document::doc;
    use query::Context;
    use query::predicate::{Node, Predicate};

    fn bounds(test: document::DocBuf) -> Option<Bounds> {
        let filter = doc! { "a": &test };
        let predicate = Predicate::parse(filter.as_doc(), &Context::at(0)).unwrap();
        let Node::Path { test, .. } = predicate.root() else { panic!("one condition") };
        of_test(test, 960)
    }

    fn holds(bounds: &Bounds, value: Value<'_>) -> bool {
        let (place, _) = place(value).unwrap();
        bounds.plain.iter().any(|range| range.low <= place && place < range.high)
    }

    #[test]
    fn what_is_not_equal_lies_on_both_sides() {
        let not_five = bounds(doc! { "$ne": 5 }).unwrap();
        assert!(not_five.exact && !not_five.excludes_missing && not_five.wide);
        let (five, six) = (Value::Int32(5), Value::Int32(6));
        assert!(!holds(&not_five, five) && holds(&not_five, six) && holds(&not_five, Value::String("5")));
        let there = bounds(doc! { "$ne": Value::Null }).unwrap();
        assert!(there.excludes_missing && holds(&there, five) && there.plain[0].low >= column_key::NULLS.1.to_vec());
        let neither = bounds(doc! { "$nin": &document::array![5, Value::Null, true] }).unwrap();
        assert!(!holds(&neither, five) && holds(&neither, six) && !holds(&neither, Value::Boolean(true)));
        assert!(holds(&neither, Value::Boolean(false)) && neither.excludes_missing);
    }

    #[test]
    fn what_is_not_in_a_range_is_all_else() {
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
