//! `indexBounds`: the values of each field that an index is read for, as far as the plan's keys go
//! by conditions.

use crate::plan::index_bounds::IndexBounds;
use document::{ArrayWriter, Collation, DocWriter, Kind, Value, ValueBuf};
use query::Predicate;
use query::predicate::{Node, Test};
use std::cmp::Ordering;
use store::explain::{append_ranges, range_text};
use store::index_kind::descends;
use store::{FieldKind, IndexSpec, type_bracket};

/// A key length that does not affect the facts read from [`IndexBounds`] here.
const KEY_BYTES: usize = 256;

/// A value, and whether it is part of the range that it ends.
type End = (ValueBuf, bool);
type Range = (End, End);

pub(super) fn write(
    spec: &IndexSpec,
    arrays: u64,
    predicate: Option<&Predicate>,
    forward: bool,
    writer: &mut DocWriter<'_>,
) {
    if has_ends(predicate) {
        return;
    }
    let sought = of_fields(spec, arrays, predicate);
    for ((path, direction), sought) in spec.key.as_doc().iter().zip(&sought) {
        let mut ranges = ranges_of(sought);
        let ascending = forward != descends(direction);
        if !ascending {
            ranges.reverse();
        }
        let mut array = writer.array(path);
        if FieldKind::of(path, direction) == FieldKind::Hashed {
            // As MongoDB has them: in no order, each by its hash.
            ranges.iter_mut().for_each(hash);
        }
        let texts = ranges.iter().map(|(low, high)| {
            let (from, to) = if ascending { (low, high) } else { (high, low) };
            range_text((from.0.as_value(), from.1), (to.0.as_value(), to.1))
        });
        append_ranges(texts, &mut array);
    }
}

/// Makes a range of one value that of its hash.
fn hash((low, high): &mut Range) {
    if low == high {
        let hash = values::hash::hash(low.0.as_value(), &Collation::SIMPLE);
        low.0 = Value::Int64(hash).to_owned();
        high.0 = low.0.clone();
    }
}

/// Ranges of values as they are, in the direction of a field.
pub(super) fn write_ranges(ranges: &[access::ValueRange], ascends: bool, array: &mut ArrayWriter<'_>) {
    let text = |range: &access::ValueRange| {
        let low = (range.low.value.as_value(), !range.low.behind);
        let high = (range.high.value.as_value(), range.high.behind);
        if ascends { range_text(low, high) } else { range_text(high, low) }
    };
    match ascends {
        true => append_ranges(ranges.iter().map(text), array),
        false => append_ranges(ranges.iter().rev().map(text), array),
    }
}

/// Whether keys from one to another are read, and nothing in between is left out.
pub(super) fn is_one_range(spec: &IndexSpec, arrays: u64, predicate: Option<&Predicate>) -> bool {
    of_fields(spec, arrays, predicate).iter().all(|sought| ranges_of(sought).len() == 1)
}

/// The first key that is counted, and the last, of one range.
pub(super) fn write_edges(spec: &IndexSpec, arrays: u64, predicate: Option<&Predicate>, writer: &mut DocWriter<'_>) {
    let sought = of_fields(spec, arrays, predicate);
    let fields = spec.key.as_doc().iter().zip(&sought);
    let ranges: Vec<(&str, Vec<Range>)> = fields.map(|((path, _), sought)| (path, ranges_of(sought))).collect();
    for (key, inclusive, high) in [("startKey", "startKeyInclusive", false), ("endKey", "endKeyInclusive", true)] {
        let end = |range: &Range| if high { range.1.clone() } else { range.0.clone() };
        let ends: Vec<(&str, End)> = ranges.iter().map(|(path, ranges)| (*path, end(&ranges[0]))).collect();
        let mut values = writer.document(key);
        ends.iter().for_each(|(path, (value, _))| values.append(path, value));
        drop(values);
        writer.append(inclusive, ends.iter().all(|(_, (_, included))| *included));
    }
}

/// Returns whether the keys decide a condition on a field.
pub(super) fn is_decided(
    spec: &IndexSpec,
    arrays: u64,
    predicate: Option<&Predicate>,
    path: &str,
    test: &Test,
) -> bool {
    // Different values may have the same hash.
    let position = spec
        .key
        .as_doc()
        .iter()
        .position(|(field, kind)| field == path && FieldKind::of(field, kind) != FieldKind::Hashed);
    let is_exact = || IndexBounds::of([test], KEY_BYTES).is_some_and(|bounds| bounds.exact);
    position.filter(|_| !has_ends(predicate)).is_some_and(|position| {
        let sought = || of_fields(spec, arrays, predicate).swap_remove(position);
        is_exact() && (arrays & 1 << position == 0 || sought().iter().any(|one| std::ptr::eq(one.test, test)))
    })
}

/// Whether `min` or `max` say which keys are read; MongoDB shows no bounds then, and conditions are
/// left to the filter.
fn has_ends(predicate: Option<&Predicate>) -> bool {
    predicate.is_some_and(|predicate| conjuncts(predicate).iter().any(|node| matches!(node, Node::KeyRange(_))))
}

fn conjuncts(predicate: &Predicate) -> &[Node] {
    match predicate.root() {
        Node::And(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    }
}

fn everything() -> Vec<Range> {
    vec![((Value::MinKey.to_owned(), true), (Value::MaxKey.to_owned(), true))]
}

/// A condition that keys are looked up for.
struct Sought<'p> {
    test: &'p Test,
    /// The array, if it is a condition on one of its elements.
    element_of: Option<&'p str>,
    ranges: Vec<Range>,
}

