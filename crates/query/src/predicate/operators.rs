//! From `{$gt: 1, $lt: 5}` to tests: the operators of a field.

use super::bits::{BitCondition, Bits};
use super::in_list::InList;
use super::level::Level;
use super::operands::{comparable, has_reference_field, is_operator_document, is_pathless, non_negative, parse_type};
use super::tree::Test;
use document::{Doc, Element, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use geo;
use steps::Counted;
use values::regex::Regex;
use values::text;

/// Parses the operators of `field`, whose name is used in messages only. An `$all` of several
/// values becomes a conjunction of its own.
pub(crate) fn parse_operators(field: &str, operators: Doc<'_>, level: Level<'_>) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    // Both of its parts are parsed at once, whatever their positions.
    let (mut pattern, mut has_pattern) = (None, None);
    for element in operators.elements() {
        steps::step();
        match (element.key(), &pattern) {
            ("$regex", Some(known)) => tests.push(Test::clone(known)),
            ("$regex", None) => {
                let parsed = parse_regex(operators)?;
                tests.push(parsed.clone());
                pattern = Some(parsed);
            }
            ("$options", _) if *has_pattern.get_or_insert_with(|| operators.element("$regex").is_some()) => {}
            _ => parse_operator(field, operators, element, level, &mut tests)?,
        }
    }
    Ok(tests)
}

/// Like [`parse_operators`], with all tests in one list.
fn parse_tests(field: &str, operators: Doc<'_>, level: Level<'_>) -> Result<Vec<Test>> {
    let mut all = Vec::new();
    for test in parse_operators(field, operators, level)? {
        match test {
            Test::And(tests) => all.extend(tests),
            test => all.push(test),
        }
    }
    Ok(all)
}

fn parse_operator(
    field: &str,
    siblings: Doc<'_>,
    element: Element<'_>,
    level: Level<'_>,
    tests: &mut Vec<Test>,
) -> Result<()> {
    let operand = element.value();
    let test = match element.key() {
        "$eq" => level.collated(Test::Equal(comparable(operand)?)),
        "$ne" if element.kind == Kind::Regex => return Err(Error::bad_value("Can't have regex as arg to $ne.")),
        "$ne" => not(level.collated(Test::Equal(comparable(operand)?))),
        "$lt" => level.collated(Test::Less(ordered(field, operand)?)),
        "$lte" => level.collated(Test::LessOrEqual(ordered(field, operand)?)),
        "$gt" => level.collated(Test::Greater(ordered(field, operand)?)),
        "$gte" => level.collated(Test::GreaterOrEqual(ordered(field, operand)?)),
        "$in" => parse_in("$in", operand, level)?,
        "$nin" => not(parse_in("$nin", operand, level)?),
        "$not" => parse_not(field, operand, level.deeper("$not")?)?,
        "$exists" if operand.is_truthy() => Test::Exists,
        "$exists" => not(Test::Exists),
        "$type" => Test::Type(parse_type(field, operand)?),
        "$mod" => parse_mod(operand)?,
        "$size" => parse_size(element)?,
        "$options" => return Err(Error::bad_value("$options needs a $regex")),
        "$elemMatch" => parse_element_match(field, operand, level)?,
        "$all" => {
            let mut wanted = parse_all(field, operand, level)?;
            match (wanted.pop(), wanted.is_empty()) {
                (Some(only), true) => only,
                (last, _) => {
                    wanted.extend(last);
                    Test::And(wanted)
                }
            }
        }
        "$bitsAllSet" => parse_bits(field, BitCondition::AllSet, element)?,
        "$bitsAllClear" => parse_bits(field, BitCondition::AllClear, element)?,
        "$bitsAnySet" => parse_bits(field, BitCondition::AnySet, element)?,
        "$bitsAnyClear" => parse_bits(field, BitCondition::AnyClear, element)?,
        "$where" => return Err(Error::bad_value("$where cannot be applied to a field")),
        "$geoWithin" | "$within" | "$geoIntersects" => Test::Geometry(Box::new(geo::parse_operator(element)?)),
        near if geo::near::is_near(near) => {
            let first = siblings.first().is_some_and(|first| first.key() == near);
            return Err(match first {
                true => level.refuse_near(field, siblings),
                false => Error::bad_value(format!("near must be first in: {}", text::document(siblings))),
            });
        }
        name => return Err(Error::bad_value(format!("unknown operator: {name}"))),
    };
    tests.push(test);
    Ok(())
}

