//! `$eq` and its siblings, `$not`, `$type` and the tests on types.

use super::Evaluated;
use super::functions::Arity::Exactly;
use super::functions::{Function, function};
use document::Value;
use document::compare::compare;
use error::Result;
use std::cmp::Ordering;

pub(super) static FUNCTIONS: &[Function] = &[
    function("$cmp", Exactly(2), |_, arguments| Ok((order(arguments) as i32).into())),
    function("$eq", Exactly(2), |_, arguments| Ok((order(arguments) == Ordering::Equal).into())),
    function("$ne", Exactly(2), |_, arguments| Ok((order(arguments) != Ordering::Equal).into())),
    function("$lt", Exactly(2), |_, arguments| Ok((order(arguments) == Ordering::Less).into())),
    function("$lte", Exactly(2), |_, arguments| Ok((order(arguments) != Ordering::Greater).into())),
    function("$gt", Exactly(2), |_, arguments| Ok((order(arguments) == Ordering::Greater).into())),
    function("$gte", Exactly(2), |_, arguments| Ok((order(arguments) != Ordering::Less).into())),
    function("$not", Exactly(1), |_, arguments| Ok((!arguments[0].is_truthy()).into())),
    function("$type", Exactly(1), type_name),
];

/// The total order, with a missing value below all others but MinKey.
pub(super) fn compare_evaluated(a: &Evaluated<'_>, b: &Evaluated<'_>) -> Ordering {
    match (a.value(), b.value()) {
        (Some(a), Some(b)) => compare(a, b),
        (Some(Value::MinKey), None) => Ordering::Less,
        (None, Some(Value::MinKey)) => Ordering::Greater,
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

fn order(arguments: &[Evaluated<'_>]) -> Ordering {
    compare_evaluated(&arguments[0], &arguments[1])
}

fn type_name<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    Ok(arguments[0].type_name().into())
}
