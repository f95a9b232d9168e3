//! Forms that bind variables: `$let`, `$map`, `$filter`, `$reduce`.

use super::arguments::named;
use super::evaluated::Evaluated;
use super::scope::{Frame, Scope, check_binding};
use super::second_engine::{SecondEngine, differs};
use super::tree::{Expr, ParseExpr, SpecialForm, SpecialOperator};
use crate::limits::check_value_size;
use document::{Doc, Value};
use error::{Code, Error, Result};
use values::integer::as_i64_exact;

pub(super) static OPERATORS: &[SpecialOperator] = &[
    SpecialOperator::form("$let", parse_let, SecondEngine::Same),
    SpecialOperator::form("$map", parse_map, SecondEngine::Unsupported),
    SpecialOperator::form(
        "$filter",
        parse_filter,
        differs(&[
            (28651, 5073201, "input to $filter must be an array"),
            (327391, 327391, "'$filter.limit' must evaluate to an integer"),
            (327392, 327392, "'$filter.limit' must be greater than 0"),
        ]),
    ),
    SpecialOperator::form("$reduce", parse_reduce, SecondEngine::Unsupported),
];

fn unrecognized(code: i32, operator: &'static str) -> impl Fn(&str) -> Error {
    move |name| Error::new(Code(code), format!("Unrecognized parameter to {operator}: {name}"))
}

fn object<'v>(operand: Value<'v>, code: i32, operator: &str) -> Result<Doc<'v>> {
    operand
        .as_document()
        .ok_or_else(|| Error::new(Code(code), format!("{operator} only supports an object as its argument")))
}

fn required<'v>(value: Option<Value<'v>>, code: i32, name: &str, operator: &str) -> Result<Value<'v>> {
    value.ok_or_else(|| Error::new(Code(code), format!("Missing '{name}' parameter to {operator}")))
}

fn parse_let(parser: &mut dyn ParseExpr, operand: Value<'_>) -> Result<SpecialForm> {
    let operand = object(operand, 16874, "$let")?;
    let [variables, body] = named(operand, ["vars", "in"], unrecognized(16875, "$let"))?;
    let variables = required(variables, 16876, "vars", "$let")?;
    let body = required(body, 16877, "in", "$let")?;
    let (Value::Document(variables) | Value::Array(variables)) = variables else {
        return Err(Error::new(Code(10065), "invalid parameter: expected an object (vars)"));
    };
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (name, value) in variables.iter() {
        check_binding(name)?;
        names.push(name.to_owned());
        values.push(parser.parse(value)?);
    }
    Ok(SpecialForm::Let { values, body: parser.parse_inside(names, body)? })
}

/// Returns the name given with `as`, or `this`.
fn element_name(given: Option<Value<'_>>) -> Result<String> {
    let name = given.map_or("this".into(), |value| value.as_name().unwrap_or_default());
    check_binding(&name)?;
    Ok(name.into_owned())
}

fn parse_map(parser: &mut dyn ParseExpr, operand: Value<'_>) -> Result<SpecialForm> {
    let operand = object(operand, 16878, "$map")?;
    let [input, name, body] = named(operand, ["input", "as", "in"], unrecognized(16879, "$map"))?;
    let input = required(input, 16880, "input", "$map")?;
    let body = required(body, 16882, "in", "$map")?;
    let input = parser.parse(input)?;
    let name = element_name(name)?;
    Ok(SpecialForm::Map { input, body: parser.parse_inside(vec![name], body)? })
}

fn parse_filter(parser: &mut dyn ParseExpr, operand: Value<'_>) -> Result<SpecialForm> {
    let operand = object(operand, 28646, "$filter")?;
    let names = ["input", "as", "cond", "limit"];
    let [input, name, condition, limit] = named(operand, names, unrecognized(28647, "$filter"))?;
    let input = required(input, 28648, "input", "$filter")?;
    let condition = required(condition, 28650, "cond", "$filter")?;
    let input = parser.parse(input)?;
    let name = element_name(name)?;
    let condition = parser.parse_inside(vec![name], condition)?;
    let limit = limit.map(|limit| parser.parse(limit)).transpose()?;
    Ok(SpecialForm::Filter { input, condition, limit })
}

