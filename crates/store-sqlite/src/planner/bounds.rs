//! From the conditions on one field to ranges of values.

use crate::catalog::IndexField;
use crate::keys;
use crate::plan::{FieldBounds, Range};
use document::{Collation, Decimal128, Doc, Kind, ObjectId, Value, ValueBuf};
use query::predicate::Test;

/// The values of a field that can belong to a matching document.
pub struct Bounds {
    /// Disjoint and ascending.
    pub ranges: FieldBounds,
    /// How many of the conditions the ranges stand for.
    pub conditions: usize,
    /// Every value in the ranges meets those conditions.
    pub exact: bool,
    /// Documents without the field are not among them.
    pub excludes_missing: bool,
}

impl Bounds {
    /// `None` where no condition bounds the field. In a multikey index different elements of an array may meet different
    /// conditions, so that only one of them can be used.
    pub fn of(field: &IndexField, conditions: &[(&str, &Test)], multikey: bool) -> Option<Bounds> {
        let collation = &field.collation;
        let here = conditions.iter().filter(|(other, _)| *other == field.path);
        let tests = here.filter_map(|(_, test)| by_keys(test, collation));
        let mut found: Vec<Bounds> = tests.filter_map(|test| Bounds::of_test(test, collation)).collect();
        if multikey {
            found.sort_by_key(|bounds| !bounds.ranges.iter().all(Range::is_point));
            found.truncate(1);
        }
        found.into_iter().reduce(|left, right| left.and(right, collation))
    }

    fn of_test(test: &Test, collation: &Collation) -> Option<Bounds> {
        match test {
            Test::Equal(value) => Bounds::of_points(std::slice::from_ref(value), collation),
            Test::In(list) if list.regexes().is_empty() => Bounds::of_points(list.values(), collation),
            Test::Less(value) => Bounds::of_range(value, false, false),
            Test::LessOrEqual(value) => Bounds::of_range(value, false, true),
            Test::Greater(value) => Bounds::of_range(value, true, false),
            Test::GreaterOrEqual(value) => Bounds::of_range(value, true, true),
            _ => None,
        }
    }

    fn of_points(values: &[ValueBuf], collation: &Collation) -> Option<Bounds> {
        if !values.iter().all(|value| is_point(value.kind())) {
            return None;
        }
        let null = values.iter().any(|value| value.kind() == Kind::Null);
        // Null stands for undefined and for missing fields too; an index keeps an empty array under undefined.
        let undefined = null.then(|| Value::Undefined.to_owned());
        let mut ranges: Vec<(Vec<u8>, Range)> = values
            .iter()
            .cloned()
            .chain(undefined)
            .map(|value| (key(&value, collation), Range::point(value)))
            .collect();
        ranges.sort_by(|left, right| left.0.cmp(&right.0));
        ranges.dedup_by(|left, right| left.0 == right.0);
        Some(Bounds {
            ranges: ranges.into_iter().map(|(_, range)| range).collect(),
            conditions: 1,
            exact: !null,
            excludes_missing: !null,
        })
    }

    fn of_range(value: &ValueBuf, above: bool, included: bool) -> Option<Bounds> {
        // NaN is equal to itself and neither above nor below anything.
        if is_nan(value.as_value()) {
            return None;
        }
        let mut range = bracket(value.kind())?;
        if above {
            (range.low, range.low_included) = (value.clone(), included);
        } else {
            (range.high, range.high_included) = (value.clone(), included);
        }
        Some(Bounds { ranges: vec![range], conditions: 1, exact: true, excludes_missing: true })
    }

    fn and(self, other: Bounds, collation: &Collation) -> Bounds {
        let mut ranges = Vec::new();
        for left in &self.ranges {
            ranges.extend(other.ranges.iter().filter_map(|right| intersection(left, right, collation)));
        }
        Bounds {
            ranges,
            conditions: self.conditions + other.conditions,
            exact: self.exact && other.exact,
            excludes_missing: self.excludes_missing || other.excludes_missing,
        }
    }
}

/// The test as one that keys made by this collation answer; `None` where strings compare by another one.
pub fn by_keys<'t>(test: &'t Test, collation: &Collation) -> Option<&'t Test> {
    let operands = match test {
        Test::Collated(test, of) => return (of == collation).then_some(&**test),
        Test::Equal(value)
        | Test::Less(value)
        | Test::LessOrEqual(value)
        | Test::Greater(value)
        | Test::GreaterOrEqual(value) => std::slice::from_ref(value),
        Test::In(list) => list.values(),
        _ => &[],
    };
    (!operands.iter().any(|value| collation.concerns(value.kind()))).then_some(test)
}

/// Whether equality to a value of this kind is equality of keys. (Arrays match by element as well as whole.)
pub fn is_point(kind: Kind) -> bool {
    keys::is_plain(kind) || matches!(kind, Kind::Document | Kind::Null)
}

/// The range as a half-open range of keys, fields ascending.
pub fn edges(range: &Range, collation: &Collation) -> (Vec<u8>, Vec<u8>) {
    let low = key(&range.low, collation);
    let high = key(&range.high, collation);
    (
        if range.low_included { low } else { keys::end_of_prefix(low) },
        if range.high_included { keys::end_of_prefix(high) } else { high },
    )
}

fn intersection(left: &Range, right: &Range, collation: &Collation) -> Option<Range> {
    let (left_low, left_high) = edges(left, collation);
    let (right_low, right_high) = edges(right, collation);
    if left_low.max(right_low.clone()) >= left_high.clone().min(right_high.clone()) {
        return None;
    }
    let low = if edges(left, collation).0 >= right_low { left } else { right };
    let high = if left_high <= right_high { left } else { right };
    Some(Range {
        low: low.low.clone(),
        low_included: low.low_included,
        high: high.high.clone(),
        high_included: high.high_included,
    })
}

fn key(value: &ValueBuf, collation: &Collation) -> Vec<u8> {
    let mut key = Vec::with_capacity(24);
    collation.encode_key(value.as_value(), &mut key);
    key
}

fn is_nan(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_nan(),
        // The combination field 11111 marks a NaN.
        Value::Decimal128(Decimal128(bytes)) => bytes[15] & 0b0111_1100 == 0b0111_1100,
        _ => false,
    }
}

/// All values that a range condition with a value of this kind can match: those of its own type.
fn bracket(kind: Kind) -> Option<Range> {
    let (low, high, high_included) = match kind {
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {
            (Value::Double(f64::NEG_INFINITY), Value::Double(f64::INFINITY), true)
        }
        Kind::String => (Value::String(""), Value::Document(Doc::EMPTY), false),
        Kind::Binary => (Value::Binary { subtype: 0, bytes: &[] }, Value::ObjectId(ObjectId([0; 12])), false),
        Kind::ObjectId => (Value::ObjectId(ObjectId([0; 12])), Value::ObjectId(ObjectId([0xFF; 12])), true),
        Kind::Boolean => (Value::Boolean(false), Value::Boolean(true), true),
        Kind::DateTime => (Value::DateTime(i64::MIN), Value::DateTime(i64::MAX), true),
        Kind::Timestamp => {
            (Value::Timestamp { time: 0, increment: 0 }, Value::Timestamp { time: u32::MAX, increment: u32::MAX }, true)
        }
        _ => return None,
    };
    Some(Range { low: low.to_owned(), low_included: true, high: high.to_owned(), high_included })
}
