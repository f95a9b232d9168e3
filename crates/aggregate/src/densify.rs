//! `$densify`: adds documents in the gaps between others.
//!
//! The input is sorted by the field. Between two documents new ones are added, a step apart from
//! the first value on (or from the lower bound). Each partition has gaps of its own.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/aggregation/densify/>

mod parse;

use super::field_tree::conflict;
use super::flow::{BlockingStage, Consumer, DocumentSource};
use super::flow::{Demand, Pacer};
use document::compare::compare;
use document::path::Path;
use document::{Collation, Doc, DocBuf, DocWriter, Value, ValueBuf};
use error::{Code, Error, Result};
use hashbrown::HashMap;
use query::expression::apply;
use query::expression::date::calculate::TimeUnit;
use query::sort::{Sorted, Sorter};
use query::{Context, Expression, Item, ItemBuf, Sort};
use std::cmp::Ordering;
use std::sync::Arc;
use steps::Counted;
use values::decimal;
use values::integer::as_i64_exact;
use values::number::Number;
use values::spill::Budget;

/// Maximal number of documents that one stage generates.
const GENERATED_MAX: u64 = 500_000;

#[derive(Debug)]
pub(crate) struct Densify {
    field: Path,
    partition_by: Vec<Path>,
    /// The values at the paths of `partition`, including arrays on the way.
    partition_values: Vec<Expression>,
    step: ValueBuf,
    unit: Option<TimeUnit>,
    bounds: DensifyBounds,
    sort: Sort,
    /// The collation by which partitions are distinguished.
    collation: Collation,
}

#[derive(Debug)]
enum DensifyBounds {
    /// From the smallest to the largest value of all.
    Full,
    /// From the smallest to the largest value of the partition.
    Partition,
    /// From a value (inclusive) to another (exclusive).
    Explicit(ValueBuf, ValueBuf),
}

impl Densify {
    pub fn parse(spec: Value<'_>, context: &Context) -> Result<Densify> {
        parse::parse_stage(spec, context)
    }

    /// Returns the document's value, `None` if it has none. Fails with 5733201 and 6053600 for a
    /// value of another type.
    fn value<'d>(&self, document: Doc<'d>) -> Result<Option<Value<'d>>> {
        let value = match self.field.get(document) {
            None | Some(Value::Null | Value::Undefined) => return Ok(None),
            Some(value) => value,
        };
        let is_date = matches!(value, Value::DateTime(_));
        if !is_date && !value.kind().is_number() {
            return Err(Error::new(Code(5733201), "Densify field type must be numeric or a date"));
        }
        match (is_date, self.unit) {
            (true, None) => Err(Error::new(
                Code(6053600),
                "Encountered date densify value in collection when step does not have a date unit.",
            )),
            (false, Some(_)) => Err(Error::new(
                Code(6053600),
                "Encountered numeric densify value in collection when step has a date unit.",
            )),
            _ => Ok(Some(value)),
        }
    }

    /// Returns whether no partition has gaps to fill after this value.
    fn is_past_bounds(&self, value: Value<'_>) -> bool {
        let DensifyBounds::Explicit(lower, upper) = &self.bounds else { return false };
        let is_lower = compare(value, lower.as_value()) == Ordering::Equal;
        self.partition_by.is_empty() && !is_lower && compare(value, upper.as_value()) != Ordering::Less
    }

    /// Returns the values that identify a document's partition, and a key for them.
    fn partition_of(&self, document: Doc<'_>) -> Result<(Vec<Option<ValueBuf>>, Vec<u8>)> {
        let (mut fields, mut key) = (Vec::new(), Vec::new());
        for expression in &self.partition_values {
            steps::step();
            let evaluated = expression.evaluate(document)?;
            // A missing field is another partition than null.
            match evaluated.value() {
                None => key.push(0),
                Some(value) => self.collation.encode_key(value, &mut key),
            }
            fields.push(evaluated.value().map(Value::to_owned));
        }
        Ok((fields, key))
    }

    fn next_step(&self, value: Value<'_>) -> Result<ValueBuf> {
        let step = self.step.as_value();
        match (value, self.unit) {
            (Value::DateTime(moment), Some(unit)) => self.add_units(moment, unit, 1),
            // A double added to a decimal is rounded to 15 digits, where `$add` uses all of them.
            _ if is_decimal(value) || is_decimal(step) => match (Number::from_value(value), Number::from_value(step)) {
                (Some(value), Some(step)) => {
                    let sum = decimal::add(value.to_decimal(), step.to_decimal());
                    Ok(Value::Decimal128(sum).to_owned())
                }
                _ => apply("$add", &[value, step]),
            },
            (value, _) => apply("$add", &[value, step]),
        }
    }

    /// Returns the value moved one step back and one forward: a number gets the type that the step
    /// gives it, a day missing in the other month is lost.
    fn step_back_and_forward(&self, value: Value<'_>) -> Result<ValueBuf> {
        let earlier = match (value, self.unit) {
            (Value::DateTime(moment), Some(unit)) => self.add_units(moment, unit, -1)?,
            _ => apply("$subtract", &[value, self.step.as_value()])?,
        };
        self.next_step(earlier.as_value())
    }

    /// Returns a moment some steps away. Fails with 5166406 if it cannot be represented.
    fn add_units(&self, moment: i64, unit: TimeUnit, steps: i64) -> Result<ValueBuf> {
        let amount = as_i64_exact(self.step.as_value()).unwrap_or(1).saturating_mul(steps);
        let overflow = || Error::new(Code(5166406), "dateAdd overflowed");
        Ok(Value::DateTime(unit.add(moment, amount).ok_or_else(overflow)?).to_owned())
    }
}

