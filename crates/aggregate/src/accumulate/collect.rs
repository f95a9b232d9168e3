//! Accumulators that retain many values: `$push`, `$addToSet`, `$mergeObjects`, `$firstN` and its
//! relatives.

use crate::operand::Operand;
use document::{Collation, Doc, DocWriter, Value, ValueBuf};
use error::{Code, Error, Result};
use query::{Context, Expression, Item};
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use values::integer::to_i64_exact;
use values::name_index::NameIndex;
use values::text;

/// Appends an element to an array that is not closed yet; returns the bytes by which it grew.
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

/// Closes the array.
pub(super) fn close_array(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(0);
    let length = (bytes.len() as i32).to_le_bytes();
    if let Some(prefix) = bytes.get_mut(..4) {
        prefix.copy_from_slice(&length);
    }
    bytes
}

/// A document that others are merged into, field by field.
#[derive(Debug, Default)]
pub(crate) struct MergedFields {
    fields: Vec<(Box<str>, ValueBuf)>,
    indices: NameIndex,
    bytes: usize,
}

impl MergedFields {
    /// Merges the fields of `document` over the existing ones; returns the bytes by which it grew.
    pub fn merge(&mut self, document: Doc<'_>) -> isize {
        let before = self.bytes;
        for element in document.elements() {
            steps::step();
            steps::bytes(element.raw_value().len());
            let (name, value) = (element.key(), element.value().to_owned());
            let index = self.indices.index_of(name.as_bytes(), self.fields.iter().map(|(name, _)| &**name));
            self.bytes += value.raw_value().len();
            match index.and_then(|index| self.fields.get_mut(index)) {
                Some((_, existing)) => {
                    self.bytes -= existing.raw_value().len();
                    *existing = value;
                }
                None => {
                    self.bytes += size_of::<(Box<str>, ValueBuf)>() + 2 * name.len();
                    self.indices.push(name);
                    self.fields.push((name.into(), value));
                }
            }
        }
        self.bytes as isize - before as isize
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    pub fn write(&self, writer: &mut DocWriter<'_>) {
        for (name, value) in &self.fields {
            steps::step();
            steps::bytes(value.raw_value().len());
            writer.append_raw(value.kind(), name.as_bytes(), value.raw_value());
        }
    }
}

/// The values retained so far.
#[derive(Debug)]
pub(crate) enum SelectedValues {
    /// In the order of arrival.
    List(VecDeque<ValueBuf>),
    /// By their keys; equal values in the order of arrival.
    Ranked { values: BTreeMap<(Vec<u8>, u64), ValueBuf>, arrivals: u64 },
}

impl SelectedValues {
    pub fn len(&self) -> usize {
        match self {
            SelectedValues::List(values) => values.len(),
            SelectedValues::Ranked { values, .. } => values.len(),
        }
    }

    /// Returns the values in an order in which they can be added again.
    pub fn values(&self) -> Box<dyn DoubleEndedIterator<Item = &ValueBuf> + '_> {
        match self {
            SelectedValues::List(values) => Box::new(values.iter()),
            SelectedValues::Ranked { values, .. } => Box::new(values.values()),
        }
    }
}

/// `$firstN`, `$lastN`, `$minN`, `$maxN`.
#[derive(Debug)]
pub(crate) struct SelectN {
    selection: Selection,
    input: Operand,
    limit: Expression,
    collation: Collation,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Selection {
    First,
    Last,
    /// The values that compare this way to others.
    Extreme(Ordering),
}

impl SelectN {
    pub fn parse(operator: &str, argument: Value<'_>, context: &Context) -> Result<SelectN> {
        let (selection, code) = match operator {
            "$firstN" => (Selection::First, 5787801),
            "$lastN" => (Selection::Last, 5787801),
            "$minN" => (Selection::Extreme(Ordering::Less), 5787900),
            _ => (Selection::Extreme(Ordering::Greater), 5787900),
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
        Ok(SelectN { selection, input, limit, collation: context.collation.clone() })
    }

    /// Returns the initial collection of values.
    pub fn new_values(&self) -> SelectedValues {
        match self.selection {
            Selection::First | Selection::Last => SelectedValues::List(VecDeque::new()),
            Selection::Extreme(_) => SelectedValues::Ranked { values: BTreeMap::new(), arrivals: 0 },
        }
    }

    /// Returns the values in the order of the result: of equal values the last comes first in
    /// `$maxN`.
    pub fn in_result_order<'v>(&self, selected: &'v SelectedValues) -> Box<dyn Iterator<Item = &'v ValueBuf> + 'v> {
        match self.selection {
            Selection::Extreme(Ordering::Greater) => Box::new(selected.values().rev()),
            _ => selected.values(),
        }
    }

