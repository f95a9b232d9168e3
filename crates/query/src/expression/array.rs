//! Arrays.

use super::arguments::named;
use super::evaluated::Evaluated;
use super::second_engine::{SecondEngine, checked, differs, null_first};
use super::string::search_range;
use super::tree::Arity::{Any, Between, Exactly, Named};
use super::tree::{Algebra, Expr, Foldable, Operator, ParseExpr};
use crate::limits::check_value_size;
use document::{ArrayWriter, Collation, Doc, Element, Value, ValueBuf};
use error::{Code, Error, Result};
use steps::Counted;
use values::integer::as_i64_exact;
use values::text::display;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new("$isArray", Exactly(1), |_, arguments| {
        Ok(matches!(arguments[0].value(), Some(Value::Array(_))).into())
    })
    .never_fails()
    .second_engine(SecondEngine::Same),
    Operator::new("$isNumber", Exactly(1), |_, arguments| {
        Ok(arguments[0].value().is_some_and(|value| value.kind().is_number()).into())
    })
    .never_fails()
    .second_engine(SecondEngine::Same),
    Operator::new("$size", Exactly(1), size),
    Operator::new("$arrayElemAt", Exactly(2), element_at).second_engine(differs(&[
        (28689, 5126701, "~ first argument must be an array"),
        (28690, 5126702, "~ second argument must be a number"),
        (28691, 5126703, "~ second argument cannot be represented as a 32-bit integer"),
    ])),
    Operator::new("$first", Exactly(1), |name, arguments| end(name, &arguments[0], |array| array.values().next()))
        .second_engine(differs(&[(28689, 5126704, "~ argument must be an array")])),
    Operator::new("$last", Exactly(1), |name, arguments| {
        end(name, &arguments[0], |array| array.values().counted().last())
    })
    .second_engine(differs(&[(28689, 5126704, "~ argument must be an array")])),
    Operator::new("$concatArrays", Any, concat)
        .algebra(Algebra::Associative)
        .second_engine(checked(null_first, &[(28664, 5153400, "~ only supports arrays")])),
    Operator::new("$slice", Between(2, 3), slice),
    Operator::new("$reverseArray", Exactly(1), reverse).second_engine(differs(&[(
        34435,
        5154901,
        "~ argument must be an array",
    )])),
    Operator::collated("$in", Exactly(2), contains),
    Operator::collated("$indexOfArray", Between(2, 4), index_of).check_constants(check_constants),
    Operator::new("$range", Between(2, 3), range).second_engine(checked(range_in_second_engine, &[])),
    Operator::new("$zip", Named(parse_zip), zip).foldable(Foldable::Arguments),
    Operator::new("$anyElementTrue", Exactly(1), |name, arguments| {
        Ok(truth(name, 17041, &arguments[0])?.any(|element| element).into())
    })
    .second_engine(differs(&[(17041, 5159200, "~'s argument must be an array")])),
    Operator::new("$allElementsTrue", Exactly(1), |name, arguments| {
        Ok(truth(name, 17040, &arguments[0])?.all(|element| element).into())
    }),
];

fn range_in_second_engine<'a>(name: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    const PARTS: [(&str, i32, i32); 3] =
        [("start", 5154300, 5154303), ("end", 5154301, 5154304), ("step", 5154302, 5154305)];
    Evaluated::mark_all_read(arguments);
    for (argument, (part, code, _)) in arguments.iter().zip(PARTS) {
        if argument.is_missing() {
            return Ok(Some(Evaluated::Missing));
        }
        if !argument.value_or_null().kind().is_number() {
            return Err(Error::new(Code(code), format!("{name} only supports numeric types for {part}")));
        }
    }
    for (argument, (part, _, code)) in arguments.iter().zip(PARTS) {
        let number = as_i64_exact(argument.value_or_null());
        match number.map(i32::try_from) {
            Some(Ok(0)) if part == "step" => {
                return Err(Error::new(Code(5154306), format!("{name} requires a non-zero step value")));
            }
            Some(Ok(_)) => {}
            _ => {
                let message = format!("{name} {part} argument cannot be represented as a 32-bit integer");
                return Err(Error::new(Code(code), message));
            }
        }
    }
    Ok(None)
}

