//! From a condition on a field to ranges of the values that an index has for it.
//!
//! An index has each element of an array, and not the array; null is also the value of a missing
//! field. So bounds come with their strength: whether every value in them meets the condition, and
//! whether they concern one of a document's values or all of them.

use crate::ranges;
use crate::{Cut, FieldBounds, ValueRange};
use document::{Collation, Decimal128, Kind, Value, ValueBuf};
use query::predicate::{Test, TypeSet};
use steps::Counted;
use values::regex::Regex;

/// The values of a field that can belong to a matching document.
#[derive(Clone, Debug)]
pub struct IndexBounds {
    /// Disjoint and ascending.
    pub ranges: FieldBounds,
    /// A document with one value in the ranges matches.
    pub exact: bool,
    /// All values of a matching document are in the ranges; otherwise at least one is.
    pub universal: bool,
    /// Documents without the field do not match.
    pub excludes_missing: bool,
}

/// The properties of an index's field that bounds depend on.
#[derive(Clone, Copy)]
pub struct FieldContext<'c> {
    pub collation: &'c Collation,
    /// The field has one value, no array: null means null or missing, and nothing else.
    pub single: bool,
}

/// Returns the bounds of a condition; `None` if it does not restrict the values, as far as known.
pub fn of(test: &Test, context: FieldContext<'_>) -> Option<IndexBounds> {
    match test {
        Test::Collated(inner, collation) if collation == context.collation => of_comparison(inner, context),
        Test::Collated(..) => None,
        _ if compares_otherwise(test, context.collation) => None,
        Test::Not(inner) => of_negation(inner, context),
        Test::Regex(regex) => of_regexes(std::slice::from_ref(regex), context),
        Test::Type(types) => of_types(*types, context),
        Test::Mod { .. } => Some(IndexBounds::some(vec![of_kind(Kind::Double, context)], false)),
        Test::ElementSatisfies(tests) => of_element(tests, context),
        Test::Exists => {
            let everything = IndexBounds::some(vec![ValueRange::everything()], false);
            Some(everything)
        }
        _ => of_comparison(test, context),
    }
}

/// Returns whether the test compares the operand by another collation than the index.
fn compares_otherwise(test: &Test, collation: &Collation) -> bool {
    let operands = match test {
        Test::Equal(value)
        | Test::Less(value)
        | Test::LessOrEqual(value)
        | Test::Greater(value)
        | Test::GreaterOrEqual(value) => std::slice::from_ref(value),
        Test::In(list) => list.values(),
        _ => &[],
    };
    operands.iter().counted().any(|value| collation.concerns(value.kind()))
}

impl IndexBounds {
    /// Returns bounds in which one of the values must be; null is not among them.
    fn some(ranges: FieldBounds, exact: bool) -> IndexBounds {
        IndexBounds { ranges, exact, universal: false, excludes_missing: true }
    }

    /// Returns the bounds of both conditions, if one value must be in both ranges.
    pub fn and(self, other: IndexBounds) -> IndexBounds {
        IndexBounds {
            ranges: ranges::intersection(&self.ranges, &other.ranges),
            exact: self.exact && other.exact,
            universal: self.universal && other.universal,
            excludes_missing: self.excludes_missing || other.excludes_missing,
        }
    }

    pub fn is_points(&self) -> bool {
        self.ranges.iter().counted().all(ValueRange::is_point)
    }
}

/// Combines the bounds of all conditions, in pairs: one after the other would scan the ranges of
/// all earlier ones each time.
pub fn all_of(mut all: Vec<IndexBounds>) -> Option<IndexBounds> {
    while all.len() > 1 {
        let mut rest = std::mem::take(&mut all).into_iter();
        while let Some(one) = rest.next() {
            all.push(match rest.next() {
                Some(other) => one.and(other),
                None => one,
            });
        }
    }
    all.pop()
}