fn is_decimal(value: Value<'_>) -> bool {
    matches!(value, Value::Decimal128(_))
}

/// The documents of a run, being sorted.
pub(super) struct DensifyInput {
    stage: Arc<Densify>,
    sorter: Sorter,
    memory_bytes_max: usize,
}

impl DensifyInput {
    pub fn new(stage: Arc<Densify>, budget: Budget) -> DensifyInput {
        let memory_bytes_max = budget.memory_bytes_max;
        let sorter = Sorter::new(stage.sort.clone(), None, budget);
        DensifyInput { stage, sorter, memory_bytes_max }
    }
}

impl BlockingStage for DensifyInput {
    fn push(&mut self, document: Item<'_>) -> Result<Demand> {
        self.sorter.push(document)?;
        Ok(Demand::More)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(DensifyOutput {
            stage: self.stage,
            sorted: self.sorter.finish()?,
            pending: None,
            partitions: Vec::new(),
            partition_numbers: HashMap::new(),
            memory_bytes: 0,
            memory_bytes_max: self.memory_bytes_max,
            first: None,
            last: None,
            ending: None,
            past_upper_bound: false,
            generated: 0,
        }))
    }
}

/// The state of a partition.
struct PartitionState {
    /// The values that identify it, as written to new documents.
    fields: Vec<Option<ValueBuf>>,
    /// The same values in the document before which gaps are filled: a collation takes several
    /// strings as equal.
    following_fields: Vec<Option<ValueBuf>>,
    /// The next value of its grid.
    next_value: ValueBuf,
    /// Whether no value of its grid has been passed yet.
    at_start: bool,
}

struct DensifyOutput {
    stage: Arc<Densify>,
    sorted: Sorted,
    /// The document before which gaps are being filled, with its partition.
    pending: Option<(ItemBuf, usize)>,
    partitions: Vec<PartitionState>,
    partition_numbers: HashMap<Vec<u8>, usize>,
    /// The memory of the partitions, in bytes, and its limit.
    memory_bytes: usize,
    memory_bytes_max: usize,
    first: Option<ValueBuf>,
    last: Option<ValueBuf>,
    /// After the last document: the partition that is being filled up.
    ending: Option<usize>,
    /// Whether the upper bound has been passed, so that no value is examined any more.
    past_upper_bound: bool,
    generated: u64,
}