/// Returns whether a field may have this operator; `$all` rejects documents that begin with one.
fn is_operator(name: &str) -> bool {
    matches!(
        name,
        "$eq"
            | "$ne"
            | "$lt"
            | "$lte"
            | "$gt"
            | "$gte"
            | "$in"
            | "$nin"
            | "$not"
            | "$exists"
            | "$type"
            | "$mod"
            | "$size"
            | "$regex"
            | "$options"
            | "$elemMatch"
            | "$all"
            | "$bitsAllSet"
            | "$bitsAllClear"
            | "$bitsAnySet"
            | "$bitsAnyClear"
            | "$geoWithin"
            | "$within"
            | "$geoIntersects"
            | "$near"
            | "$nearSphere"
            | "$geoNear"
    )
}

fn not(test: Test) -> Test {
    Test::Not(Box::new(test))
}

fn ordered(field: &str, operand: Value<'_>) -> Result<ValueBuf> {
    match operand {
        Value::Regex { .. } | Value::IllFormed { kind: Kind::Regex, .. } => {
            Err(Error::bad_value(format!("Can't have RegEx as arg to predicate over field '{field}'.")))
        }
        operand => comparable(operand),
    }
}

fn parse_in(operator: &str, operand: Value<'_>, level: Level<'_>) -> Result<Test> {
    let Value::Array(list) = operand else {
        return Err(Error::bad_value(format!("{operator} needs an array")));
    };
    let (mut values, mut regexes) = (Vec::new(), Vec::new());
    for value in list.values() {
        steps::step();
        match value {
            Value::Document(document) if is_operator_document(document) => {
                return Err(Error::bad_value("cannot nest $ under $in"));
            }
            Value::Regex { pattern, options } => regexes.push(Regex::new(pattern, options)?),
            Value::IllFormed { kind: Kind::Regex, .. } => return Err(ill_formed_pattern()),
            Value::Undefined => return Err(Error::bad_value("cannot compare to undefined")),
            value => values.push(ValueBuf::from(value)),
        }
    }
    let list = InList::new(values, regexes, level.context.collation.clone());
    Ok(match (list.values(), list.regexes()) {
        ([only], []) => level.collated(Test::Equal(only.clone())),
        ([], [only]) => Test::Regex(only.clone()),
        _ => level.collated(Test::In(list)),
    })
}

fn parse_not(field: &str, operand: Value<'_>, level: Level<'_>) -> Result<Test> {
    match operand {
        Value::Regex { pattern, options } => Ok(not(parse_regex_value(pattern, options)?)),
        Value::IllFormed { kind: Kind::Regex, .. } => Err(ill_formed_pattern()),
        Value::Document(operators) if operators.is_empty() => Err(Error::bad_value("$not cannot be empty")),
        Value::Document(operators) => {
            let mut tests = parse_tests(field, operators, level)?;
            Ok(match (tests.pop(), tests.is_empty()) {
                (Some(only), true) => not(only),
                (last, _) => {
                    tests.extend(last);
                    not(Test::And(tests))
                }
            })
        }
        _ => Err(Error::bad_value("$not needs a regex or a document")),
    }
}

fn parse_mod(operand: Value<'_>) -> Result<Test> {
    let malformed = |what: &str| Error::bad_value(format!("malformed mod, {what}"));
    let Value::Array(list) = operand else { return Err(malformed("needs to be an array")) };
    let numbers: Vec<Value<'_>> = list.values().take(3).collect();
    let [divisor, remainder] = numbers[..] else {
        return Err(malformed(if numbers.len() < 2 { "not enough elements" } else { "too many elements" }));
    };
    for (name, value) in [("divisor", divisor), ("remainder", remainder)] {
        if !value.kind().is_number() {
            return Err(malformed(&format!("{name} not a number")));
        }
    }
    let whole = |name: &str, value: Value<'_>| {
        values::integer::as_i64_truncated(value).ok_or_else(|| {
            let finite = match value {
                Value::Double(number) => number.is_finite(),
                Value::Decimal128(number) => values::decimal::is_finite(number),
                _ => true,
            };
            let cause = if finite {
                "Out of bounds coercing to integral value"
            } else {
                "Unable to coerce NaN/Inf to integral type"
            };
            malformed(&format!("{name} value is invalid :: caused by :: {cause}"))
        })
    };
    let (divisor, remainder) = (whole("divisor", divisor)?, whole("remainder", remainder)?);
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    Ok(Test::Mod { divisor, remainder })
}

fn parse_size(element: Element<'_>) -> Result<Test> {
    non_negative(element)
        .and_then(|size| match i32::try_from(size) {
            Ok(_) => Ok(Test::Size(size)),
            Err(_) => Err(format!("Cannot represent {} in an int", text::element("$size", element.value()))),
        })
        .map_err(|complaint| Error::bad_value(format!("Failed to parse $size. {complaint}")))
}

