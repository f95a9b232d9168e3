//! Accumulators: the values that `$group` and its relatives compute per group.
//!
//! An [`Accumulator`] is the specification, an [`AccumulatorState`] its intermediate result in one
//! group.

mod collect;
pub(crate) mod spill;
mod top;

use super::operand::{Operand, Row};
use collect::{MergedFields, SelectedValues};
pub(crate) use collect::{SelectN, Selection};
use document::{Collation, DocWriter, Kind, Value, ValueBuf};
use error::{Code, Error, Result};
use query::expression::{Evaluated, second_engine};
use query::{Context, Expression};
use std::cmp::Ordering;
use steps::Counted;
use top::RankedValues;
pub(crate) use top::Top;
use values::number::{Number, Sum};
pub(super) use values::value_set::{ValueSet, hash_of};

/// Maximal size of one group's state, whether the stage may use the disk or not.
const STATE_BYTES_MAX: usize = 100 * 1024 * 1024;

const CANNOT_SPILL: &str = "cannot spill to disk";
const SPILLED: &str = "spilling to disk cannot reduce memory consumption any further";

#[derive(Debug)]
pub(crate) enum Accumulator {
    /// `$sum` of a constant, and `$count`.
    SumConstant(Number),
    Sum(Operand),
    Average(Operand),
    /// `$min` and `$max`.
    Extreme(Operand, ReplacementRule, Collation),
    First(Operand, Engine),
    Last(Operand),
    Push(Operand),
    AddToSet(Operand, Collation),
    /// `$stdDevPop`; `$stdDevSamp` has an excess of 1.
    Deviation {
        operand: Operand,
        excess: u64,
    },
    MergeObjects(Operand, Engine),
    /// `$firstN`, `$lastN`, `$minN`, `$maxN`.
    SelectN(SelectN),
    /// `$top`, `$bottom`, `$topN`, `$bottomN`.
    Top(Top),
}

/// Which values replace the current one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplacementRule {
    /// Those that compare to it this way.
    ordering: Ordering,
    engine: Engine,
}

/// Which of MongoDB's engines is emulated ([`query::expression::second_engine`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Engine {
    #[default]
    First,
    /// The last of several equal values is retained, and errors have other codes.
    Second,
}

/// The intermediate result of an accumulator in one group.
#[derive(Debug)]
pub(crate) enum AccumulatorState {
    Sum(Sum),
    Average {
        sum: Sum,
        count: u64,
    },
    One(Option<ValueBuf>),
    /// The array so far, without its closing zero.
    Array {
        bytes: Vec<u8>,
        count: u32,
    },
    Set(Box<ValueSet>),
    Deviation {
        count: u64,
        mean: f64,
        squares: f64,
    },
    Merged(MergedFields),
    SelectN {
        limit: usize,
        selected: SelectedValues,
        bytes: usize,
        /// No further value would change it.
        is_complete: bool,
    },
    Top {
        limit: usize,
        ranked: RankedValues,
        arrivals: u64,
        bytes: usize,
    },
}

impl Accumulator {
    /// Returns the accumulator that counts documents.
    pub fn count() -> Accumulator {
        Accumulator::SumConstant(Number::Int32(1))
    }

    /// Returns whether it is [`Accumulator::count`].
    pub fn is_count(&self) -> bool {
        matches!(self, Accumulator::SumConstant(Number::Int32(1)))
    }