/// Checks constant arguments before there is a document; the server has separate error codes for
/// these.
fn check_constants(name: &'static str, arguments: &[Expr], folded: usize) -> Result<()> {
    match arguments.first().and_then(Expr::as_constant) {
        _ if folded < arguments.len() || arguments.iter().all(Expr::is_constant) => Ok(()),
        Some(Some(value)) if !matches!(value, Value::Array(_) | Value::Null | Value::Undefined) => {
            let found = value.kind().alias();
            let message = format!("First operand of {name} must be an array. First argument is of type: {found}");
            Err(Error::new(Code(50809), message))
        }
        _ => Ok(()),
    }
}

/// Copies an element, which may be long.
pub(super) fn push(writer: &mut ArrayWriter<'_>, element: Element<'_>) {
    steps::step();
    steps::bytes(element.raw_value().len());
    writer.push_raw(element.kind, element.raw_value());
}

fn size<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    match arguments[0].value() {
        Some(Value::Array(array)) => Ok((array.elements().counted().count() as i32).into()),
        _ => {
            let found = arguments[0].type_name();
            let message = format!("The argument to $size must be an array, but was of type: {found}");
            Err(Error::new(Code(17124), message))
        }
    }
}

/// Returns the element at a position, counted from the end if it is negative.
fn at(array: Doc<'_>, position: i64) -> Option<Value<'_>> {
    let position = match usize::try_from(position) {
        Ok(position) => position,
        Err(_) => array.elements().counted().count().checked_sub(usize::try_from(position.unsigned_abs()).ok()?)?,
    };
    array.elements().counted().nth(position).map(Element::value)
}

fn element_at<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    let [array, position] = &*arguments else { return Ok(Evaluated::Missing) };
    if array.is_nullish() || position.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    if !matches!(array.value(), Some(Value::Array(_))) {
        let found = array.type_name();
        let message = format!("$arrayElemAt's first argument must be an array, but is {found}");
        return Err(Error::new(Code(28689), message));
    }
    let index = position.value_or_null();
    if !index.kind().is_number() {
        let found = position.type_name();
        let message = format!("$arrayElemAt's second argument must be a numeric value, but is {found}");
        return Err(Error::new(Code(28690), message));
    }
    let index = as_i64_exact(index).filter(|index| i32::try_from(*index).is_ok()).ok_or_else(|| {
        // The server formats this number as a double.
        let found = match index {
            Value::Int64(number) => display(Value::Double(number as f64)),
            value => display(value),
        };
        let message = format!("$arrayElemAt's second argument must be representable as a 32-bit integer: {found}");
        Error::new(Code(28691), message)
    })?;
    Ok(array.part(|array| at(array.as_array()?, index)))
}

fn end<'a>(
    name: &str,
    argument: &Evaluated<'a>,
    take: for<'x> fn(Doc<'x>) -> Option<Value<'x>>,
) -> Result<Evaluated<'a>> {
    match argument.value() {
        None | Some(Value::Null | Value::Undefined) => Ok(Evaluated::NULL),
        Some(Value::Array(_)) => Ok(argument.part(|array| take(array.as_array()?))),
        Some(_) => {
            let found = argument.type_name();
            Err(Error::new(Code(28689), format!("{name}'s argument must be an array, but is {found}")))
        }
    }
}

fn concat<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    for argument in arguments.iter() {
        if argument.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        if !matches!(argument.value(), Some(Value::Array(_))) {
            let found = argument.type_name();
            return Err(Error::new(Code(28664), format!("$concatArrays only supports arrays, not {found}")));
        }
    }
    Evaluated::try_array(|writer| {
        for array in arguments.iter().filter_map(|argument| argument.value()?.as_array()) {
            array.elements().for_each(|element| push(writer, element));
            check_value_size(writer.size())?;
        }
        Ok(())
    })
}

fn slice<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(&arguments[..2]);
    if arguments.iter().take(2).any(Evaluated::is_nullish) {
        return Ok(Evaluated::NULL);
    }
    let Some(Value::Array(array)) = arguments[0].value() else {
        let found = arguments[0].type_name();
        let message = format!("First argument to $slice must be an array, but is of type: {found}");
        return Err(Error::new(Code(28724), message));
    };
    let position = slice_bound(&arguments[1], 28725, "Second argument to $slice must be a numeric value", "Second")?;
    let length = array.elements().counted().count() as i64;
    let (start, count) = match arguments.get(2) {
        None if position < 0 => ((length + position).max(0), -position),
        None => (0, position),
        Some(count) if count.is_nullish() => return Ok(Evaluated::NULL),
        Some(count) => {
            let count = slice_bound(count, 28727, "Third argument to $slice must be numeric", "Third")?;
            if count <= 0 {
                return Err(Error::new(Code(28729), format!("Third argument to $slice must be positive: {count}")));
            }
            (if position < 0 { (length + position).max(0) } else { position }, count)
        }
    };
    Ok(Evaluated::array(|writer| {
        for element in array.elements().counted().skip(start as usize).take(count as usize) {
            push(writer, element);
        }
    }))
}

