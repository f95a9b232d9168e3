//! Conditions on a value, evaluated on the value's bytes.

use super::details::MatchDetails;
use super::tree::Test;
use document::compare::{compare, equal, kind_rank};
use document::path::{End, Path};
use document::{Collation, Doc, Element, Kind, Value, ValueBuf};
use error::Result;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use steps::Counted;

impl Test {
    /// Returns whether the condition holds for the values at `path` in `document`.
    pub(super) fn holds_at(&self, path: &Path, document: Doc<'_>, details: Option<&mut MatchDetails>) -> Result<bool> {
        match self {
            Test::Not(inner) => Ok(!inner.holds_at(path, document, None)?),
            Test::And(all) => {
                for test in all {
                    steps::step();
                    if !test.holds_at(path, document, None)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Test::Never => Ok(false),
            _ => self.holds_for_any(path, document, details),
        }
    }

    fn holds_for_any(&self, path: &Path, document: Doc<'_>, details: Option<&mut MatchDetails>) -> Result<bool> {
        // Account for the fields that are skipped.
        steps::bytes(document.size() / 16);
        let whole_arrays = matches!(self, Test::Size(_) | Test::ElementMatches(_) | Test::ElementSatisfies(_));
        let end = if whole_arrays { End::Whole } else { End::Expanded };
        // Breaks with the array index of the match, or with an error.
        let walked = path.visit_elements(document, end, &mut |element, index| {
            let mut inner = None;
            match self.holds_for(element, &mut inner) {
                Ok(false) => ControlFlow::Continue(()),
                Ok(true) => ControlFlow::Break(Ok(index.or(inner))),
                Err(error) => ControlFlow::Break(Err(error)),
            }
        });
        let ControlFlow::Break(found) = walked else { return Ok(false) };
        if let (Some(details), Some(index)) = (details, found?) {
            details.array_index = Some(index);
        }
        Ok(true)
    }

    /// Returns whether the condition holds for this one value; `None` is a missing one.
    /// `$elemMatch` stores the index of the matching element in `inner`.
    pub(super) fn holds_for(&self, element: Option<Element<'_>>, inner: &mut Option<usize>) -> Result<bool> {
        Ok(match self {
            Test::Equal(operand) => is_equal(element, operand),
            Test::Less(operand) => is_ordered(element, operand, Ordering::Less, false),
            Test::LessOrEqual(operand) => is_ordered(element, operand, Ordering::Less, true),
            Test::Greater(operand) => is_ordered(element, operand, Ordering::Greater, false),
            Test::GreaterOrEqual(operand) => is_ordered(element, operand, Ordering::Greater, true),
            Test::In(list) => list.contains(element)?,
            Test::Collated(test, collation) => return holds_in(test, element, collation),
            Test::Regex(regex) => element.map_or(Ok(false), |element| regex.matches(element))?,
            Test::Geometry(region) => element.is_some_and(|element| region.holds_for(element.value())),
            Test::Exists => element.is_some(),
            Test::Type(types) => element.is_some_and(|element| types.contains(element.kind)),
            Test::Mod { divisor, remainder } => {
                element.is_some_and(|element| leaves_remainder(element.value(), *divisor, *remainder))
            }
            Test::Bits(bits) => element.is_some_and(|element| bits.holds_for(element.value())),
            Test::Size(size) => array(element).is_some_and(|array| array.elements().counted().count() as i64 == *size),
            Test::ElementMatches(filter) => position_where(element, inner, |element| match element.kind {
                Kind::Document | Kind::Array => filter.matches(nested(element)),
                _ => Ok(false),
            })?,
            Test::ElementSatisfies(tests) => position_where(element, inner, |element| all_hold(tests, element))?,
            Test::Not(test) => !test.holds_for(element, &mut None)?,
            Test::And(tests) => {
                for test in tests {
                    steps::step();
                    if !test.holds_for(element, &mut None)? {
                        return Ok(false);
                    }
                }
                true
            }
            Test::Never => false,
        })
    }
}

/// Evaluates a comparison by a collation.
fn holds_in(test: &Test, element: Option<Element<'_>>, collation: &Collation) -> Result<bool> {
    let (operand, order, or_equal) = match test {
        Test::Equal(operand) => {
            return Ok(match element {
                None => operand.kind() == Kind::Null,
                Some(element) => collation.equal(element.value(), operand.as_value()),
            });
        }
        Test::Less(operand) => (operand, Ordering::Less, false),
        Test::LessOrEqual(operand) => (operand, Ordering::Less, true),
        Test::Greater(operand) => (operand, Ordering::Greater, false),
        Test::GreaterOrEqual(operand) => (operand, Ordering::Greater, true),
        other => return other.holds_for(element, &mut None),
    };
    Ok(element.is_some_and(|element| {
        kind_rank(element.kind) == kind_rank(operand.kind())
            && match collation.compare(element.value(), operand.as_value()) {
                Ordering::Equal => or_equal,
                found => found == order,
            }
    }))
}

/// Returns the document or array of an element.
fn nested(element: Element<'_>) -> Doc<'_> {
    Doc::from_bytes(element.raw_value()).unwrap_or(Doc::EMPTY)
}

fn all_hold(tests: &[Test], element: Element<'_>) -> Result<bool> {
    for test in tests {
        steps::step();
        if !test.holds_for(Some(element), &mut None)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn array(element: Option<Element<'_>>) -> Option<Doc<'_>> {
    element.filter(|element| element.kind == Kind::Array).map(nested)
}

fn position_where<'d>(
    element: Option<Element<'d>>,
    found: &mut Option<usize>,
    mut condition: impl FnMut(Element<'d>) -> Result<bool>,
) -> Result<bool> {
    for (position, element) in array(element).into_iter().flat_map(Doc::elements).enumerate() {
        steps::step();
        if condition(element)? {
            *found = Some(position);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether values of a kind are equal if and only if their bytes are.
fn same_kind_is_bytewise(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Double | Kind::Decimal128 | Kind::Document | Kind::Array | Kind::CodeWithScope | Kind::DbPointer
    )
}

#[inline]
fn is_equal(element: Option<Element<'_>>, operand: &ValueBuf) -> bool {
    let Some(element) = element else { return operand.kind() == Kind::Null };
    if element.kind == operand.kind() {
        if same_kind_is_bytewise(element.kind) {
            steps::bytes(operand.raw_value().len());
            return element.raw_value() == operand.raw_value();
        }
        return equal(element.value(), operand.as_value());
    }
    if kind_rank(element.kind) != kind_rank(operand.kind()) {
        return element.kind == Kind::Undefined && operand.kind() == Kind::Null;
    }
    equal(element.value(), operand.as_value())
}

fn is_ordered(element: Option<Element<'_>>, operand: &ValueBuf, order: Ordering, or_equal: bool) -> bool {
    let kind = element.map(|element| element.kind);
    match element {
        Some(element) if kind_rank(element.kind) == kind_rank(operand.kind()) => {
            let (value, operand) = (element.value(), operand.as_value());
            match compare(value, operand) {
                Ordering::Equal => or_equal,
                // NaN is below all numbers in the total order, but neither less nor greater than
                // any of them here.
                found => found == order && !is_nan(value) && !is_nan(operand),
            }
        }
        _ => match operand.kind() {
            Kind::Null => or_equal && matches!(kind, None | Some(Kind::Undefined)),
            Kind::MaxKey => order == Ordering::Less,
            Kind::MinKey => order == Ordering::Greater,
            _ => false,
        },
    }
}

fn is_nan(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_nan(),
        Value::Decimal128(number) => number.is_nan(),
        _ => false,
    }
}

fn leaves_remainder(value: Value<'_>, divisor: i64, remainder: i64) -> bool {
    values::integer::as_i64_truncated(value).is_some_and(|number| number.wrapping_rem(divisor) == remainder)
}
