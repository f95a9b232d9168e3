//! `$eq` and its siblings, `$not`, `$type` and the tests on types.

use super::Evaluated;
use super::functions::Arity::Exactly;
use super::functions::{Function, comparing, function};
use document::{Collation, Value};
use error::Result;
use std::cmp::Ordering;

pub(super) static FUNCTIONS: &[Function] = &[
    comparing("$cmp", Exactly(2), |_, arguments, collation| Ok((order(arguments, collation) as i32).into())),
    comparing("$eq", Exactly(2), |_, arguments, collation| Ok((order(arguments, collation) == Ordering::Equal).into())),
    comparing("$ne", Exactly(2), |_, arguments, collation| Ok((order(arguments, collation) != Ordering::Equal).into())),
    comparing("$lt", Exactly(2), |_, arguments, collation| Ok((order(arguments, collation) == Ordering::Less).into())),
    comparing("$lte", Exactly(2), |_, arguments, collation| {
        Ok((order(arguments, collation) != Ordering::Greater).into())
    }),
    comparing("$gt", Exactly(2), |_, arguments, collation| {
        Ok((order(arguments, collation) == Ordering::Greater).into())
    }),
    comparing("$gte", Exactly(2), |_, arguments, collation| Ok((order(arguments, collation) != Ordering::Less).into())),
    function("$not", Exactly(1), |_, arguments| Ok((!arguments[0].is_truthy()).into())),
    function("$type", Exactly(1), type_name),
];

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
