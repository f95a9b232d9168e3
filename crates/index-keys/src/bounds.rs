//! From a condition on a field to ranges of the values that an index has for it.
//!
//! An index has the elements of an array, each for itself, and not the array; null stands for what is missing, too. So bounds say
//! what they are worth: whether every value in them meets the condition, and whether they are about one of a document's
//! values or about all of them.

use crate::ranges;
use crate::{Cut, FieldBounds, ValueRange};
use document::{Collation, Decimal128, Kind, Value, ValueBuf};
use query::predicate::{Test, TypeSet};
use steps::Counted;
use values::regex::Regex;

/// The values of a field that can belong to a matching document.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Disjoint and ascending.
    pub ranges: FieldBounds,
    /// A document with one value in the ranges matches.
    pub exact: bool,
    /// All values of a matching document lie in the ranges; otherwise one of them does.
    pub universal: bool,
    /// Documents without the field do not match.
    pub excludes_missing: bool,
}

/// What an index's field is like where a condition is about it.
#[derive(Clone, Copy)]
pub struct FieldContext<'c> {
    pub collation: &'c Collation,
    /// There is one value, no array: null is null or missing, and nothing else.
    pub single: bool,
}

/// Bounds for a condition; `None` where all values will do, for all that is known.
pub fn of(test: &Test, ground: FieldContext<'_>) -> Option<Bounds> {
    match test {
        Test::Collated(inner, collation) if collation == ground.collation => of_comparison(inner, ground),
        Test::Collated(..) => None,
        _ if compares_otherwise(test, ground.collation) => None,
        Test::Not(inner) => of_negation(inner, ground),
        Test::Regex(regex) => of_regexes(std::slice::from_ref(regex), ground),
        Test::Type(types) => of_types(*types, ground),
        Test::Mod { .. } => Some(Bounds::some(vec![of_kind(Kind::Double, ground)], false)),
        Test::ElementSatisfies(tests) => of_element(tests, ground),
        Test::Exists => {
            let everything = Bounds::some(vec![ValueRange::everything()], false);
            Some(everything)
        }
        _ => of_comparison(test, ground),
    }
}

/// Whether the operand is one that the index's collation spells in another way than the test has it.
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

impl Bounds {
    /// One of the values lies in these ranges, none of which is null's.
    fn some(ranges: FieldBounds, exact: bool) -> Bounds {
        Bounds { ranges, exact, universal: false, excludes_missing: true }
    }