    pub fn parse(operator: &str, argument: Value<'_>, context: &Context) -> Result<Accumulator> {
        match operator {
            "$count" => {
                return match argument {
                    Value::Document(nothing) if nothing.is_empty() => Ok(Self::count()),
                    _ => Err(Error::type_mismatch("$count takes no arguments, i.e. $count:{}")),
                };
            }
            "$firstN" | "$lastN" | "$minN" | "$maxN" => {
                return SelectN::parse(operator, argument, context).map(Accumulator::SelectN);
            }
            "$top" | "$bottom" | "$topN" | "$bottomN" => {
                return Top::parse(operator, argument, context).map(Accumulator::Top);
            }
            "$accumulator" | "$_internalJsReduce" => {
                let Value::Document(spec) = argument else {
                    let found = argument.kind().alias();
                    let message = format!("{operator} expects an object as an argument; found: {found}");
                    return Err(Error::new(Code(4544703), message));
                };
                if operator == "$accumulator" {
                    check_scripts(spec)?;
                }
                return Err(query::expression::no_javascript());
            }
            _ => {}
        }
        let Some(make) = Self::constructor(operator) else {
            return Err(Error::new(Code(15952), format!("unknown group operator '{operator}'")));
        };
        if let Value::Array(_) = argument {
            return Err(Error::new(Code(40237), format!("The {operator} accumulator is a unary operator")));
        }
        if operator == "$sum"
            && let expression = Expression::parse(argument, context)?
            && expression.is_supported_by_second_engine()
            && let Some(number) = expression.as_literal().and_then(Number::from_value)
        {
            return Ok(Accumulator::SumConstant(number));
        }
        Ok(make(Operand::parse(argument, context)?, context.collation.clone()))
    }

    /// Returns the constructor of an accumulator that has exactly one operand.
    pub fn constructor(operator: &str) -> Option<fn(Operand, Collation) -> Accumulator> {
        Some(match operator {
            "$sum" => |operand, _| Accumulator::Sum(operand),
            "$avg" => |operand, _| Accumulator::Average(operand),
            "$min" => |operand, collation| Accumulator::Extreme(operand, Ordering::Less.into(), collation),
            "$max" => |operand, collation| Accumulator::Extreme(operand, Ordering::Greater.into(), collation),
            "$first" => |operand, _| Accumulator::First(operand, Engine::First),
            "$last" => |operand, _| Accumulator::Last(operand),
            "$push" => |operand, _| Accumulator::Push(operand),
            "$addToSet" => Accumulator::AddToSet,
            "$stdDevPop" => |operand, _| Accumulator::Deviation { operand, excess: 0 },
            "$stdDevSamp" => |operand, _| Accumulator::Deviation { operand, excess: 1 },
            "$mergeObjects" => |operand, _| Accumulator::MergeObjects(operand, Engine::First),
            _ => return None,
        })
    }

    /// Returns whether the number of values it retains depends on the group's key.
    pub fn reads_key(&self) -> bool {
        match self {
            Accumulator::SelectN(select_n) => select_n.limit_expression().reads_document(),
            Accumulator::Top(top) => top.limit_expression().is_some_and(Expression::reads_document),
            _ => false,
        }
    }

    /// Returns the operand of an accumulator that has exactly one.
    pub fn operand_mut(&mut self) -> Option<&mut Operand> {
        match self {
            Accumulator::Sum(operand)
            | Accumulator::Average(operand)
            | Accumulator::Extreme(operand, ..)
            | Accumulator::First(operand, _)
            | Accumulator::Last(operand)
            | Accumulator::Push(operand)
            | Accumulator::AddToSet(operand, _)
            | Accumulator::Deviation { operand, .. }
            | Accumulator::MergeObjects(operand, _) => Some(operand),
            Accumulator::SumConstant(_) | Accumulator::SelectN(_) | Accumulator::Top(_) => None,
        }
    }

    /// Like [`Accumulator::operand_mut`], for reading.
    pub fn operand(&self) -> Option<&Operand> {
        match self {
            Accumulator::Sum(operand)
            | Accumulator::Average(operand)
            | Accumulator::Extreme(operand, ..)
            | Accumulator::First(operand, _)
            | Accumulator::Last(operand)
            | Accumulator::Push(operand)
            | Accumulator::AddToSet(operand, _)
            | Accumulator::Deviation { operand, .. }
            | Accumulator::MergeObjects(operand, _) => Some(operand),
            Accumulator::SumConstant(_) | Accumulator::SelectN(_) | Accumulator::Top(_) => None,
        }
    }

    /// Returns whether MongoDB's second engine has the accumulator and everything it uses.
    pub fn is_supported_by_second_engine(&self) -> bool {
        match self.operand() {
            Some(operand) => operand.is_supported_by_second_engine(),
            None => matches!(self, Accumulator::SumConstant(_)),
        }
    }