fn of_comparison(test: &Test, context: FieldContext<'_>) -> Option<IndexBounds> {
    match test {
        Test::Equal(value) => Some(of_values(std::slice::from_ref(value), context)),
        Test::In(list) if list.regexes().is_empty() => Some(of_values(list.values(), context)),
        Test::In(list) => Some(of_values(list.values(), context).or(of_regexes(list.regexes(), context)?)),
        Test::Less(value) => of_range(value, false, false, context),
        Test::LessOrEqual(value) => of_range(value, false, true, context),
        Test::Greater(value) => of_range(value, true, false, context),
        Test::GreaterOrEqual(value) => of_range(value, true, true, context),
        _ => None,
    }
}

impl IndexBounds {
    /// Returns the bounds of a disjunction.
    fn any_of(all: Vec<IndexBounds>) -> Option<IndexBounds> {
        all.first()?;
        let exact = all.iter().all(|bounds| bounds.exact);
        let excludes_missing = all.iter().all(|bounds| bounds.excludes_missing);
        let ranges = ranges::union(all.into_iter().flat_map(|bounds| bounds.ranges).collect());
        Some(IndexBounds { ranges, exact, universal: false, excludes_missing })
    }

    fn or(self, other: IndexBounds) -> IndexBounds {
        IndexBounds {
            ranges: ranges::union(self.ranges.into_iter().chain(other.ranges).collect()),
            exact: self.exact && other.exact,
            universal: false,
            excludes_missing: self.excludes_missing && other.excludes_missing,
        }
    }
}

fn of_values(values: &[ValueBuf], context: FieldContext<'_>) -> IndexBounds {
    let point = |value: Value<'_>| ValueRange::point(value.to_owned(), context.collation);
    let mut bounds = IndexBounds::some(Vec::with_capacity(values.len()), true);
    for value in values {
        steps::step();
        match value.as_value() {
            Value::Null => {
                // Undefined matches null; an index has an empty array as undefined, too.
                bounds.ranges.extend([point(Value::Undefined), point(Value::Null)]);
                bounds.exact &= context.single;
                bounds.excludes_missing = false;
            }
            Value::Array(array) => {
                // An array is in the index only as an element of another; otherwise its first
                // element is.
                let first = array.values().next().unwrap_or(Value::Undefined);
                bounds.ranges.extend([point(first), point(value.as_value())]);
                bounds.exact = false;
            }
            other => {
                bounds.exact &= context.single || other.kind() != Kind::Undefined;
                bounds.ranges.push(point(other));
            }
        }
    }
    if values.len() > 1 || bounds.ranges.len() > 1 {
        bounds.ranges = ranges::union(bounds.ranges);
    }
    bounds
}

fn of_range(value: &ValueBuf, above: bool, included: bool, context: FieldContext<'_>) -> Option<IndexBounds> {
    let kind = value.kind();
    let itself = || match included {
        true => Some(of_values(std::slice::from_ref(value), context)),
        false => Some(IndexBounds::some(Vec::new(), true)),
    };
    match kind {
        // NaN equals itself and is neither above nor below anything. The same holds for null and
        // for the ends of the order, on their far sides.
        _ if is_nan(value.as_value()) => return itself(),
        Kind::Null => return itself(),
        Kind::MinKey if !above => return itself(),
        Kind::MaxKey if above => return itself(),
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {}
        Kind::String | Kind::Symbol | Kind::Document | Kind::Binary | Kind::ObjectId => {}
        Kind::Boolean | Kind::DateTime | Kind::Timestamp => {}
        _ => return None,
    }
    let mut range = of_kind(kind, context);
    let cut = Cut::new(value.clone(), above != included, context.collation);
    if above {
        range.low = cut
    } else {
        range.high = cut
    }
    let ranges = if range.low < range.high { vec![range] } else { Vec::new() };
    Some(IndexBounds::some(ranges, true))
}

