//! Forms that decide which of their parts to evaluate: `$and`, `$or`, `$cond`, `$ifNull`,
//! `$switch`.

use super::evaluated::Evaluated;
use super::scope::Scope;
use super::second_engine::{NO_BRANCH, SecondEngine, differs};
use super::tree::{Expr, ParseExpr, SpecialForm, SpecialOperator};
use document::{Doc, Value};
use error::{Code, Error, Result};

pub(super) static OPERATORS: &[SpecialOperator] = &[
    SpecialOperator::form(
        "$and",
        |parser, operand| Ok(SpecialForm::And(parser.parse_arguments(operand)?)),
        SecondEngine::Same,
    ),
    SpecialOperator::form(
        "$or",
        |parser, operand| Ok(SpecialForm::Or(parser.parse_arguments(operand)?)),
        SecondEngine::Same,
    ),
    SpecialOperator::form("$cond", parse_condition, SecondEngine::Same),
    SpecialOperator::form("$ifNull", parse_if_null, SecondEngine::Same),
    SpecialOperator::form("$switch", parse_switch, differs(NO_BRANCH)),
];

fn parse_condition(parser: &mut dyn ParseExpr, operand: Value<'_>) -> Result<SpecialForm> {
    if let Value::Document(named) = operand {
        return parse_named_condition(parser, named);
    }
    let arguments = parser.parse_arguments(operand)?;
    let given = arguments.len();
    let [test, then, otherwise] = <[Expr; 3]>::try_from(arguments).map_err(|_| {
        Error::new(Code(16020), format!("Expression $cond takes exactly 3 arguments. {given} were passed in."))
    })?;
    Ok(SpecialForm::Condition { test, then, otherwise })
}

fn parse_named_condition(parser: &mut dyn ParseExpr, named: Doc<'_>) -> Result<SpecialForm> {
    let [mut test, mut then, mut otherwise] = [None, None, None];
    for (name, value) in named.iter() {
        let slot = match name {
            "if" => &mut test,
            "then" => &mut then,
            "else" => &mut otherwise,
            _ => return Err(Error::new(Code(17083), format!("Unrecognized parameter to $cond: {name}"))),
        };
        *slot = Some(parser.parse(value)?);
    }
    let missing = |code, name| Error::new(Code(code), format!("Missing '{name}' parameter to $cond"));
    Ok(SpecialForm::Condition {
        test: test.ok_or_else(|| missing(17080, "if"))?,
        then: then.ok_or_else(|| missing(17081, "then"))?,
        otherwise: otherwise.ok_or_else(|| missing(17082, "else"))?,
    })
}

fn parse_if_null(parser: &mut dyn ParseExpr, operand: Value<'_>) -> Result<SpecialForm> {
    let candidates = parser.parse_arguments(operand)?;
    match candidates.len() {
        0 | 1 => {
            let given = candidates.len();
            Err(Error::new(Code(1257300), format!("$ifNull needs at least two arguments, had: {given}")))
        }
        _ => Ok(SpecialForm::IfNull(candidates)),
    }
}

fn parse_switch(parser: &mut dyn ParseExpr, operand: Value<'_>) -> Result<SpecialForm> {
    let Value::Document(named) = operand else {
        let found = operand.kind().alias();
        return Err(Error::new(Code(40060), format!("$switch requires an object as an argument, found: {found}")));
    };
    let (mut branches, mut default) = (Vec::new(), None);
    for (name, value) in named.iter() {
        match (name, value) {
            ("branches", Value::Array(array)) => {
                branches = array.values().map(|branch| parse_branch(parser, branch)).collect::<Result<_>>()?;
            }
            ("branches", value) => {
                let found = value.kind().alias();
                return Err(Error::new(
                    Code(40061),
                    format!("$switch expected an array for 'branches', found: {found}"),
                ));
            }
            ("default", value) => default = Some(parser.parse(value)?),
            _ => return Err(Error::new(Code(40067), format!("$switch found an unknown argument: {name}"))),
        }
    }
    if branches.is_empty() {
        return Err(Error::new(Code(40068), "$switch requires at least one branch"));
    }
    Ok(SpecialForm::Switch { branches, default })
}

fn parse_branch(parser: &mut dyn ParseExpr, branch: Value<'_>) -> Result<(Expr, Expr)> {
    let Value::Document(named) = branch else {
        let found = branch.kind().alias();
        return Err(Error::new(Code(40062), format!("$switch expected each branch to be an object, found: {found}")));
    };
    let (mut case, mut then) = (None, None);
    for (name, value) in named.iter() {
        match name {
            "case" => case = Some(parser.parse(value)?),
            "then" => then = Some(parser.parse(value)?),
            _ => return Err(Error::new(Code(40063), format!("$switch found an unknown argument to a branch: {name}"))),
        }
    }
    let case = case.ok_or_else(|| Error::new(Code(40064), "$switch requires each branch have a 'case' expression"))?;
    let then = then.ok_or_else(|| Error::new(Code(40065), "$switch requires each branch have a 'then' expression."))?;
    Ok((case, then))
}

pub(super) fn and<'s>(all: &'s [Expr], scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    for expression in all {
        if !expression.evaluate(scope)?.is_truthy() {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

pub(super) fn or<'s>(any: &'s [Expr], scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    for expression in any {
        if expression.evaluate(scope)?.is_truthy() {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

pub(super) fn condition<'s>(
    test: &'s Expr,
    then: &'s Expr,
    otherwise: &'s Expr,
    scope: &Scope<'s>,
) -> Result<Evaluated<'s>> {
    if test.evaluate(scope)?.is_truthy() { then.evaluate(scope) } else { otherwise.evaluate(scope) }
}

/// Returns the first candidate that is neither missing nor null, otherwise the last one.
pub(super) fn if_null<'s>(candidates: &'s [Expr], scope: &Scope<'s>) -> Result<Evaluated<'s>> {
    let mut found = Evaluated::Missing;
    for expression in candidates {
        found = expression.evaluate(scope)?;
        if !found.is_nullish() {
            break;
        }
    }
    Ok(found)
}

pub(super) fn switch<'s>(
    branches: &'s [(Expr, Expr)],
    default: Option<&'s Expr>,
    scope: &Scope<'s>,
) -> Result<Evaluated<'s>> {
    for (case, then) in branches {
        if case.evaluate(scope)?.is_truthy() {
            return then.evaluate(scope);
        }
    }
    match default {
        Some(default) => default.evaluate(scope),
        None => Err(Error::new(
            Code(40066),
            "$switch could not find a matching branch for an input, and no default was specified.",
        )),
    }
}
