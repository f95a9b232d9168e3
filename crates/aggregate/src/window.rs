//! `$setWindowFields`: fields computed from a document's neighbors.
//!
//! The input is sorted by partition and then by the stage's sort. Each partition is held while its
//! documents are returned, on disk if memory does not suffice.
//!
//! In reading order: this file (the stage and its run), `parse` (output fields), `partition` (its
//! documents), `bounds` (the neighbors in a window), `run` (evaluation of the functions),
//! `removable` and `ordered` (their state while windows move), `fill` (gaps between known values).
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/aggregation/setWindowFields/>

mod bounds;
mod fill;
mod ordered;
mod parse;
mod partition;
mod removable;
mod run;

use super::field_tree::FieldTree;
use super::flow::{BlockingStage, Consumer, DocumentSource};
use super::flow::{Demand, Pacer};
pub(super) use bounds::parse_unit;
use document::{Collation, Doc, DocWriter, Value};
use error::{Code, Error, Result};
use parse::WindowFunction;
use partition::WindowPartition;
use query::sort::{SortPart, Sorted, Sorter};
use query::{Context, Expression, Item, ItemBuf, Sort};
use run::{FunctionState, RowResult};
use std::sync::Arc;
use steps::Counted;
use values::spill::Budget;

#[derive(Debug)]
pub(crate) struct SetWindowFields {
    partition: Option<Expression>,
    /// The order of the input: by the field of the partitions first, if they are distinguished by a
    /// field.
    order: Sort,
    /// Whether the order begins with the field of the partitions.
    order_has_partition: bool,
    sort: Option<Sort>,
    collation: Collation,
    /// The field that is sorted by, if there is exactly one.
    sort_by: Option<Expression>,
    functions: Vec<WindowFunction>,
    /// The paths of the functions' values, by their index.
    fields: FieldTree<usize>,
}

impl SetWindowFields {
    pub fn parse(spec: Value<'_>, context: &Context) -> Result<SetWindowFields> {
        parse::parse_stage(spec, context)
    }

    /// Returns whether the stage sorts its input by fields that it already has.
    pub fn sorts_input(&self) -> bool {
        match &self.partition {
            Some(_) => self.order_has_partition,
            None => self.sort.as_ref().is_some_and(|sort| !sort.is_empty()),
        }
    }

    /// Writes the value that precedes the sort key: that of the partition, unless it is a field. An
    /// array is sorted by its smallest element; fails with 2 for parallel arrays.
    fn write_sort_prefix(&self, document: Item<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Some(partition) = self.partition.as_ref().filter(|_| !self.order_has_partition) else { return Ok(()) };
        let evaluated = partition.evaluate(document)?;
        let value = match evaluated.value_or_null() {
            Value::Array(array) => {
                let has_array = |part: &SortPart| crosses_array(document.document, part.path.as_str());
                if self.order.parts().iter().any(has_array) {
                    return Err(Error::bad_value("cannot sort with keys that are parallel arrays"));
                }
                let compare = |a: &Value<'_>, b: &Value<'_>| self.collation.compare(*a, *b);
                array.values().counted().min_by(compare).unwrap_or(Value::Undefined)
            }
            value => value,
        };
        self.collation.encode_key(value, out);
        Ok(())
    }

    /// Writes the value that the documents of a partition share. Fails with 14 for an array.
    fn write_partition(&self, document: Item<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Some(partition) = &self.partition else { return Ok(()) };
        let evaluated = partition.evaluate(document)?;
        match evaluated.value_or_null() {
            Value::Array(_) => Err(array_partition()),
            value => {
                self.collation.encode_key(value, out);
                Ok(())
            }
        }
    }
}

/// Returns whether the path crosses an array.
fn crosses_array(document: Doc<'_>, path: &str) -> bool {
    let mut value = Value::Document(document);
    for name in path.split('.') {
        let Value::Document(inner) = value else { break };
        let Some(next) = inner.get(name) else { return false };
        value = next;
    }
    matches!(value, Value::Array(_))
}

fn array_partition() -> Error {
    Error::type_mismatch("An expression used to partition cannot evaluate to value of type array")
}

/// The documents of a run, being sorted.
pub(super) struct WindowInput {
    stage: Arc<SetWindowFields>,
    sorter: Sorter,
    budget: Budget,
}

impl WindowInput {
    pub fn new(stage: Arc<SetWindowFields>, budget: Budget) -> WindowInput {
        let sorter = Sorter::new(stage.order.clone(), None, budget.clone());
        WindowInput { stage, sorter, budget }
    }
}