fn parse_reduce(parser: &mut dyn ParseExpr, operand: Value<'_>) -> Result<SpecialForm> {
    let Value::Document(operand) = operand else {
        let found = operand.kind().alias();
        return Err(Error::new(Code(40075), format!("$reduce requires an object as an argument, found: {found}")));
    };
    let (mut input, mut initial, mut body) = (None, None, None);
    for (name, value) in operand.iter() {
        match name {
            "input" => input = Some(parser.parse(value)?),
            "initialValue" => initial = Some(parser.parse(value)?),
            "in" => body = Some(parser.parse_inside(vec!["this".to_owned(), "value".to_owned()], value)?),
            _ => return Err(Error::new(Code(40076), format!("$reduce found an unknown argument: {name}"))),
        }
    }
    let missing = |code, name| Error::new(Code(code), format!("$reduce requires '{name}' to be specified"));
    Ok(SpecialForm::Reduce {
        input: input.ok_or_else(|| missing(40077, "input"))?,
        initial: initial.ok_or_else(|| missing(40078, "initialValue"))?,
        body: body.ok_or_else(|| missing(40079, "in"))?,
    })
}

fn inside<'f>(scope: &Scope<'f>, frame: &'f Frame<'f>) -> Scope<'f> {
    Scope { root: scope.root, frame: Some(frame), collation: scope.collation }
}

pub(super) fn bind<'s>(values: &'s [Expr], body: &'s Expr, scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    let values = values.iter().map(|value| value.evaluate(scope)).collect::<Result<Vec<_>>>()?;
    let borrowed: Vec<Option<Value<'_>>> = values.iter().map(Evaluated::value).collect();
    let frame = Frame { values: &borrowed, outer: scope.frame };
    Ok(body.evaluate(&inside(scope, &frame))?.detached())
}

pub(super) fn map<'s>(input: &'s Expr, body: &'s Expr, scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    let input = input.evaluate(scope)?;
    if input.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(Value::Array(array)) = input.value() else {
        return Err(Error::new(Code(16883), format!("input to $map must be an array not {}", input.type_name())));
    };
    Evaluated::try_array(|writer| {
        for value in array.values() {
            steps::step();
            let values = [Some(value)];
            let frame = Frame { values: &values, outer: scope.frame };
            body.evaluate(&inside(scope, &frame))?.push_to(writer);
            check_value_size(writer.size())?;
        }
        Ok(())
    })
}

pub(super) fn filter<'s>(
    input: &'s Expr,
    condition: &'s Expr,
    limit: Option<&'s Expr>,
    scope: &Scope<'s>,
) -> Result<Evaluated<'s>> {
    let input = input.evaluate(scope)?;
    if input.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(Value::Array(array)) = input.value() else {
        return Err(Error::new(Code(28651), format!("input to $filter must be an array not {}", input.type_name())));
    };
    if array.is_empty() {
        return Ok(Evaluated::array(|_| ()));
    }
    let limit = match limit {
        Some(limit) => filter_limit(&limit.evaluate(scope)?)?,
        None => usize::MAX,
    };
    Evaluated::try_array(|writer| {
        for element in array.elements() {
            steps::step();
            steps::bytes(element.raw_value().len());
            let value = element.value();
            let values = [Some(value)];
            let frame = Frame { values: &values, outer: scope.frame };
            if condition.evaluate(&inside(scope, &frame))?.is_truthy() {
                writer.push_raw(element.kind, element.raw_value());
                if writer.len() >= limit {
                    break;
                }
            }
        }
        Ok(())
    })
}

pub(super) fn filter_limit(limit: &Evaluated<'_>) -> Result<usize> {
    if limit.is_nullish() {
        return Ok(usize::MAX);
    }
    let text = || values::text::display(limit.value_or_null());
    let number =
        as_i64_exact(limit.value_or_null()).and_then(|number| i32::try_from(number).ok()).ok_or_else(|| {
            Error::new(
                Code(327391),
                format!("$filter: limit must be represented as a 32-bit integral value: {}", text()),
            )
        })?;
    match usize::try_from(number) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(Error::new(Code(327392), format!("$filter: limit must be greater than 0: {}", text()))),
    }
}

pub(super) fn reduce<'s>(
    input: &'s Expr,
    initial: &'s Expr,
    body: &'s Expr,
    scope: &Scope<'s>,
) -> Result<Evaluated<'s>> {
    let input = input.evaluate(scope)?;
    if input.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(Value::Array(array)) = input.value() else {
        let found = values::text::display(input.value_or_null());
        return Err(Error::new(Code(40080), format!("$reduce requires that 'input' be an array, found: {found}")));
    };
    let mut accumulated: Evaluated<'s> = initial.evaluate(scope)?;
    for value in array.values() {
        // It is decoded and copied for each element.
        steps::bytes(accumulated.size());
        let next = {
            let values = [Some(value), accumulated.value()];
            let frame = Frame { values: &values, outer: scope.frame };
            body.evaluate(&inside(scope, &frame))?.detached()
        };
        accumulated = next;
    }
    Ok(accumulated)
}