    pub fn use_second_engine(&mut self) {
        if let Some(operand) = self.operand_mut() {
            operand.use_second_engine();
        }
        match self {
            Accumulator::Extreme(_, ReplacementRule { engine, .. }, _)
            | Accumulator::MergeObjects(_, engine)
            | Accumulator::First(_, engine) => {
                *engine = Engine::Second;
            }
            _ => {}
        }
    }

    /// Returns the state of a new group with this key.
    pub fn new_state(&self, key: Value<'_>) -> Result<AccumulatorState> {
        Ok(match self {
            Accumulator::SumConstant(_) | Accumulator::Sum(_) => AccumulatorState::Sum(Sum::default()),
            Accumulator::Average(_) => AccumulatorState::Average { sum: Sum::default(), count: 0 },
            Accumulator::Extreme(..) | Accumulator::First(..) | Accumulator::Last(_) => AccumulatorState::One(None),
            Accumulator::Push(_) => AccumulatorState::Array { bytes: vec![0; 4], count: 0 },
            Accumulator::AddToSet(_, collation) => AccumulatorState::Set(Box::new(ValueSet::new(collation.clone()))),
            Accumulator::Deviation { .. } => AccumulatorState::Deviation { count: 0, mean: 0.0, squares: 0.0 },
            Accumulator::MergeObjects(..) => AccumulatorState::Merged(MergedFields::default()),
            Accumulator::SelectN(select_n) => AccumulatorState::SelectN {
                limit: select_n.limit(key)?,
                selected: select_n.new_values(),
                bytes: 0,
                is_complete: false,
            },
            Accumulator::Top(top) => {
                AccumulatorState::Top { limit: top.limit(key)?, ranked: RankedValues::new(), arrivals: 0, bytes: 0 }
            }
        })
    }

    /// Adds a document and returns the bytes by which the state grew. Fails with 146 if a state
    /// exceeds [`STATE_BYTES_MAX`].
    #[inline]
    pub fn add(&self, state: &mut AccumulatorState, row: &Row<'_>) -> Result<isize> {
        match (self, state) {
            (Accumulator::SumConstant(number), AccumulatorState::Sum(sum)) => sum.add(*number),
            (Accumulator::Sum(operand), AccumulatorState::Sum(sum)) => {
                add_number(operand, row, sum)?;
            }
            (Accumulator::Average(operand), AccumulatorState::Average { sum, count }) => {
                *count += u64::from(add_number(operand, row, sum)?);
            }
            (Accumulator::Extreme(operand, rule, collation), AccumulatorState::One(best)) => {
                return Ok(take_extreme(&operand.evaluate_in(row)?, *rule, collation, best));
            }
            // The second engine computes it nevertheless, and may fail.
            (Accumulator::First(operand, Engine::Second), AccumulatorState::One(Some(_))) => {
                drop(operand.evaluate_in(row)?)
            }
            (Accumulator::First(..), AccumulatorState::One(Some(_))) => {}
            (Accumulator::First(operand, _) | Accumulator::Last(operand), AccumulatorState::One(current)) => {
                return Ok(replace_value(current, operand.evaluate_in(row)?.value_or_null()));
            }
            (Accumulator::Deviation { operand, .. }, AccumulatorState::Deviation { count, mean, squares }) => {
                if let Some(number) = operand.number_in(row)? {
                    let number = number.to_f64();
                    *count += 1;
                    let difference = number - *mean;
                    *mean += difference / *count as f64;
                    *squares += difference * (number - *mean);
                }
            }
            (accumulator, state) => return accumulator.add_to_many(state, row),
        }
        Ok(0)
    }

    /// Returns the operand that [`Accumulator::add`] no longer reads, because all first values have
    /// arrived.
    pub fn skipped_operand(&self, state: &AccumulatorState) -> Option<&Operand> {
        match (self, state) {
            (Accumulator::SelectN(select_n), AccumulatorState::SelectN { is_complete: true, .. }) => {
                Some(select_n.input())
            }
            _ => None,
        }
    }

