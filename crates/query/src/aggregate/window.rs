//! `$setWindowFields`: fields computed from a document's neighbors.
//!
//! The input is sorted by partition and then as the stage says; each partition is held while its documents are
//! given out, on disk where memory does not suffice. In reading
//! order: this file (the stage and its run), `parse` (output fields), `partition` (its documents), `bounds` (which neighbors a window takes in), `run` (the
//! functions at work), `removable` and `ordered` (what they compute while windows move), `fill` (gaps between known values).
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
use super::steps::{Give, Hold, Take};
use super::{Demand, Pacer};
use crate::sort::{SortPart, Sorted, Sorter};
use crate::spill::Budget;
use crate::{Context, Expression, Item, ItemBuf, Sort};
pub(super) use bounds::parse_unit;
use document::{Collation, Doc, DocWriter, Value};
use error::{Code, Error, Result};
use parse::Function;
use partition::Partition;
use run::{Outcome, Run};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct SetWindowFields {
    partition: Option<Expression>,
    /// Partitions come the last one first: the field that they are kept apart by is sorted by, downwards.
    partition_descends: bool,
    sort: Option<Sort>,
    collation: Collation,
    /// The one field that is sorted by, where it is one.
    sort_by: Option<Expression>,
    functions: Vec<Function>,
    /// Where the functions' values go, by their position.
    fields: FieldTree<usize>,
}

impl SetWindowFields {
    pub fn parse(spec: Value<'_>, context: &Context) -> Result<SetWindowFields> {
        parse::stage(spec, context)
    }

    /// Whether documents are sorted for it as they come in, by fields that they have by then.
    pub fn sorts_anew(&self) -> bool {
        match &self.partition {
            Some(partition) => partition.as_field().is_some(),
            None => self.sort.as_ref().is_some_and(|sort| !sort.is_empty()),
        }
    }

    /// Writes the value that documents are kept apart by. Where they are being sorted it may be an array yet: that the sort
    /// cannot do its work is told first.
    fn write_partition(&self, document: Item<'_>, is_sorted: bool, out: &mut Vec<u8>) -> Result<()> {
        let Some(partition) = &self.partition else { return Ok(()) };
        let evaluated = partition.evaluate(document)?;
        if let Some(Value::Array(_)) = evaluated.value() {
            if is_sorted {
                return Err(array_partition());
            }
            self.check_beside_array(document.document)?;
        }
        let start = out.len();
        let value = match evaluated.value_or_null() {
            // It is sorted by one of its elements, as any array is.
            Value::Array(array) => self.sorted_element(array),
            value => value,
        };
        self.collation.encode_key(value, out);
        if self.partition_descends {
            out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
        }
        Ok(())
    }

    /// The smallest element of an array, or the largest where partitions descend.
    fn sorted_element<'d>(&self, array: Doc<'d>) -> Value<'d> {
        let compare = |a: &Value<'d>, b: &Value<'d>| self.collation.compare(*a, *b);
        let extreme = match self.partition_descends {
            false => array.values().min_by(compare),
            true => array.values().max_by(compare),
        };
        let within = || self.partition.as_ref().and_then(Expression::as_field).is_some_and(|path| path.contains('.'));
        // Elements without the field are sorted as null is.
        extreme.unwrap_or_else(|| if within() { Value::Null } else { Value::Undefined })
    }

    /// Error 2 where the document is kept apart by an array, and sorted by another one.
    fn check_beside_array(&self, document: Doc<'_>) -> Result<()> {
        let field = self.partition.as_ref().and_then(Expression::as_field).unwrap_or_default();
        let own = array_on(document, &field);
        let is_other = |part: &SortPart| array_on(document, part.path.as_str()).is_some_and(|array| Some(array) != own);
        if self.sort.iter().flat_map(Sort::parts).any(is_other) {
            return Err(Error::bad_value("cannot sort with keys that are parallel arrays"));
        }
        Ok(())
    }
}

/// The part of a path that leads to the first array on it.
fn array_on<'p>(document: Doc<'_>, path: &'p str) -> Option<&'p str> {
    let mut value = Value::Document(document);
    let mut length = 0;
    for name in path.split('.') {
        let Value::Document(inner) = value else { return None };
        value = inner.get(name)?;
        length += name.len();
        if let Value::Array(_) = value {
            return path.get(..length);
        }
        length += 1;
    }
    None
}

fn array_partition() -> Error {
    Error::type_mismatch("An expression used to partition cannot evaluate to value of type array")
}

/// The documents of a run, being sorted.
pub(super) struct Partitions {
    stage: Arc<SetWindowFields>,
    sorter: Sorter,
    budget: Budget,
}