/// Returns the bounds of a negation, which all values of a document must meet.
fn of_negation(test: &Test, context: FieldContext<'_>) -> Option<IndexBounds> {
    match test {
        Test::Not(inner) => return of(inner, context),
        Test::Exists => {
            let null = ValueRange::point(Value::Null.to_owned(), context.collation);
            return Some(IndexBounds { excludes_missing: false, ..IndexBounds::some(vec![null], false) });
        }
        Test::And(all) => {
            let negations = all.iter().map(|test| of_negation(test, context)).collect::<Option<Vec<_>>>()?;
            let universal = negations.iter().all(|bounds| bounds.universal);
            let any = IndexBounds::any_of(negations)?;
            return universal.then_some(IndexBounds { exact: false, universal: false, ..any });
        }
        _ => {}
    }
    let bounds = of(test, context).filter(|bounds| bounds.exact && !bounds.universal)?;
    let ranges = ranges::complement(&bounds.ranges);
    let null = Cut::new(Value::Null.to_owned(), false, context.collation);
    let excludes_missing = context.single && !ranges.iter().any(|range| range.low <= null && null < range.high);
    Some(IndexBounds { ranges, exact: context.single, universal: true, excludes_missing })
}

/// Returns the bounds of `$elemMatch` with operators: one element must meet all of the tests.
fn of_element(tests: &[Test], context: FieldContext<'_>) -> Option<IndexBounds> {
    let context = FieldContext { single: true, ..context };
    let all = all_of(tests.iter().filter_map(|test| of_element_itself(test, context)).collect())?;
    Some(IndexBounds { exact: false, universal: false, excludes_missing: true, ..all })
}

fn of_element_itself(test: &Test, context: FieldContext<'_>) -> Option<IndexBounds> {
    // An element that is an array is in the index as such, and its elements are not; an element is
    // never missing.
    let negated = matches!(test, Test::Not(inner) if matches!(**inner, Test::Exists));
    if negated || matches!(test, Test::ElementSatisfies(_)) { None } else { of(test, context) }
}

fn of_regexes(regexes: &[Regex], context: FieldContext<'_>) -> Option<IndexBounds> {
    let mut found = IndexBounds::some(Vec::new(), true);
    for regex in regexes {
        steps::step();
        let beginning = regex.beginning().filter(|_| context.collation.is_simple())?;
        found.exact &= beginning.is_all;
        let mut strings = of_kind(Kind::String, context);
        if let Some(end) = beginning.end() {
            strings.high = Cut::new(Value::String(&end).to_owned(), false, context.collation);
        }
        strings.low = Cut::new(Value::String(&beginning.text).to_owned(), false, context.collation);
        found.ranges.extend([strings, ValueRange::point(regex.to_value(), context.collation)]);
    }
    found.ranges = ranges::union(found.ranges);
    Some(found)
}

fn of_types(types: TypeSet, context: FieldContext<'_>) -> Option<IndexBounds> {
    if types.contains(Kind::Array) {
        return None;
    }
    let kinds = Kind::ALL.into_iter().filter(|kind| types.contains(*kind));
    let of_all = |kind: Kind| {
        let mut range = of_kind(kind, context);
        if kind.is_number() {
            range.low = Cut::new(Value::Double(f64::NAN).to_owned(), false, context.collation);
        }
        range
    };
    let ranges = kinds.clone().map(of_all).collect();
    let alone = |kind: Kind| match kind {
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {
            [Kind::Double, Kind::Int32, Kind::Int64, Kind::Decimal128].into_iter().all(|kind| types.contains(kind))
        }
        Kind::String | Kind::Symbol => types.contains(Kind::String) && types.contains(Kind::Symbol),
        Kind::Null => false,
        Kind::Undefined => context.single,
        _ => true,
    };
    let exact = kinds.clone().all(alone);
    Some(IndexBounds::some(ranges::union(ranges), exact))
}

fn is_nan(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_nan(),
        // The combination field 11111 marks a NaN.
        Value::Decimal128(Decimal128(bytes)) => bytes[15] & 0b0111_1100 == 0b0111_1100,
        _ => false,
    }
}

/// Returns all values that compare with values of a type; of numbers, all but NaN.
fn of_kind(kind: Kind, context: FieldContext<'_>) -> ValueRange {
    let (low, high, included) = store::type_bracket::of(kind);
    let cut = |value: Value<'_>, behind| Cut::new(value.to_owned(), behind, context.collation);
    ValueRange { low: cut(low, false), high: cut(high, included) }
}