fn slice_bound(argument: &Evaluated<'_>, code: i32, wanted: &str, which: &str) -> Result<i64> {
    let value = argument.value_or_null();
    if !value.kind().is_number() {
        let found = argument.type_name();
        return Err(Error::new(Code(code), format!("{wanted}, but is of type: {found}")));
    }
    as_i64_exact(value).filter(|number| i32::try_from(*number).is_ok()).ok_or_else(|| {
        let found = display(value);
        let message = format!("{which} argument to $slice can't be represented as a 32-bit integer: {found}");
        Error::new(Code(code + 1), message)
    })
}

fn reverse<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    match arguments[0].value() {
        None | Some(Value::Null | Value::Undefined) => Ok(Evaluated::NULL),
        Some(Value::Array(array)) => {
            let elements: Vec<Element<'_>> = array.elements().counted().collect();
            Ok(Evaluated::array(|writer| {
                elements.iter().rev().for_each(|element| push(writer, *element));
            }))
        }
        Some(_) => {
            let found = arguments[0].type_name();
            let message = format!("The argument to $reverseArray must be an array, but was of type: {found}");
            Err(Error::new(Code(34435), message))
        }
    }
}

fn contains<'a>(_: &'static str, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(arguments);
    let Some(Value::Array(array)) = arguments[1].value() else {
        let found = arguments[1].type_name();
        let message = format!("$in requires an array as a second argument, found: {found}");
        return Err(Error::new(Code(40081), message));
    };
    Ok(arguments[0]
        .value()
        .is_some_and(|wanted| array.values().counted().any(|value| collation.equal(value, wanted)))
        .into())
}

fn index_of<'a>(name: &'static str, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
    if arguments[0].is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(Value::Array(array)) = arguments[0].value() else {
        let found = arguments[0].type_name();
        let message = format!("$indexOfArray requires an array as a first argument, found: {found}");
        return Err(Error::new(Code(40090), message));
    };
    let (start, end) = search_range(name, &arguments[2..], array.elements().counted().count())?;
    let wanted = arguments[1].value();
    let found = array
        .values()
        .counted()
        .enumerate()
        .skip(start)
        .take_while(|(index, _)| *index < end)
        .find(|(_, value)| wanted.is_some_and(|wanted| collation.equal(*value, wanted)));
    Ok(found.map_or(-1, |(index, _)| index as i32).into())
}

/// Maximal size of a `$range`.
const RANGE_BYTES_MAX: usize = document::DOCUMENT_BYTES_MAX_INTERNAL;

fn range<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    Evaluated::mark_all_read(&arguments[..2]);
    let start = range_bound(&arguments[0], 34443, "a numeric starting value, found value of type: ", "a starting")?;
    let end = range_bound(&arguments[1], 34445, "a numeric ending value, found value of type: ", "an ending")?;
    let step = match arguments.get(2) {
        Some(step) => range_bound(step, 34447, "a numeric step value, found value of type:", "a step")?,
        None => 1,
    };
    if step == 0 {
        return Err(Error::new(Code(34449), "$range requires a non-zero step value"));
    }
    Evaluated::try_array(|writer| {
        let mut current = start;
        while (step > 0 && current < end) || (step < 0 && current > end) {
            steps::step();
            writer.push(current as i32);
            if writer.size() > RANGE_BYTES_MAX {
                return Err(Error::new(
                    Code::EXCEEDED_MEMORY_LIMIT,
                    "$range would use too much memory and cannot spill",
                ));
            }
            current += step;
        }
        Ok(())
    })
}