/// What each of the index's fields is read for. `arrays`: those of them that have met arrays, as
/// bits.
fn of_fields<'p>(spec: &IndexSpec, arrays: u64, predicate: Option<&'p Predicate>) -> Vec<Vec<Sought<'p>>> {
    let mut fields: Vec<Vec<Sought<'p>>> = Vec::new();
    let mut within: Vec<(&str, Option<&str>)> = Vec::new();
    for (position, (path, _)) in spec.key.as_doc().iter().enumerate() {
        let is_array = arrays & 1 << position != 0;
        let mut sought = predicate.map_or_else(Vec::new, |predicate| of_field(path, is_array, predicate));
        if is_array {
            // One element may meet one condition, another the next, but for those of one
            // `$elemMatch`.
            let first = |path: &str| path.split('.').next().map(str::to_owned);
            let beside = within.iter().filter(|(other, _)| first(other) == first(path));
            let beside: Vec<Option<&str>> = beside.map(|(_, element_of)| *element_of).collect();
            sought.retain(|one| beside.iter().all(|other| other.is_some() && *other == one.element_of));
            sought.sort_by_key(|one| one.element_of.is_none());
            sought.truncate(1);
            within.extend(sought.first().map(|one| (path, one.element_of)));
        }
        fields.push(sought);
    }
    fields
}

fn ranges_of(sought: &[Sought<'_>]) -> Vec<Range> {
    let all = sought.iter().map(|one| one.ranges.clone());
    all.reduce(|one, other| intersection(&one, &other)).unwrap_or_else(everything)
}

fn of_field<'p>(path: &str, is_array: bool, predicate: &'p Predicate) -> Vec<Sought<'p>> {
    let sought = conjuncts(predicate).iter().filter_map(|node| match node {
        Node::Path { path: other, test } if other.as_str() == path && !is_of_element(test) => {
            Some(Sought { test, element_of: None, ranges: of_test(test)? })
        }
        Node::Path { path: array, test } if is_array => {
            let array = array.as_str();
            Some(Sought { test, element_of: Some(array), ranges: of_element(path, array, test)? })
        }
        _ => None,
    });
    sought.collect()
}

fn is_of_element(test: &Test) -> bool {
    matches!(test, Test::ElementMatches(_) | Test::ElementSatisfies(_))
}

/// The ranges for a field of what an element of the array has to meet.
fn of_element(path: &str, array: &str, test: &Test) -> Option<Vec<Range>> {
    let rest = path.strip_prefix(array)?;
    let ranges: Vec<Vec<Range>> = match test {
        Test::ElementSatisfies(tests) if rest.is_empty() => tests.iter().filter_map(of_test).collect(),
        Test::ElementMatches(node) => {
            let field = rest.strip_prefix('.')?;
            let nodes = match &**node {
                Node::And(all) => all.as_slice(),
                one => std::slice::from_ref(one),
            };
            let own = nodes.iter().filter_map(|node| match node {
                Node::Path { path, test } if path.as_str() == field => of_test(test),
                _ => None,
            });
            own.collect()
        }
        _ => return None,
    };
    ranges.into_iter().reduce(|one, other| intersection(&one, &other))
}

/// The ranges of the conditions that keys are made for.
fn of_test(test: &Test) -> Option<Vec<Range>> {
    let point = |value: &ValueBuf| ((value.clone(), true), (value.clone(), true));
    let bracket = |value: &ValueBuf| {
        let (low, high, included) = type_bracket::of(value.kind());
        ((low.to_owned(), true), (high.to_owned(), included))
    };
    let values = |values: &[ValueBuf]| {
        let mut ranges: Vec<Range> = Vec::with_capacity(values.len());
        for value in values {
            if value.kind() == Kind::Null {
                ranges.push(point(&Value::Undefined.to_owned()));
            }
            ranges.push(point(value));
        }
        ranges.sort_by(|a, b| document::compare(a.0.0.as_value(), b.0.0.as_value()));
        ranges
    };
    Some(match test {
        Test::Equal(value) => values(std::slice::from_ref(value)),
        Test::In(list) if list.regexes().is_empty() => values(list.values()),
        Test::Less(value) => vec![(bracket(value).0, (value.clone(), false))],
        Test::LessOrEqual(value) => vec![(bracket(value).0, (value.clone(), true))],
        Test::Greater(value) => vec![((value.clone(), false), bracket(value).1)],
        Test::GreaterOrEqual(value) => vec![((value.clone(), true), bracket(value).1)],
        Test::Regex(regex) => {
            let beginning = regex.beginning()?;
            let low = (Value::String(&beginning.text).to_owned(), true);
            let high = match beginning.end() {
                Some(end) => (Value::String(&end).to_owned(), false),
                None => bracket(&low.0).1,
            };
            vec![(low, high), point(&regex.to_value())]
        }
        _ => return None,
    })
}

/// Both are in ascending order, and their ranges apart.
fn intersection(left: &[Range], right: &[Range]) -> Vec<Range> {
    let order = |a: &End, b: &End| document::compare(a.0.as_value(), b.0.as_value());
    let mut both = Vec::new();
    let (mut ours, mut theirs) = (left.iter().peekable(), right.iter().peekable());
    while let (Some((low, high)), Some((other_low, other_high))) = (ours.peek(), theirs.peek()) {
        let begins = match order(low, other_low).then(other_low.1.cmp(&low.1)) {
            Ordering::Less => other_low,
            _ => low,
        };
        let other_ends_first = order(high, other_high).then(high.1.cmp(&other_high.1)) == Ordering::Greater;
        let ends = if other_ends_first { other_high } else { high };
        let between = order(begins, ends);
        if between.is_lt() || between.is_eq() && begins.1 && ends.1 {
            both.push((begins.clone(), ends.clone()));
        }
        if other_ends_first {
            theirs.next()
        } else {
            ours.next()
        };
    }
    both
}