    /// Bounds for both conditions, where one value has to lie in both ranges.
    pub fn and(self, other: Bounds) -> Bounds {
        Bounds {
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

/// Bounds for all of the conditions, by twos: one after the other would go through the ranges of
/// all before it each time.
pub fn all_of(mut all: Vec<Bounds>) -> Option<Bounds> {
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

fn of_comparison(test: &Test, ground: FieldContext<'_>) -> Option<Bounds> {
    match test {
        Test::Equal(value) => Some(of_values(std::slice::from_ref(value), ground)),
        Test::In(list) if list.regexes().is_empty() => Some(of_values(list.values(), ground)),
        Test::In(list) => Some(of_values(list.values(), ground).or(of_regexes(list.regexes(), ground)?)),
        Test::Less(value) => of_range(value, false, false, ground),
        Test::LessOrEqual(value) => of_range(value, false, true, ground),
        Test::Greater(value) => of_range(value, true, false, ground),
        Test::GreaterOrEqual(value) => of_range(value, true, true, ground),
        _ => None,
    }
}

impl Bounds {
    /// Bounds where one of the conditions is met.
    fn any_of(all: Vec<Bounds>) -> Option<Bounds> {
        all.first()?;
        let exact = all.iter().all(|bounds| bounds.exact);
        let excludes_missing = all.iter().all(|bounds| bounds.excludes_missing);
        let ranges = ranges::union(all.into_iter().flat_map(|bounds| bounds.ranges).collect());
        Some(Bounds { ranges, exact, universal: false, excludes_missing })
    }

    fn or(self, other: Bounds) -> Bounds {
        Bounds {
            ranges: ranges::union(self.ranges.into_iter().chain(other.ranges).collect()),
            exact: self.exact && other.exact,
            universal: false,
            excludes_missing: self.excludes_missing && other.excludes_missing,
        }
    }
}

fn of_values(values: &[ValueBuf], ground: FieldContext<'_>) -> Bounds {
    let point = |value: Value<'_>| ValueRange::point(value.to_owned(), ground.collation);
    let mut bounds = Bounds::some(Vec::with_capacity(values.len()), true);
    for value in values {
        steps::step();
        match value.as_value() {
            Value::Null => {
                // What is undefined is as good as null; an index has an empty array under undefined, too.
                bounds.ranges.extend([point(Value::Undefined), point(Value::Null)]);
                bounds.exact &= ground.single;
                bounds.excludes_missing = false;
            }
            Value::Array(array) => {
                // The array itself is not in the index, but as an element; otherwise its first element is.
                let first = array.values().next().unwrap_or(Value::Undefined);
                bounds.ranges.extend([point(first), point(value.as_value())]);
                bounds.exact = false;
            }
            other => {
                bounds.exact &= ground.single || other.kind() != Kind::Undefined;
                bounds.ranges.push(point(other));
            }
        }
    }
    if values.len() > 1 || bounds.ranges.len() > 1 {
        bounds.ranges = ranges::union(bounds.ranges);
    }
    bounds
}

fn of_range(value: &ValueBuf, above: bool, included: bool, ground: FieldContext<'_>) -> Option<Bounds> {
    let kind = value.kind();
    let itself = || match included {
        true => Some(of_values(std::slice::from_ref(value), ground)),
        false => Some(Bounds::some(Vec::new(), true)),
    };
    match kind {
        // NaN is equal to itself and neither above nor below anything; so are null and the ends of the order, on their far sides.
        _ if is_nan(value.as_value()) => return itself(),
        Kind::Null => return itself(),
        Kind::MinKey if !above => return itself(),
        Kind::MaxKey if above => return itself(),
        Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Decimal128 => {}
        Kind::String | Kind::Symbol | Kind::Document | Kind::Binary | Kind::ObjectId => {}
        Kind::Boolean | Kind::DateTime | Kind::Timestamp => {}
        _ => return None,
    }
    let mut range = of_kind(kind, ground);
    let cut = Cut::new(value.clone(), above != included, ground.collation);
    if above {
        range.low = cut
    } else {
        range.high = cut
    }
    let ranges = if range.low < range.high { vec![range] } else { Vec::new() };
    Some(Bounds::some(ranges, true))
}

/// The negation of a condition holds for all values of a document, where it does.
fn of_negation(test: &Test, ground: FieldContext<'_>) -> Option<Bounds> {
    match test {
        Test::Not(inner) => return of(inner, ground),
        Test::Exists => {
            let null = ValueRange::point(Value::Null.to_owned(), ground.collation);
            return Some(Bounds { excludes_missing: false, ..Bounds::some(vec![null], false) });
        }
        Test::And(all) => {
            let negations = all.iter().map(|test| of_negation(test, ground)).collect::<Option<Vec<_>>>()?;
            let universal = negations.iter().all(|bounds| bounds.universal);
            let any = Bounds::any_of(negations)?;
            return universal.then_some(Bounds { exact: false, universal: false, ..any });
        }
        _ => {}
    }
    let bounds = of(test, ground).filter(|bounds| bounds.exact && !bounds.universal)?;
    let ranges = ranges::complement(&bounds.ranges);
    let null = Cut::new(Value::Null.to_owned(), false, ground.collation);
    let excludes_missing = ground.single && !ranges.iter().any(|range| range.low <= null && null < range.high);
    Some(Bounds { ranges, exact: ground.single, universal: true, excludes_missing })
}

/// `$elemMatch` with operators: one element meets all of the tests, by itself.
fn of_element(tests: &[Test], ground: FieldContext<'_>) -> Option<Bounds> {
    let ground = FieldContext { single: true, ..ground };
    let all = all_of(tests.iter().filter_map(|test| of_element_itself(test, ground)).collect())?;
    Some(Bounds { exact: false, universal: false, excludes_missing: true, ..all })
}

fn of_element_itself(test: &Test, ground: FieldContext<'_>) -> Option<Bounds> {
    // An element that is an array is in the index as such, and is not looked into; neither is it ever missing.
    let negated = matches!(test, Test::Not(inner) if matches!(**inner, Test::Exists));
    if negated || matches!(test, Test::ElementSatisfies(_)) { None } else { of(test, ground) }
}

fn of_regexes(regexes: &[Regex], ground: FieldContext<'_>) -> Option<Bounds> {
    let mut found = Bounds::some(Vec::new(), true);
    for regex in regexes {
        steps::step();
        let beginning = regex.beginning().filter(|_| ground.collation.is_simple())?;
        found.exact &= beginning.is_all;
        let mut strings = of_kind(Kind::String, ground);
        if let Some(end) = beginning.end() {
            strings.high = Cut::new(Value::String(&end).to_owned(), false, ground.collation);
        }
        strings.low = Cut::new(Value::String(&beginning.text).to_owned(), false, ground.collation);
        found.ranges.extend([strings, ValueRange::point(regex.to_value(), ground.collation)]);
    }
    found.ranges = ranges::union(found.ranges);
    Some(found)
}

fn of_types(types: TypeSet, ground: FieldContext<'_>) -> Option<Bounds> {
    if types.contains(Kind::Array) {
        return None;
    }
    let kinds = Kind::ALL.into_iter().filter(|kind| types.contains(*kind));
    let of_all = |kind: Kind| {
        let mut range = of_kind(kind, ground);
        if kind.is_number() {
            range.low = Cut::new(Value::Double(f64::NAN).to_owned(), false, ground.collation);
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
        Kind::Undefined => ground.single,
        _ => true,
    };
    let exact = kinds.clone().all(alone);
    Some(Bounds::some(ranges::union(ranges), exact))
}

fn is_nan(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_nan(),
        // The combination field 11111 marks a NaN.
        Value::Decimal128(Decimal128(bytes)) => bytes[15] & 0b0111_1100 == 0b0111_1100,
        _ => false,
    }
}

/// All values that compare with those of a kind; of numbers, those that are less or greater than others.
fn of_kind(kind: Kind, ground: FieldContext<'_>) -> ValueRange {
    let (low, high, included) = store::type_bracket::of(kind);
    let cut = |value: Value<'_>, behind| Cut::new(value.to_owned(), behind, ground.collation);
    ValueRange { low: cut(low, false), high: cut(high, included) }
}