fn range_bound(argument: &Evaluated<'_>, code: i32, wanted: &str, which: &str) -> Result<i64> {
    let value = argument.value_or_null();
    if !value.kind().is_number() {
        return Err(Error::new(Code(code), format!("$range requires {wanted}{}", argument.type_name())));
    }
    as_i64_exact(value).filter(|number| i32::try_from(*number).is_ok()).ok_or_else(|| {
        let found = display(value);
        let message =
            format!("$range requires {which} value that can be represented as a 32-bit integer, found value: {found}");
        Error::new(Code(code + 1), message)
    })
}

fn parse_zip(parser: &mut dyn ParseExpr, _: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    let Value::Document(operand) = operand else {
        let found = operand.kind().alias();
        return Err(Error::new(Code(34460), format!("$zip only supports an object as an argument, found {found}")));
    };
    let [inputs, defaults, longest] = named(operand, ["inputs", "defaults", "useLongestLength"], |unknown| {
        Error::new(Code(34464), format!("$zip found an unknown argument: {unknown}"))
    })?;
    let mut expressions = |value: Option<Value<'_>>, code, what: &str| match value {
        None => Ok(Vec::new()),
        Some(Value::Array(array)) => parser.parse_all(array),
        Some(value) => {
            let found = value.kind().alias();
            Err(Error::new(Code(code), format!("{what} must be an array of expressions, found {found}")))
        }
    };
    let inputs = expressions(inputs, 34461, "inputs")?;
    let defaults = expressions(defaults, 34462, "defaults")?;
    let longest = match longest {
        None => false,
        Some(Value::Boolean(longest)) => longest,
        Some(value) => {
            let found = value.kind().alias();
            return Err(Error::new(Code(34463), format!("useLongestLength must be a bool, found {found}")));
        }
    };
    if inputs.is_empty() {
        return Err(Error::new(Code(34465), "$zip requires at least one input array"));
    }
    if !defaults.is_empty() && !longest {
        return Err(Error::new(Code(34466), "cannot specify defaults unless useLongestLength is true"));
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        return Err(Error::new(Code(34467), "defaults and inputs must have the same length"));
    }
    let count = inputs.len() as i32;
    let literal = |value: Value<'_>| Expr::Literal(ValueBuf::from(value));
    let mut arguments = vec![literal(Value::Boolean(longest)), literal(Value::Int32(count))];
    arguments.extend(inputs);
    arguments.extend(defaults);
    Ok(arguments)
}

/// Evaluates `$zip`. The arguments are: whether to use the longest length, the number of arrays,
/// the arrays, their defaults.
fn zip<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [longest, Evaluated::Value(Value::Int32(count)), rest @ ..] = &*arguments else {
        return Ok(Evaluated::Missing);
    };
    let (inputs, defaults) = rest.split_at((*count as usize).min(rest.len()));
    let mut arrays: Vec<Vec<Element<'_>>> = Vec::with_capacity(inputs.len());
    for input in inputs {
        match input.value() {
            None | Some(Value::Null | Value::Undefined) => return Ok(Evaluated::NULL),
            Some(Value::Array(array)) => arrays.push(array.elements().counted().collect()),
            Some(value) => {
                let found = display(value);
                return Err(Error::new(Code(34468), format!("$zip found a non-array expression in input: {found}")));
            }
        }
    }
    let lengths = arrays.iter().map(Vec::len);
    let (shortest, longest_length) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
    let length = if longest.is_truthy() { longest_length } else { shortest };
    if shortest < length {
        Evaluated::mark_all_read(defaults);
    }
    Evaluated::try_array(|writer| {
        for row in 0..length {
            check_value_size(writer.size())?;
            let mut tuple = writer.array();
            for (column, array) in arrays.iter().enumerate() {
                steps::step();
                match (array.get(row), defaults.get(column)) {
                    (Some(element), _) => push(&mut tuple, *element),
                    // A missing default omits the element.
                    (None, Some(default)) => default.value().into_iter().for_each(|default| tuple.push(default)),
                    (None, None) => tuple.push(Value::Null),
                }
            }
        }
        Ok(())
    })
}

fn truth<'v>(name: &str, code: i32, argument: &'v Evaluated<'_>) -> Result<impl Iterator<Item = bool> + use<'v>> {
    match argument.value() {
        Some(Value::Array(array)) => Ok(array.values().counted().map(Value::is_truthy)),
        _ => {
            let found = argument.type_name();
            Err(Error::new(Code(code), format!("{name}'s argument must be an array, but is {found}")))
        }
    }
}