impl Partitions {
    pub fn new(stage: Arc<SetWindowFields>, budget: Budget) -> Partitions {
        let sorter = Sorter::new(stage.sort.clone().unwrap_or_default(), None, budget.clone());
        Partitions { stage, sorter, budget }
    }
}

impl Hold for Partitions {
    fn push(&mut self, document: Item<'_>) -> Result<Demand> {
        let stage = &self.stage;
        self.sorter.push_behind(document, |key| stage.write_partition(document, false, key))?;
        Ok(Demand::More)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Give>> {
        let runs = self.stage.functions.iter().map(|_| Run::Idle).collect();
        Ok(Box::new(Windows {
            sorted: self.sorter.finish()?,
            ahead: None,
            failure: None,
            partition: Partition::default(),
            row: 0,
            runs,
            scratch: Vec::new(),
            stage: self.stage,
            budget: self.budget,
        }))
    }
}

/// A partition's documents on their way out.
struct Windows {
    stage: Arc<SetWindowFields>,
    budget: Budget,
    sorted: Sorted,
    /// The first document of the next partition, with its partition.
    ahead: Option<(Vec<u8>, ItemBuf)>,
    /// What is wrong with the document behind those of the partition: told when that is asked for.
    failure: Option<Error>,
    partition: Partition,
    row: usize,
    runs: Vec<Run>,
    scratch: Vec<u8>,
}

impl Windows {
    /// Reads the next partition; false when there is none.
    fn load(&mut self, pace: &mut Pacer<'_>) -> Result<bool> {
        self.partition.clear();
        self.row = 0;
        let Some((current, first)) = self.take_ahead()? else { return Ok(false) };
        self.partition.push(first, &self.budget)?;
        loop {
            match self.take_ahead() {
                Ok(Some((partition, document))) if partition == current => {
                    self.partition.push(document, &self.budget)?;
                    pace()?;
                }
                Ok(ahead) => {
                    self.ahead = ahead;
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
            *run = Run::begin(function, &self.stage, &self.partition, run)?;
        }
        Ok(true)
    }

    fn take_ahead(&mut self) -> Result<Option<(Vec<u8>, ItemBuf)>> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        let Some(document) = self.sorted.take_next()? else { return Ok(None) };
        let mut partition = Vec::new();
        self.stage.write_partition(document.as_item(), true, &mut partition)?;
        Ok(Some((partition, document)))
    }
}

/// The functions alone hold too much.
fn too_large(bytes: usize, budget: &Budget) -> Error {
    let max = budget.memory_bytes_max;
    let message =
        format!("Exceeded memory limit in DocumentSourceSetWindowFields, used {bytes} bytes but max allowed is {max}");
    Error::new(Code(5414201), message)
}

impl Give for Windows {
    fn give(&mut self, take: &mut Take<'_>, pace: &mut Pacer<'_>) -> Result<Option<Demand>> {
        if self.row == self.partition.len() && !self.load(pace)? {
            return Ok(None);
        }
        let (row, stage) = (self.row, &self.stage);
        // The next document is looked at before this one is given.
        let is_past = |last: Option<usize>| last.is_none_or(|last| last.max(row + 1) >= self.partition.len());
        let needed = stage.functions.iter().map(|function| function.looks_to(row));
        if self.failure.is_some() && needed.chain([Some(row)]).any(is_past) {
            return self.failure.take().map_or(Ok(None), Err);
        }
        let mut values = Vec::with_capacity(self.runs.len());
        let mut bytes = 0;
        for (run, function) in self.runs.iter_mut().zip(&stage.functions) {
            values.push(run.next(function, stage, &self.partition, row)?);
            bytes += run.memory_bytes();
        }
        if bytes > self.budget.memory_bytes_max {
            return Err(too_large(bytes, &self.budget));
        }
        self.scratch.clear();
        let mut writer = DocWriter::begin(&mut self.scratch);
        let lent = self.partition.get(row)?;
        let row = lent.as_item();
        stage.fields.apply(row.document, &mut writer, &mut |index, name, writer| {
            match (values.get(*index), self.runs.get(*index), stage.functions.get(*index)) {
                (Some(Outcome::Value(Some(value))), ..) => writer.append(name, value),
                (Some(Outcome::Held), Some(run), Some(function)) => run.write_held(function, name, writer),
                _ => {}
            }
            Ok(())
        })?;
        drop(writer);
        self.row += 1;
        take(row.with(Doc::from_bytes(&self.scratch).unwrap_or(Doc::EMPTY))).map(Some)
    }
}