impl DensifyOutput {
    /// Returns the number of the document's partition, which may be new. Fails with 6007200 if
    /// there are too many.
    fn partition_number(&mut self, document: Doc<'_>, value: Value<'_>) -> Result<usize> {
        let (fields, key) = self.stage.partition_of(document)?;
        if let Some(index) = self.partition_numbers.get(&key) {
            self.partitions[*index].following_fields = fields;
            return Ok(*index);
        }
        self.memory_bytes += 2 * key.len() + size_of::<PartitionState>();
        if self.memory_bytes > self.memory_bytes_max {
            let message = format!("$densify exceeded memory limit of {}", self.memory_bytes_max);
            return Err(Error::new(Code(6007200), message));
        }
        let next = match (&self.stage.bounds, &self.first) {
            (DensifyBounds::Explicit(lower, _), _) if self.stage.unit.is_some() => {
                self.stage.step_back_and_forward(lower.as_value())?
            }
            (DensifyBounds::Explicit(lower, _), _) => lower.clone(),
            (DensifyBounds::Full, Some(first)) if !self.partitions.is_empty() => {
                self.stage.step_back_and_forward(first.as_value())?
            }
            _ => value.to_owned(),
        };
        self.partitions.push(PartitionState {
            following_fields: fields.clone(),
            fields,
            next_value: next,
            at_start: true,
        });
        self.partition_numbers.insert(key, self.partitions.len() - 1);
        Ok(self.partitions.len() - 1)
    }

    /// Returns a document for the gap below a value, if one is left, and advances the grid.
    fn fill_below(&mut self, index: usize, value: Value<'_>) -> Result<Option<DocBuf>> {
        let Some(partition) = self.partitions.get_mut(index) else { return Ok(None) };
        if let DensifyBounds::Explicit(lower, _) = &self.stage.bounds
            && compare(value, lower.as_value()) == Ordering::Equal
        {
            // The last of the documents on the lower bound decides.
            partition.next_value = self.stage.next_step(value)?;
            partition.at_start = false;
            return Ok(None);
        }
        let order = compare(partition.next_value.as_value(), value);
        let in_bounds = match &self.stage.bounds {
            DensifyBounds::Explicit(_, upper) => {
                partition.at_start || compare(partition.next_value.as_value(), upper.as_value()) == Ordering::Less
            }
            _ => true,
        };
        if order == Ordering::Greater || !in_bounds {
            return Ok(None);
        }
        // Of equal values, the document's own continues: its type decides.
        let current = if order == Ordering::Equal { value } else { partition.next_value.as_value() };
        let next = self.stage.next_step(current)?;
        let value = std::mem::replace(&mut partition.next_value, next);
        partition.at_start = false;
        if order == Ordering::Equal {
            return Ok(None);
        }
        self.generate(index, value.as_value()).map(Some)
    }

    /// Returns a document after the last one, if the partition's bounds reach that far.
    fn fill_up(&mut self, index: usize) -> Result<Option<DocBuf>> {
        let Some(partition) = self.partitions.get_mut(index) else { return Ok(None) };
        let order = |limit: &ValueBuf| compare(partition.next_value.as_value(), limit.as_value());
        let goes_on = match (&self.stage.bounds, &self.last) {
            // Bounds that coincide get a document if there are no documents at all.
            (DensifyBounds::Explicit(_, upper), last) => {
                partition.at_start && last.is_none() || order(upper) == Ordering::Less
            }
            (DensifyBounds::Full, Some(last)) if !self.stage.partition_by.is_empty() => {
                order(last) != Ordering::Greater
            }
            _ => false,
        };
        if !goes_on {
            return Ok(None);
        }
        let next = self.stage.next_step(partition.next_value.as_value())?;
        let value = std::mem::replace(&mut partition.next_value, next);
        partition.at_start = false;
        self.generate(index, value.as_value()).map(Some)
    }

