//! `$eq` and its siblings, `$not`, `$type` and the tests on types.

use super::evaluated::Evaluated;
use super::second_engine::{SecondEngine, checked};
use super::tree::Arity::Exactly;
use super::tree::Operator;
use document::{Collation, Value};
use error::Result;
use std::cmp::Ordering;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::collated("$cmp", Exactly(2), |_, arguments, collation| Ok((order(arguments, collation) as i32).into()))
        .never_fails()
        .second_engine(checked(missing_first, &[])),
    Operator::collated("$eq", Exactly(2), |_, arguments, collation| {
        Ok((order(arguments, collation) == Ordering::Equal).into())
    })
    .never_fails()
    .second_engine(SecondEngine::Same),
    Operator::collated("$ne", Exactly(2), |_, arguments, collation| {
        Ok((order(arguments, collation) != Ordering::Equal).into())
    })
    .never_fails()
    .second_engine(SecondEngine::Same),
    Operator::collated("$lt", Exactly(2), |_, arguments, collation| {
        Ok((order(arguments, collation) == Ordering::Less).into())
    })
    .never_fails()
    .second_engine(checked(missing_first, &[])),
    Operator::collated("$lte", Exactly(2), |_, arguments, collation| {
        Ok((order(arguments, collation) != Ordering::Greater).into())
    })
    .never_fails()
    .second_engine(checked(missing_first, &[])),
    Operator::collated("$gt", Exactly(2), |_, arguments, collation| {
        Ok((order(arguments, collation) == Ordering::Greater).into())
    })
    .never_fails()
    .second_engine(checked(missing_first, &[])),
    Operator::collated("$gte", Exactly(2), |_, arguments, collation| {
        Ok((order(arguments, collation) != Ordering::Less).into())
    })
    .never_fails()
    .second_engine(checked(missing_first, &[])),
    Operator::new("$not", Exactly(1), |_, arguments| Ok((!arguments[0].is_truthy()).into()))
        .never_fails()
        .second_engine(SecondEngine::Same),
    Operator::new("$type", Exactly(1), type_name).never_fails(),
];

/// Here a missing value sorts before MinKey.
fn missing_first<'a>(_: &str, arguments: &mut [Evaluated<'a>]) -> Result<Option<Evaluated<'a>>> {
    if arguments.iter().any(Evaluated::is_missing) {
        for argument in arguments.iter_mut().filter(|argument| argument.value() == Some(Value::MinKey)) {
            // Any other value sorts after it.
            *argument = Evaluated::Value(Value::MaxKey);
        }
    }
    Ok(None)
}

/// Compares by the total order, with a missing value below all others but MinKey.
pub(super) fn compare_evaluated(a: &Evaluated<'_>, b: &Evaluated<'_>, collation: &Collation) -> Ordering {
    match (a.value(), b.value()) {
        (Some(a), Some(b)) => collation.compare(a, b),
        (Some(Value::MinKey), None) => Ordering::Less,
        (None, Some(Value::MinKey)) => Ordering::Greater,
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

fn order(arguments: &[Evaluated<'_>], collation: &Collation) -> Ordering {
    compare_evaluated(&arguments[0], &arguments[1], collation)
}

fn type_name<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    Ok(arguments[0].type_name().into())
}
