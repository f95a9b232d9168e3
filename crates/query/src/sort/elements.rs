//! The order of an array's elements: `$sort` of `$push`, `sortBy` of `$sortArray`.

use document::{Collation, Value};
use error::{Error, Result};
use std::cmp::Ordering;
use values::integer::as_i64_exact;

/// The order of `$sort`, by whole elements or by their fields.
#[derive(Clone, Debug)]
pub enum ElementOrder {
    Whole { ascending: bool },
    Fields(Vec<(Box<str>, bool)>),
}

impl ElementOrder {
    /// Parses `$sort`'s argument. Fails with 2.
    pub fn parse(argument: Value<'_>) -> Result<Self> {
        match argument {
            Value::Document(spec) if spec.is_empty() => {
                Err(Error::bad_value("The sort pattern is empty when it should be a set of fields."))
            }
            Value::Document(spec) => spec
                .iter()
                .map(|(path, direction)| parse_sort_field(path, direction))
                .collect::<Result<_>>()
                .map(ElementOrder::Fields),
            number if number.kind().is_number() => match as_i64_exact(number) {
                Some(direction @ (1 | -1)) => Ok(ElementOrder::Whole { ascending: direction == 1 }),
                _ => Err(Error::bad_value("The $sort element value must be either 1 or -1")),
            },
            _ => Err(Error::bad_value(
                "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
            )),
        }
    }

    pub fn compare(&self, a: Value<'_>, b: Value<'_>, collation: &Collation) -> Ordering {
        steps::step();
        match self {
            ElementOrder::Whole { ascending } => with_direction(collation.compare(a, b), *ascending),
            ElementOrder::Fields(parts) => parts
                .iter()
                .map(|(path, ascending)| {
                    with_direction(
                        collation.compare(
                            value_to_sort_by(a, path).unwrap_or(Value::Null),
                            value_to_sort_by(b, path).unwrap_or(Value::Null),
                        ),
                        *ascending,
                    )
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal),
        }
    }
}

fn with_direction(order: Ordering, ascending: bool) -> Ordering {
    if ascending { order } else { order.reverse() }
}

fn parse_sort_field(path: &str, direction: Value<'_>) -> Result<(Box<str>, bool)> {
    if !matches!(as_i64_exact(direction), Some(1 | -1)) {
        return Err(Error::bad_value("The sort element value must be either 1 or -1"));
    }
    if path.is_empty() {
        return Err(Error::bad_value("The sort field cannot be empty"));
    }
    if path.split('.').any(str::is_empty) {
        let message = format!("The sort field is a dotted field but has an empty part: {path}");
        return Err(Error::bad_value(message));
    }
    Ok((path.into(), as_i64_exact(direction) == Some(1)))
}

/// Returns the value that an element is sorted by: the one at the path, through documents and array
/// positions. Only documents have one.
fn value_to_sort_by<'a>(element: Value<'a>, path: &str) -> Option<Value<'a>> {
    let mut names = path.split('.');
    let first = element.as_document().zip(names.next()).and_then(|(document, name)| document.get(name));
    names.try_fold(first?, |value, name| match value {
        Value::Document(document) | Value::Array(document) => document.get(name),
        _ => None,
    })
}