    /// [`Accumulator::add`] for accumulators that retain many values.
    fn add_to_many(&self, state: &mut AccumulatorState, row: &Row<'_>) -> Result<isize> {
        let grown = match (self, state) {
            (Accumulator::Push(operand), AccumulatorState::Array { bytes, count }) => {
                let evaluated = operand.evaluate_in(row)?;
                let grown = evaluated.value().map_or(0, |value| collect::push(value, bytes, count));
                self.check_size(bytes.len())?;
                grown
            }
            (Accumulator::AddToSet(operand, _), AccumulatorState::Set(set)) => {
                let evaluated = operand.evaluate_in(row)?;
                let grown = evaluated.value().map_or(0, |value| set.insert(value));
                self.check_size(set.memory_bytes())?;
                grown
            }
            (Accumulator::MergeObjects(operand, engine), AccumulatorState::Merged(merged)) => {
                let evaluated = operand.evaluate_in(row)?;
                let grown = merge_object(merged, evaluated.value()).map_err(|error| match engine {
                    Engine::First => error,
                    Engine::Second => second_engine::merge_objects_error(error),
                })?;
                self.check_size(merged.memory_bytes())?;
                grown
            }
            (Accumulator::SelectN(_), AccumulatorState::SelectN { is_complete: true, .. }) => 0,
            (
                Accumulator::SelectN(select_n),
                AccumulatorState::SelectN { limit, selected: kept, bytes, is_complete: over },
            ) => {
                // MongoDB computes one value more than it retains of the first ones.
                *over = matches!(select_n.selection(), Selection::First) && kept.len() >= *limit;
                let grown = select_n.add(*limit, kept, row.item())?;
                *bytes = bytes.saturating_add_signed(grown);
                self.check_size(*bytes)?;
                grown
            }
            (Accumulator::Top(top), AccumulatorState::Top { limit, ranked, arrivals, bytes }) => {
                *arrivals += 1;
                let grown = top.add(*limit, *arrivals, ranked, row.item())?;
                *bytes = bytes.saturating_add_signed(grown);
                self.check_size(*bytes)?;
                grown
            }
            _ => 0,
        };
        Ok(grown)
    }

    /// Fails with 146 if the state of one group is larger than a stage may hold in all.
    fn check_size(&self, bytes: usize) -> Result<()> {
        if bytes <= STATE_BYTES_MAX {
            return Ok(());
        }
        let (name, why) = match self {
            Accumulator::AddToSet(..) => ("$addToSet", CANNOT_SPILL),
            Accumulator::MergeObjects(..) => ("$mergeObjects", CANNOT_SPILL),
            Accumulator::SelectN(select_n) => (select_n.name(), SPILLED),
            Accumulator::Top(top) => (top.name(), SPILLED),
            _ => ("$push", CANNOT_SPILL),
        };
        let message = format!("{name} used too much memory and {why}. Memory limit: {STATE_BYTES_MAX} bytes");
        Err(Error::new(Code::EXCEEDED_MEMORY_LIMIT, message))
    }

    /// Writes the result as a field.
    pub fn write(&self, state: &AccumulatorState, name: &str, writer: &mut DocWriter<'_>) {
        match state {
            AccumulatorState::Sum(sum) => writer.append(name, sum.total().to_value()),
            AccumulatorState::Average { count: 0, .. } => writer.append(name, Value::Null),
            AccumulatorState::Average { sum, count } => writer.append(name, sum.average(*count).to_value()),
            AccumulatorState::One(value) => writer.append(name, value.as_ref().map_or(Value::Null, ValueBuf::as_value)),
            AccumulatorState::Array { bytes, .. } => {
                steps::bytes(bytes.len());
                writer.append_raw(Kind::Array, name.as_bytes(), &collect::close_array(bytes.clone()));
            }
            AccumulatorState::Set(set) => {
                let mut array = writer.array(name);
                set.values().counted().for_each(|value| array.push(value));
            }
            AccumulatorState::Deviation { count, squares, .. } => {
                let excess = if let Accumulator::Deviation { excess, .. } = self { *excess } else { 0 };
                match count.checked_sub(excess) {
                    None | Some(0) => writer.append(name, Value::Null),
                    Some(divisor) => writer.append(name, (*squares / divisor as f64).sqrt()),
                }
            }
            AccumulatorState::Merged(merged) => merged.write(&mut writer.document(name)),
            AccumulatorState::SelectN { selected: kept, .. } => {
                let mut array = writer.array(name);
                match self {
                    Accumulator::SelectN(select_n) => {
                        select_n.in_result_order(kept).counted().for_each(|value| array.push(value))
                    }
                    _ => kept.values().counted().for_each(|value| array.push(value)),
                }
            }
            AccumulatorState::Top { ranked, .. } => match self {
                Accumulator::Top(top) => top.write(ranked, name, writer),
                _ => writer.append(name, Value::Null),
            },
        }
    }
}

