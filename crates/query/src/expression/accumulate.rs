//! `$sum`, `$avg`, `$min`, `$max` and the standard deviations over their arguments, or over a
//! single array argument.

use super::evaluated::Evaluated;
use super::tree::Arity::Any;
use super::tree::{Algebra, Operator};
use document::{Collation, Value};
use std::cmp::Ordering;
use steps::Counted;
use values::number::{Number, Sum};

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new("$sum", Any, |_, arguments| Ok(sum(&values(arguments)).0.total().to_value().into()))
        .algebra(Algebra::Commutative)
        .takes_one_array(),
    Operator::new("$avg", Any, |_, arguments| {
        let (sum, count) = sum(&values(arguments));
        Ok(if count == 0 { Evaluated::NULL } else { sum.average(count).to_value().into() })
    }),
    Operator::collated("$min", Any, |_, arguments, collation| Ok(extreme(arguments, Ordering::Less, collation)))
        .algebra(Algebra::Commutative)
        .takes_one_array(),
    Operator::collated("$max", Any, |_, arguments, collation| Ok(extreme(arguments, Ordering::Greater, collation)))
        .algebra(Algebra::Commutative)
        .takes_one_array(),
    Operator::new("$stdDevPop", Any, |_, arguments| Ok(deviation(&values(arguments), 0))),
    Operator::new("$stdDevSamp", Any, |_, arguments| Ok(deviation(&values(arguments), 1))),
];

fn values<'v>(arguments: &'v [Evaluated<'_>]) -> Vec<Value<'v>> {
    match arguments {
        [only] => match only.value() {
            Some(Value::Array(array)) => array.values().counted().collect(),
            value => value.into_iter().collect(),
        },
        all => all.iter().filter_map(Evaluated::value).collect(),
    }
}

fn sum(values: &[Value<'_>]) -> (Sum, u64) {
    let (mut sum, mut count) = (Sum::default(), 0);
    for number in values.iter().counted().filter_map(|value| Number::from_value(*value)) {
        sum.add(number);
        count += 1;
    }
    (sum, count)
}

fn extreme<'a>(arguments: &[Evaluated<'_>], wanted: Ordering, collation: &Collation) -> Evaluated<'a> {
    let values = values(arguments);
    let mut best: Option<Value<'_>> = None;
    for value in values.into_iter().counted().filter(|value| !matches!(value, Value::Null | Value::Undefined)) {
        if best.is_none_or(|best| collation.compare(value, best) == wanted) {
            best = Some(value);
        }
    }
    best.map_or(Evaluated::NULL, |value| Evaluated::Value(value).detached())
}

/// Returns the standard deviation by Welford's method; `excess` is 1 for a sample.
fn deviation<'a>(values: &[Value<'_>], excess: u64) -> Evaluated<'a> {
    let (mut count, mut mean, mut squares) = (0_u64, 0.0, 0.0);
    for number in values.iter().counted().filter_map(|value| Number::from_value(*value)) {
        count += 1;
        let difference = number.to_f64() - mean;
        mean += difference / count as f64;
        squares += difference * (number.to_f64() - mean);
    }
    if count <= excess { Evaluated::NULL } else { f64::sqrt(squares / (count - excess) as f64).into() }
}
