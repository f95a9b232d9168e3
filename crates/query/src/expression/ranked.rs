//! `$sortArray`, `$firstN`, `$lastN`, `$minN`, `$maxN`.

use super::arguments::named;
use super::array::push;
use super::evaluated::Evaluated;
use super::second_engine::differs;
use super::tree::Arity::Named;
use super::tree::{Expr, Foldable, Operator, ParseExpr};
use crate::sort::ElementOrder;
use document::{Collation, Element, Value, ValueBuf};
use error::{Code, Error, Result};
use std::collections::BTreeMap;
use steps::Counted;
use values::integer::{as_i64_exact, to_i64_exact};
use values::text;
use values::text::display;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::collated("$sortArray", Named(parse_sort), sort)
        .foldable(Foldable::Arguments)
        .second_engine(differs(&[(2942504, 6096700, "~ input argument must be an array")])),
    Operator::new("$firstN", Named(parse_count), |_, arguments| {
        count(arguments, |elements, count| {
            elements.truncate(count);
        })
    })
    .foldable(Foldable::None),
    Operator::new("$lastN", Named(parse_count), |_, arguments| {
        count(arguments, |elements, count| {
            elements.drain(..elements.len().saturating_sub(count));
        })
    })
    .foldable(Foldable::None),
    Operator::collated("$minN", Named(parse_count), |_, arguments, collation| {
        count(arguments, |elements, count| {
            elements.retain(|element| !is_null(*element));
            elements.sort_by(|a, b| {
                steps::step();
                collation.compare(a.value(), b.value())
            });
            elements.truncate(count);
        })
    })
    .foldable(Foldable::None),
    Operator::collated("$maxN", Named(parse_count), |_, arguments, collation| {
        count(arguments, |elements, count| {
            elements.retain(|element| !is_null(*element));
            keep_greatest(elements, count, collation);
        })
    })
    .foldable(Foldable::None),
];

/// Retains the `count` greatest elements, in descending order. If only some of several equal values
/// remain, the order of arrival decides: a greater value replaces the first of the smallest, an
/// equal one replaces none. Of equal values the last one comes first.
fn keep_greatest(elements: &mut Vec<Element<'_>>, count: usize, collation: &Collation) {
    let mut kept: BTreeMap<(Vec<u8>, usize), Element<'_>> = BTreeMap::new();
    for (number, element) in elements.drain(..).enumerate() {
        // About the depth of the tree.
        steps::steps(4);
        let mut key = Vec::new();
        collation.encode_key(element.value(), &mut key);
        if kept.len() >= count {
            match kept.first_key_value() {
                Some(((smallest, _), _)) if key > *smallest => drop(kept.pop_first()),
                _ => continue,
            }
        }
        kept.insert((key, number), element);
    }
    *elements = kept.into_values().rev().collect();
}

fn is_null(element: Element<'_>) -> bool {
    matches!(element.value(), Value::Null | Value::Undefined)
}

fn parse_sort(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        let found = operand.kind().alias();
        return Err(Error::new(Code(2942500), format!("{name} requires an object as an argument, found: {found}")));
    };
    let [input, by] = named(operand, ["input", "sortBy"], |unknown| {
        Error::new(Code(2942501), format!("$sortArray found an unknown argument: {unknown}"))
    })?;
    let input = input.ok_or_else(|| Error::new(Code(2942502), "$sortArray requires 'input' to be specified"))?;
    let by = by.ok_or_else(|| Error::new(Code(2942503), "$sortArray requires 'sortBy' to be specified"))?;
    let input = parser.parse(input)?;
    match by {
        Value::Document(_) => drop(element_order(by)?),
        by if by.kind().is_number() && matches!(as_i64_exact(by), Some(1 | -1)) => {}
        by if by.kind().is_number() => {
            return Err(Error::new(Code(2942506), "The $sort element value must be either 1 or -1"));
        }
        _ => {
            let message = "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded \
                           fields";
            return Err(Error::new(Code(2942507), message));
        }
    }
    Ok(vec![input, Expr::Literal(ValueBuf::from(by))])
}

fn sort<'a>(_: &'static str, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
    let [input, by] = &*arguments else { return Ok(Evaluated::Missing) };
    let array = match input.value() {
        None | Some(Value::Null | Value::Undefined) => return Ok(Evaluated::NULL),
        Some(Value::Array(array)) => array,
        Some(_) => {
            let found = input.type_name();
            let message = format!("The input argument to $sortArray must be an array, but was of type: {found}");
            return Err(Error::new(Code(2942504), message));
        }
    };
    let order = element_order(by.value_or_null())?;
    let mut elements: Vec<Element<'_>> = array.elements().counted().collect();
    elements.sort_by(|a, b| order.compare(a.value(), b.value(), collation));
    Ok(Evaluated::array(|writer| {
        elements.iter().for_each(|element| push(writer, *element));
    }))
}

/// Parses an order like that of a `$push` with `$sort`: arrays compare as a whole. Fails with
/// 2942505.
fn element_order(by: Value<'_>) -> Result<ElementOrder> {
    ElementOrder::parse(by).map_err(|error| Error::new(Code(2942505), format!("BadValue: {}", error.message())))
}

fn parse_count(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        let code = if matches!(name, "$minN" | "$maxN") { 5787900 } else { 5787801 };
        let found = text::element(name, operand);
        return Err(Error::new(Code(code), format!("specification must be an object; found {found}")));
    };
    let [count, input] = named(operand, ["n", "input"], |unknown| {
        Error::new(Code(5787901), format!("Unknown argument for 'n' operator: {unknown}"))
    })?;
    let count = count.ok_or_else(|| Error::new(Code(5787906), "Missing value for 'n'"))?;
    let input = input.ok_or_else(|| Error::new(Code(5787907), "Missing value for 'input'"))?;
    Ok(vec![parser.parse(count)?, parser.parse(input)?])
}

/// Checks the `n` of `$firstN` and its siblings, operators and accumulators alike.
///
/// Fails with 31109 for a double out of range; with 5787902, 5787903 and 5787908 unless it is a
/// positive integer.
pub fn checked_count(count: Value<'_>) -> Result<usize> {
    let found = || display(count);
    if !count.kind().is_number() {
        return Err(Error::new(
            Code(5787902),
            format!("Value for 'n' must be of integral type, but found {}", found()),
        ));
    }
    let whole = to_i64_exact(count)?.ok_or_else(|| {
        Error::new(Code(5787903), format!("Value for 'n' must be of integral type, but found {}", found()))
    })?;
    usize::try_from(whole)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| Error::new(Code(5787908), format!("'n' must be greater than 0, found {}", found())))
}

fn count<'a>(arguments: &[Evaluated<'a>], choose: impl Fn(&mut Vec<Element<'_>>, usize)) -> Result<Evaluated<'a>> {
    let [count, input] = arguments else { return Ok(Evaluated::Missing) };
    let count = checked_count(count.value_or_null())?;
    let Some(Value::Array(array)) = input.value() else {
        return Err(Error::new(Code(5788200), "Input must be an array"));
    };
    let mut elements: Vec<Element<'_>> = array.elements().counted().collect();
    choose(&mut elements, count);
    Ok(Evaluated::array(|writer| {
        elements.iter().for_each(|element| push(writer, *element));
    }))
}