/// Adds the operand's value if it is a number; returns whether it is.
#[inline]
fn add_number(operand: &Operand, row: &Row<'_>, sum: &mut Sum) -> Result<bool> {
    if let Some(number) = operand.int32_in(row) {
        sum.add_int32(number);
        return Ok(true);
    }
    let number = operand.number_in(row)?;
    number.into_iter().for_each(|number| sum.add(number));
    Ok(number.is_some())
}

impl From<Ordering> for ReplacementRule {
    fn from(ordering: Ordering) -> Self {
        ReplacementRule { ordering, engine: Engine::First }
    }
}

impl ReplacementRule {
    fn replaces(self, compared: Ordering) -> bool {
        compared == self.ordering || compared.is_eq() && self.engine == Engine::Second
    }
}

fn take_extreme(
    evaluated: &Evaluated<'_>,
    rule: ReplacementRule,
    collation: &Collation,
    best: &mut Option<ValueBuf>,
) -> isize {
    let Some(value) = evaluated.value().filter(|value| !matches!(value, Value::Null | Value::Undefined)) else {
        return 0;
    };
    match best {
        Some(best) if !rule.replaces(collation.compare(value, best.as_value())) => 0,
        _ => replace_value(best, value),
    }
}

/// Replaces a value and returns the bytes by which the new one is larger.
fn replace_value(current: &mut Option<ValueBuf>, value: Value<'_>) -> isize {
    let before = current.as_ref().map_or(0, |current| current.raw_value().len());
    let new = value.to_owned();
    steps::bytes(new.raw_value().len());
    let after = new.raw_value().len();
    *current = Some(new);
    after as isize - before as isize
}

fn merge_object(merged: &mut MergedFields, value: Option<Value<'_>>) -> Result<isize> {
    match value {
        None | Some(Value::Null | Value::Undefined) => Ok(0),
        Some(Value::Document(document)) => Ok(merged.merge(document)),
        Some(other) => Err(Error::new(
            Code(40400),
            format!(
                "$mergeObjects requires object inputs, but input {} is of type {}",
                values::text::display(other),
                other.kind().alias()
            ),
        )),
    }
}

/// Checks an `$accumulator`, apart from the fact that scripts are not supported.
fn check_scripts(spec: document::Doc<'_>) -> Result<()> {
    for (name, value) in spec.iter().counted() {
        match (name, value) {
            ("init" | "accumulate" | "merge" | "finalize", Value::String(_) | Value::Code(_)) => {}
            ("init" | "accumulate" | "merge" | "finalize", _) => {
                let message = format!("$accumulator '{name}' must be a String or Code");
                return Err(Error::new(Code(4544702), message));
            }
            ("initArgs" | "accumulateArgs" | "lang", Value::String("js")) => {}
            ("lang", _) => return Err(Error::new(Code(4544705), "$accumulator only supports lang: 'js'")),
            ("initArgs" | "accumulateArgs", _) => {}
            (other, _) => {
                let message = format!("$accumulator got an unexpected field: {other}");
                return Err(Error::new(Code(4544706), message));
            }
        }
    }
    let required = [("init", 4544707), ("accumulate", 4544708), ("merge", 4544709), ("accumulateArgs", 4544710)];
    match required.into_iter().find(|(name, _)| spec.get(name).is_none()) {
        Some((name, code)) => Err(Error::new(Code(code), format!("$accumulator missing required argument '{name}'"))),
        None => Ok(()),
    }
}
