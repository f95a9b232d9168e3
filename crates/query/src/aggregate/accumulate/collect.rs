//! Accumulators that keep many values: `$push`, `$addToSet`, `$mergeObjects`, `$firstN` and its relatives.

use crate::aggregate::operand::Operand;
use crate::predicate::number::coerced;
use crate::{Context, Expression, Item, text};
use document::{Collation, Doc, DocBuf, Value, ValueBuf};
use error::{Code, Error, Result};
use hashbrown::{HashMap, HashSet};
use std::cmp::Ordering;
use std::collections::VecDeque;
use steps::Counted;

/// Appends an element to an array that is not closed yet; gives the bytes by which it grew.
pub(super) fn push(value: Value<'_>, bytes: &mut Vec<u8>, count: &mut u32) -> isize {
    let before = bytes.len();
    steps::step();
    bytes.push(value.kind() as u8);
    bytes.extend_from_slice(itoa::Buffer::new().format(*count).as_bytes());
    bytes.push(0);
    value.write_raw(bytes);
    steps::bytes(bytes.len() - before);
    *count += 1;
    (bytes.len() - before) as isize
}

/// The array as it stands in a document.
pub(super) fn closed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(0);
    let length = (bytes.len() as i32).to_le_bytes();
    if let Some(prefix) = bytes.get_mut(..4) {
        prefix.copy_from_slice(&length);
    }
    bytes
}

/// Puts the fields of `document` over those of `merged`.
pub(super) fn merge(merged: &mut DocBuf, document: Doc<'_>) -> isize {
    let before = merged.as_bytes().len();
    let old = std::mem::take(merged);
    *merged = DocBuf::build(|writer| {
        let mut later = HashMap::new();
        for element in document.elements().counted() {
            later.entry(element.key_bytes()).or_insert(element);
        }
        let mut known = HashSet::new();
        for element in old.as_doc().elements() {
            steps::step();
            known.insert(element.key_bytes());
            writer.append_element(later.get(element.key_bytes()).copied().unwrap_or(element));
        }
        let new = document.elements().filter(|element| !known.contains(element.key_bytes()));
        new.for_each(|element| writer.append_element(element));
    });
    merged.as_bytes().len() as isize - before as isize
}

/// `$firstN`, `$lastN`, `$minN`, `$maxN`.
#[derive(Debug)]
pub(crate) struct Several {
    which: Which,
    input: Operand,
    limit: Expression,
    collation: Collation,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    First,
    Last,
    /// The values that compare this way to others.
    Extreme(Ordering),
}

impl Several {
    pub fn parse(operator: &str, argument: Value<'_>, context: &Context) -> Result<Several> {
        let (which, code) = match operator {
            "$firstN" => (Which::First, 5787801),
            "$lastN" => (Which::Last, 5787801),
            "$minN" => (Which::Extreme(Ordering::Less), 5787900),
            _ => (Which::Extreme(Ordering::Greater), 5787900),
        };
        let Value::Document(spec) = argument else {
            let found = text::element(operator, argument);
            return Err(Error::new(Code(code), format!("specification must be an object; found {found}")));
        };
        let (mut input, mut limit) = (None, None);
        for (name, value) in spec.iter() {
            match name {
                "input" => input = Some(Operand::parse(value, context)?),
                "n" => limit = Some(Expression::parse(value, context)?),
                _ => return Err(Error::new(Code(5787901), format!("Unknown argument for 'n' operator: {name}"))),
            }
        }
        let limit = limit.ok_or_else(|| Error::new(Code(5787906), "Missing value for 'n'"))?;
        let input = input.ok_or_else(|| Error::new(Code(5787907), "Missing value for 'input'"))?;
        Ok(Several { which, input, limit, collation: context.collation.clone() })
    }

    /// The values as they are given out: of equal ones the last comes first in `$maxN`.
    pub fn in_order<'v>(&self, values: &'v VecDeque<ValueBuf>) -> impl Iterator<Item = &'v ValueBuf> {
        let mut ordered: Vec<&ValueBuf> = values.iter().collect();
        if let Which::Extreme(Ordering::Greater) = self.which {
            ordered.reverse();
            ordered.sort_by(|a, b| {
                steps::step();
                self.collation.compare(b.as_value(), a.as_value())
            });
        }
        ordered.into_iter()
    }

    pub fn limit(&self, key: Value<'_>) -> Result<usize> {
        evaluate_limit(&self.limit, key)
    }

    pub fn input(&self) -> &Operand {
        &self.input
    }

    pub fn which(&self) -> Which {
        self.which
    }

    pub fn add(&self, limit: usize, values: &mut VecDeque<ValueBuf>, document: Item<'_>) -> Result<isize> {
        let evaluated = self.input.evaluate(document)?;
        if let Which::First = self.which
            && values.len() >= limit
        {
            return Ok(0);
        }
        Ok(self.add_value(limit, values, evaluated.value_or_null().to_owned()))
    }

    /// Takes a value in; gives the bytes by which memory grew.
    pub fn add_value(&self, limit: usize, values: &mut VecDeque<ValueBuf>, value: ValueBuf) -> isize {
        let bytes = memory_bytes(&value);
        let dropped = match self.which {
            Which::First => {
                values.push_back(value);
                None
            }
            Which::Last => {
                values.push_back(value);
                if values.len() > limit { values.pop_front() } else { None }
            }
            Which::Extreme(_) if matches!(value.as_value(), Value::Null | Value::Undefined) => return 0,
            Which::Extreme(wanted) => {
                let compare = |known: &ValueBuf| {
                    steps::step();
                    self.collation.compare(value.as_value(), known.as_value())
                };
                let place = values.partition_point(|known| compare(known) != wanted);
                if place >= limit {
                    return 0;
                }
                let dropped = if values.len() < limit {
                    None
                } else if wanted == Ordering::Greater {
                    // Of equal ones the first goes.
                    let last = values.back().map(ValueBuf::as_value).unwrap_or(Value::Null);
                    let is_before = |known: &ValueBuf| self.collation.compare(known.as_value(), last).is_ne();
                    values.remove(values.partition_point(is_before))
                } else {
                    values.pop_back()
                };
                values.insert(place, value);
                dropped
            }
        };
        bytes - dropped.as_ref().map_or(0, memory_bytes)
    }

    pub fn limit_expression(&self) -> &Expression {
        &self.limit
    }

    pub fn name(&self) -> &'static str {
        match self.which {
            Which::First => "$firstN",
            Which::Last => "$lastN",
            Which::Extreme(Ordering::Less) => "$minN",
            Which::Extreme(_) => "$maxN",
        }
    }
}

fn memory_bytes(value: &ValueBuf) -> isize {
    (size_of::<ValueBuf>() + value.raw_value().len()) as isize
}

/// The value of an `n`, which may depend on the group's key.
pub(super) fn evaluate_limit(limit: &Expression, key: Value<'_>) -> Result<usize> {
    let evaluated = limit.evaluate(key.as_document().unwrap_or(Doc::EMPTY))?;
    let integral = |code: i32, found: &str| {
        Error::new(Code(code), format!("Value for 'n' must be of integral type, but found {found}"))
    };
    let number = match evaluated.value() {
        None => return Err(integral(5787902, "MISSING")),
        Some(value) if !value.kind().is_number() => {
            return Err(integral(5787902, &crate::expression::display(value)));
        }
        Some(value) => coerced(value)?.ok_or_else(|| integral(5787903, &crate::expression::display(value)))?,
    };
    match usize::try_from(number) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(Error::new(Code(5787908), format!("'n' must be greater than 0, found {number}"))),
    }
}