    fn generate(&mut self, index: usize, value: Value<'_>) -> Result<DocBuf> {
        steps::step();
        self.generated += 1;
        if self.generated > GENERATED_MAX {
            return Err(Error::new(
                Code(5897900),
                format!(
                    "Generated {} documents in $densify, which is over the limit of {GENERATED_MAX}. Increase the \
                     'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents",
                    self.generated
                ),
            ));
        }
        let stage = &self.stage;
        if stage.partition_by.iter().any(|path| conflict(path.as_str(), stage.field.as_str())) {
            return Err(Error::new(Code(5733306), "DocGenerator cannot include field that is being densified"));
        }
        let mut document = DocBuf::new();
        if let Some(partition) = self.partitions.get(index) {
            let fields = if self.ending.is_some() { &partition.fields } else { &partition.following_fields };
            for (path, field) in stage.partition_by.iter().zip(fields) {
                steps::step();
                steps::bytes(document.as_bytes().len());
                document = with_value_at(&document, path.as_str(), field.as_ref().map(ValueBuf::as_value));
            }
        }
        Ok(with_value_at(&document, stage.field.as_str(), Some(value)))
    }

    /// Takes up the next document; returns false at their end. A document without a value is passed
    /// to `take` at once.
    fn advance_input(&mut self, take: &mut dyn FnMut(Item<'_>) -> Result<Demand>) -> Result<Option<Option<Demand>>> {
        let Some(document) = self.sorted.take_next()? else { return Ok(None) };
        let stage = self.stage.clone();
        let value = if self.past_upper_bound { None } else { stage.value(document.as_doc())? };
        let Some(value) = value else {
            return take(document.as_item()).map(|demand| Some(Some(demand)));
        };
        if self.first.is_none() {
            self.first = Some(value.to_owned());
        }
        self.last = Some(value.to_owned());
        let index = self.partition_number(document.as_doc(), value)?;
        self.pending = Some((document, index));
        Ok(Some(None))
    }
}

/// Returns the document with a value inserted at a path; without a value, it inserts only the
/// documents on the path.
fn with_value_at(document: &DocBuf, path: &str, value: Option<Value<'_>>) -> DocBuf {
    fn write(document: Doc<'_>, path: &str, value: Option<Value<'_>>, writer: &mut DocWriter<'_>) {
        let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        document
            .elements()
            .counted()
            .filter(|element| element.key() != name)
            .for_each(|element| writer.append_element(element));
        match (rest, value) {
            (None, Some(value)) => writer.append(name, value),
            (None, None) => {}
            (Some(rest), value) => {
                let inner = document.get(name).and_then(Value::as_document).unwrap_or(Doc::EMPTY);
                write(inner, rest, value, &mut writer.document(name));
            }
        }
    }
    DocBuf::build(|writer| write(document.as_doc(), path, value, writer))
}

impl DocumentSource for DensifyOutput {
    fn emit_next(&mut self, take: &mut Consumer<'_>, pace: &mut Pacer<'_>) -> Result<Option<Demand>> {
        while self.ending.is_none() {
            pace()?;
            if let Some((document, index)) = self.pending.take() {
                let stage = self.stage.clone();
                let value = stage.value(document.as_doc())?.unwrap_or(Value::Null);
                if let Some(filler) = self.fill_below(index, value)? {
                    self.pending = Some((document, index));
                    return take(filler.as_doc().into()).map(Some);
                }
                self.past_upper_bound = stage.is_past_bounds(value);
                return take(document.as_item()).map(Some);
            }
            match self.advance_input(take)? {
                Some(None) => {}
                Some(Some(demand)) => return Ok(Some(demand)),
                None => {
                    self.ending = Some(0);
                    if let (DensifyBounds::Explicit(lower, _), true) = (&self.stage.bounds, self.partitions.is_empty())
                    {
                        let (fields, fields_ahead, next) = (Vec::new(), Vec::new(), lower.clone());
                        self.partitions.push(PartitionState {
                            fields,
                            following_fields: fields_ahead,
                            next_value: next,
                            at_start: true,
                        });
                    }
                }
            }
        }
        while let Some(index) = self.ending.filter(|index| *index < self.partitions.len()) {
            if let Some(filler) = self.fill_up(index)? {
                return take(filler.as_doc().into()).map(Some);
            }
            self.ending = Some(index + 1);
        }
        Ok(None)
    }
}