impl BlockingStage for WindowInput {
    fn push(&mut self, document: Item<'_>) -> Result<Demand> {
        let stage = &self.stage;
        self.sorter.push_with_prefix(document, |key| stage.write_sort_prefix(document, key))?;
        Ok(Demand::More)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn DocumentSource>> {
        let runs = self.stage.functions.iter().map(|_| FunctionState::Idle).collect();
        Ok(Box::new(WindowOutput {
            sorted: self.sorter.finish()?,
            next_document: None,
            failure: None,
            partition: WindowPartition::default(),
            row: 0,
            runs,
            scratch: Vec::new(),
            stage: self.stage,
            budget: self.budget,
        }))
    }
}

/// A partition whose documents are being returned.
struct WindowOutput {
    stage: Arc<SetWindowFields>,
    budget: Budget,
    sorted: Sorted,
    /// The first document of the next partition, with its partition.
    next_document: Option<(Vec<u8>, ItemBuf)>,
    /// The error of the document after those of the partition, reported when that document is
    /// requested.
    failure: Option<Error>,
    partition: WindowPartition,
    row: usize,
    runs: Vec<FunctionState>,
    scratch: Vec<u8>,
}

impl WindowOutput {
    /// Reads the next partition; returns false if there is none.
    fn load(&mut self, pace: &mut Pacer<'_>) -> Result<bool> {
        self.partition.clear();
        self.row = 0;
        let Some((current, first)) = self.take_ahead()? else { return Ok(false) };
        self.partition.push(first, &self.budget)?;
        loop {
            steps::step();
            match self.take_ahead() {
                Ok(Some((partition, document))) if partition == current => {
                    self.partition.push(document, &self.budget)?;
                    pace()?;
                }
                Ok(next) => {
                    self.next_document = next;
                    break;
                }
                Err(failure) => {
                    self.failure = Some(failure);
                    break;
                }
            }
        }
        self.partition.complete()?;
        for (run, function) in self.runs.iter_mut().zip(&self.stage.functions) {
            *run = FunctionState::begin(function, &self.stage, &self.partition, run)?;
        }
        Ok(true)
    }

    fn take_ahead(&mut self) -> Result<Option<(Vec<u8>, ItemBuf)>> {
        if let Some(next) = self.next_document.take() {
            return Ok(Some(next));
        }
        let Some(document) = self.sorted.take_next()? else { return Ok(None) };
        let mut partition = Vec::new();
        self.stage.write_partition(document.as_item(), &mut partition)?;
        Ok(Some((partition, document)))
    }
}

/// Returns the error for functions whose state alone exceeds the limit.
fn functions_too_large(bytes: usize, budget: &Budget) -> Error {
    let max = budget.memory_bytes_max;
    let message =
        format!("Exceeded memory limit in DocumentSourceSetWindowFields, used {bytes} bytes but max allowed is {max}");
    Error::new(Code(5414201), message)
}

impl DocumentSource for WindowOutput {
    fn emit_next(&mut self, take: &mut Consumer<'_>, pace: &mut Pacer<'_>) -> Result<Option<Demand>> {
        if self.row == self.partition.len() && !self.load(pace)? {
            return Ok(None);
        }
        let (row, stage) = (self.row, &self.stage);
        let is_past = |last: Option<usize>| last.is_none_or(|last| last >= self.partition.len());
        let mut values = Vec::with_capacity(self.runs.len());
        let mut bytes = 0;
        for (run, function) in self.runs.iter_mut().zip(&stage.functions) {
            steps::step();
            // Errors of the documents added before the failure are reported first.
            values.push(run.next(function, stage, &self.partition, row)?);
            if is_past(function.last_row_needed(row))
                && let Some(failure) = self.failure.take()
            {
                return Err(failure);
            }
            bytes += run.memory_bytes();
        }
        // The next document is read before this one is returned.
        if is_past(Some(row + 1))
            && let Some(failure) = self.failure.take()
        {
            return Err(failure);
        }
        if bytes > self.budget.memory_bytes_max {
            return Err(functions_too_large(bytes, &self.budget));
        }
        self.scratch.clear();
        let mut writer = DocWriter::begin(&mut self.scratch);
        let lent = self.partition.get(row)?;
        let row = lent.as_item();
        stage.fields.apply(row.document, &mut writer, &mut |index, name, writer| {
            match (values.get(*index), self.runs.get(*index), stage.functions.get(*index)) {
                (Some(RowResult::Value(Some(value))), ..) => writer.append(name, value),
                (Some(RowResult::Held), Some(run), Some(function)) => run.write_held(function, name, writer),
                _ => {}
            }
            Ok(())
        })?;
        drop(writer);
        self.row += 1;
        take(row.with(Doc::from_bytes(&self.scratch).unwrap_or(Doc::EMPTY))).map(Some)
    }
}