    pub fn limit(&self, key: Value<'_>) -> Result<usize> {
        evaluate_limit(&self.limit, key)
    }

    pub fn input(&self) -> &Operand {
        &self.input
    }

    pub fn selection(&self) -> Selection {
        self.selection
    }

    pub fn add(&self, limit: usize, selected: &mut SelectedValues, document: Item<'_>) -> Result<isize> {
        let evaluated = self.input.evaluate(document)?;
        if let Selection::First = self.selection
            && selected.len() >= limit
        {
            return Ok(0);
        }
        Ok(self.add_value(limit, selected, evaluated.value_or_null().to_owned()))
    }

    /// Adds a value; returns the bytes by which memory grew.
    pub fn add_value(&self, limit: usize, selected: &mut SelectedValues, value: ValueBuf) -> isize {
        steps::step();
        match (self.selection, selected) {
            (Selection::Extreme(extreme), SelectedValues::Ranked { values, arrivals }) => {
                if matches!(value.as_value(), Value::Null | Value::Undefined) {
                    return 0;
                }
                let mut key = Vec::new();
                self.collation.encode_key(value.as_value(), &mut key);
                *arrivals += 1;
                insert_ranked(limit, values, extreme == Ordering::Greater, (key, *arrivals), value)
            }
            (selection, SelectedValues::List(values)) => {
                let bytes = memory_bytes(&value);
                values.push_back(value);
                let is_over = matches!(selection, Selection::Last) && values.len() > limit;
                let dropped = if is_over { values.pop_front() } else { None };
                bytes - dropped.as_ref().map_or(0, memory_bytes)
            }
            _ => 0,
        }
    }

    pub fn limit_expression(&self) -> &Expression {
        &self.limit
    }

    pub fn name(&self) -> &'static str {
        match self.selection {
            Selection::First => "$firstN",
            Selection::Last => "$lastN",
            Selection::Extreme(Ordering::Less) => "$minN",
            Selection::Extreme(_) => "$maxN",
        }
    }
}

/// Inserts a value by its key if it is among the first ones, or the last (`greatest`); returns the
/// bytes by which memory grew. It replaces the first of the smallest values, or the last of the
/// greatest.
pub(super) fn insert_ranked(
    limit: usize,
    values: &mut BTreeMap<(Vec<u8>, u64), ValueBuf>,
    greatest: bool,
    key: (Vec<u8>, u64),
    value: ValueBuf,
) -> isize {
    let bytes = |(key, _): &(Vec<u8>, u64), value: &ValueBuf| memory_bytes(value) + key.len() as isize;
    // About the depth of the tree.
    steps::steps(4);
    let full = values.len() >= limit;
    if full {
        let is_out = match greatest {
            true => values.first_key_value().is_none_or(|((smallest, _), _)| key.0 <= *smallest),
            false => values.last_key_value().is_none_or(|((largest, _), _)| key.0 >= *largest),
        };
        if is_out {
            return 0;
        }
    }
    let mut grown = bytes(&key, &value);
    values.insert(key, value);
    if full && let Some((key, value)) = if greatest { values.pop_first() } else { values.pop_last() } {
        grown -= bytes(&key, &value);
    }
    grown
}

fn memory_bytes(value: &ValueBuf) -> isize {
    (size_of::<ValueBuf>() + value.raw_value().len()) as isize
}

/// Returns the value of an `n`, which may depend on the group's key.
pub(super) fn evaluate_limit(limit: &Expression, key: Value<'_>) -> Result<usize> {
    let evaluated = limit.evaluate(key.as_document().unwrap_or(Doc::EMPTY))?;
    let integral = |code: i32, found: &str| {
        Error::new(Code(code), format!("Value for 'n' must be of integral type, but found {found}"))
    };
    let number = match evaluated.value() {
        None => return Err(integral(5787902, "MISSING")),
        Some(value) if !value.kind().is_number() => {
            return Err(integral(5787902, &values::text::display(value)));
        }
        Some(value) => to_i64_exact(value)?.ok_or_else(|| integral(5787903, &values::text::display(value)))?,
    };
    match usize::try_from(number) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(Error::new(Code(5787908), format!("'n' must be greater than 0, found {number}"))),
    }
}