fn parse_bits(field: &str, condition: BitCondition, element: Element<'_>) -> Result<Test> {
    let positions = match element.value() {
        Value::Array(list) => list.elements().counted().map(parse_bit_position).collect::<Result<_>>()?,
        Value::Binary { bytes, .. } => (0..bytes.len() as u32 * 8)
            .counted()
            .filter(|position| bytes[*position as usize / 8] & (1 << (position % 8)) != 0)
            .collect(),
        value if value.kind().is_number() => {
            let mask = non_negative(element).map_err(Error::failed_to_parse)?;
            (0..63).filter(|position| mask & (1 << position) != 0).collect()
        }
        value => {
            let found = text::element(element.key(), value);
            return Err(Error::bad_value(format!(
                "{field} takes an Array, a number, or a BinData but received: {found}"
            )));
        }
    };
    Ok(Test::Bits(Bits::new(condition, positions)))
}

fn parse_bit_position(element: Element<'_>) -> Result<u32> {
    let failed = |complaint: String| Error::bad_value(format!("Failed to parse bit position. {complaint}"));
    let position = non_negative(element).map_err(failed)?;
    i32::try_from(position)
        .map(|position| position as u32)
        .map_err(|_| failed(format!("Cannot represent {} in an int", text::element(element.key(), element.value()))))
}

/// Returns the error for a pattern that is not UTF-8.
pub(super) fn ill_formed_pattern() -> Error {
    Error::new(Code(51091), "Regular expression is invalid: invalid UTF-8 string")
}

pub(crate) fn parse_regex_value(pattern: &str, options: &str) -> Result<Test> {
    Ok(Test::Regex(Regex::new(pattern, options)?))
}

/// Parses `$regex` and `$options`, in either order.
fn parse_regex(siblings: Doc<'_>) -> Result<Test> {
    let (mut pattern, mut options, mut options_in_regex) = ("", "", false);
    for (name, value) in siblings.iter() {
        steps::step();
        match (name, value) {
            ("$regex", Value::String(text)) => pattern = text,
            ("$regex", Value::Regex { pattern: text, options: inner }) => {
                pattern = text;
                options_in_regex = !inner.is_empty();
                if options_in_regex {
                    options = inner;
                }
            }
            ("$regex" | "$options", Value::IllFormed { kind: Kind::Regex | Kind::String, .. }) => {
                return Err(ill_formed_pattern());
            }
            ("$regex", _) => return Err(Error::bad_value("$regex has to be a string")),
            ("$options", Value::String(_)) if options_in_regex => {}
            ("$options", Value::String(text)) => options = text,
            ("$options", _) => return Err(Error::bad_value("$options has to be a string")),
            _ => {}
        }
    }
    if options_in_regex && siblings.element("$options").is_some() {
        return Err(Error::new(Code(51075), "options set in both $regex and $options"));
    }
    parse_regex_value(pattern, options)
}

fn parse_element_match(field: &str, operand: Value<'_>, level: Level<'_>) -> Result<Test> {
    let Value::Document(filter) = operand else { return Err(Error::bad_value("$elemMatch needs an Object")) };
    let level = level.inside_element()?;
    let first = filter.first().map_or("", Element::key);
    if first.starts_with('$') && !is_pathless(&first[1..]) && !has_reference_field(filter) {
        return Ok(Test::ElementSatisfies(parse_tests(field, filter, level)?));
    }
    Ok(Test::ElementMatches(Box::new(level.parse_filter(filter)?)))
}

fn parse_all(field: &str, operand: Value<'_>, level: Level<'_>) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    let Value::Array(list) = operand else { return Err(Error::bad_value("$all needs an array")) };
    let first_name = |value: Value<'_>| value.as_document().and_then(Doc::first).map(|first| first.key().to_owned());
    let is_element_match = |value: Value<'_>| first_name(value).as_deref() == Some("$elemMatch");
    let Some(first) = list.values().next() else {
        return Ok(vec![Test::Never]);
    };
    if is_element_match(first) {
        for value in list.values() {
            steps::step();
            if !is_element_match(value) {
                return Err(Error::bad_value("$all/$elemMatch has to be consistent"));
            }
            let operand = value.as_document().and_then(Doc::first).map_or(Value::Null, Element::value);
            tests.push(parse_element_match(field, operand, level)?);
        }
        return Ok(tests);
    }
    for value in list.values() {
        steps::step();
        tests.push(match value {
            Value::Regex { pattern, options } => parse_regex_value(pattern, options)?,
            Value::IllFormed { kind: Kind::Regex, .. } => return Err(ill_formed_pattern()),
            value if first_name(value).is_some_and(|name| name != "$not" && is_operator(&name)) => {
                return Err(Error::bad_value("no $ expressions in $all"));
            }
            value => level.collated(Test::Equal(comparable(value)?)),
        });
    }
    Ok(tests)
}
