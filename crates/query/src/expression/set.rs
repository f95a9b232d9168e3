//! Arrays as sets: order and repetition do not count.

use super::Evaluated;
use super::functions::Arity::{Any, Exactly};
use super::functions::{Function, comparing};
use document::{Collation, Doc, Value};
use error::{Code, Error, Result};

pub(super) static FUNCTIONS: &[Function] = &[
    Function { stepwise: true, ..comparing("$setUnion", Any, union) },
    Function { stepwise: true, ..comparing("$setIntersection", Any, intersection) },
    comparing("$setDifference", Exactly(2), difference),
    comparing("$setIsSubset", Exactly(2), is_subset),
    comparing("$setEquals", Any, equals),
];

/// Distinct values in the order of a collation.
struct Set<'v, 'c> {
    values: Vec<Value<'v>>,
    collation: &'c Collation,
}

impl<'v, 'c> Set<'v, 'c> {
    fn of(array: Doc<'v>, collation: &'c Collation) -> Self {
        Self::of_values(array.values().collect(), collation)
    }

    fn of_values(mut values: Vec<Value<'v>>, collation: &'c Collation) -> Self {
        values.sort_by(|a, b| collation.compare(*a, *b));
        values.dedup_by(|a, b| collation.equal(*a, *b));
        Set { values, collation }
    }

    fn contains(&self, value: Value<'_>) -> bool {
        self.values.binary_search_by(|candidate| self.collation.compare(*candidate, value)).is_ok()
    }

    fn is_subset(&self, other: &Set<'_, '_>) -> bool {
        self.values.iter().all(|value| other.contains(*value))
    }
}

fn to_array<'a, 'v>(values: impl IntoIterator<Item = Value<'v>>) -> Evaluated<'a> {
    Evaluated::array(|writer| values.into_iter().for_each(|value| writer.push(value)))
}

/// The arguments as arrays; `None` when one is null.
fn arrays<'v>(name: &str, code: i32, arguments: &'v [Evaluated<'_>]) -> Result<Option<Vec<Doc<'v>>>> {
    let mut arrays = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument.value() {
            None | Some(Value::Null | Value::Undefined) => return Ok(None),
            Some(Value::Array(array)) => arrays.push(array),
            Some(_) => {
                let found = argument.type_name();
                let message = format!("All operands of {name} must be arrays. One argument is of type: {found}");
                return Err(Error::new(Code(code), message));
            }
        }
    }
    Ok(Some(arrays))
}

fn union<'a>(name: &'static str, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
    let Some(arrays) = arrays(name, 17043, arguments)? else { return Ok(Evaluated::NULL) };
    Ok(to_array(Set::of_values(arrays.into_iter().flat_map(Doc::values).collect(), collation).values))
}

fn intersection<'a>(
    name: &'static str,
    arguments: &mut [Evaluated<'a>],
    collation: &Collation,
) -> Result<Evaluated<'a>> {
    let Some(arrays) = arrays(name, 17047, arguments)? else { return Ok(Evaluated::NULL) };
    let mut sets = arrays.into_iter().map(|array| Set::of(array, collation));
    let mut common = sets.next().map_or_else(Vec::new, |set| set.values);
    for set in sets {
        common.retain(|value| set.contains(*value));
    }
    Ok(to_array(common))
}

fn operand<'v>(name: &str, argument: &'v Evaluated<'_>, code: i32, position: &str) -> Result<Doc<'v>> {
    match argument.value() {
        Some(Value::Array(array)) => Ok(array),
        _ => {
            let found = argument.type_name();
            let message = format!("both operands of {name} must be arrays. {position} argument is of type: {found}");
            Err(Error::new(Code(code), message))
        }
    }
}

fn difference<'a>(name: &'static str, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
    if arguments.iter().any(Evaluated::is_nullish) {
        return Ok(Evaluated::NULL);
    }
    let (from, without) =
        (operand(name, &arguments[0], 17048, "First")?, operand(name, &arguments[1], 17049, "Second")?);
    let without = Set::of(without, collation);
    let mut kept: Vec<Value<'_>> = Vec::new();
    for value in from.values() {
        if !without.contains(value) && !kept.iter().any(|other| collation.equal(*other, value)) {
            kept.push(value);
        }
    }
    Ok(to_array(kept))
}

fn is_subset<'a>(name: &'static str, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
    let part = operand(name, &arguments[0], 17046, "First")?;
    let whole = operand(name, &arguments[1], 17042, "Second")?;
    Ok(Set::of(part, collation).is_subset(&Set::of(whole, collation)).into())
}

fn equals<'a>(name: &'static str, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
    if arguments.len() < 2 {
        let given = arguments.len();
        return Err(Error::new(Code(17045), format!("$setEquals needs at least two arguments had: {given}")));
    }
    let mut sets = Vec::with_capacity(arguments.len());
    for (position, argument) in arguments.iter().enumerate() {
        match argument.value() {
            Some(Value::Array(array)) => sets.push(Set::of(array, collation)),
            _ => {
                let (position, found) = (position + 1, argument.type_name());
                let message =
                    format!("All operands of {name} must be arrays. {position}-th argument is of type: {found}");
                return Err(Error::new(Code(17044), message));
            }
        }
    }
    let (first, others) = match sets.split_first() {
        Some(split) => split,
        None => return Ok(true.into()),
    };
    Ok(others.iter().all(|other| first.values.len() == other.values.len() && first.is_subset(other)).into())
}
